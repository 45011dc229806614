"""Subclasses of tensors, objects with a `__torch_function__` and modes (row 39)."""

import torch
from parity.harness import registry
from torch.overrides import TorchFunctionMode
from torch.testing._internal.two_tensor import TwoTensor

PROGRAMS, program = registry()


class Swapped(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.sin:
            func = torch.cos
        return super().__torch_function__(func, types, args, kwargs or {})

    def twice(self):
        return self * 2


class Plain(torch.Tensor):
    pass


class Printing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.sin:
            print("asked")
        return super().__torch_function__(func, types, args, kwargs or {})


class Wrapped:
    def __init__(self, data):
        self.data = data

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [a.data if isinstance(a, Wrapped) else a for a in args]
        return Wrapped(func(*args, **(kwargs or {})))


class Mode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.sin:
            func = torch.cos
        return func(*args, **(kwargs or {}))


class PrintingMode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        print("asked")
        return func(*args, **(kwargs or {}))


def of(cls, *sizes):
    return lambda: [(torch.ones(n).as_subclass(cls),) for n in sizes]


def ones(*sizes):
    return lambda: [(torch.ones(n),) for n in sizes]


def _row(name, fn, calls, **figures):
    @program(name, 39, **{"graphs": 1, **figures})
    def _():
        return fn, calls()


_row("subclass_given", lambda x: torch.sin(x).twice() + 1, of(Swapped, 3, 3))
_row("subclass_sizes", lambda x: torch.sin(x).twice() + 1, of(Swapped, 2, 3, 4), graphs=2, recompiles=1)
_row("subclass_without_hook", lambda x: (x + 1, type(x * 2) is Plain), of(Plain, 3, 3))
_row("subclass_made", lambda x: torch.sin(x.as_subclass(Swapped)).twice(), ones(3, 3))
_row("subclass_constructed", lambda x: Plain(x) * 2 + x, ones(3, 3))
_row(
    "subclass_or_tensor",
    lambda x: torch.sin(x),
    lambda: [(torch.ones(3),), (torch.ones(3).as_subclass(Swapped),), (torch.ones(3).as_subclass(Plain),)],
    graphs=3,
    recompiles=2,
)
_row("subclass_prints", lambda x: torch.sin(x * 2) + 1, of(Printing, 3, 3), graphs=3, breaks=2,
     torch_differs="the graph asks the class again")  # fmt: skip
_row("wrapped_object", lambda x: torch.add(Wrapped(x), 1).data * 2, ones(3, 3))
_row("wrapped_object_given", lambda w: torch.add(w, 1).data * 2, lambda: [(Wrapped(torch.ones(3)),)] * 2)


@program("mode_entered", 39, graphs=1)
def _():
    def f(x):
        with Mode():
            y = torch.sin(x)
        return y + torch.sin(x)

    return f, ones(3, 3)()


@program("mode_around", 39, graphs=1, around=lambda i: Mode())
def _():
    return lambda x: torch.sin(x) + 1, ones(3, 3)()


@program("mode_prints", 39, graphs=3, breaks=3, recompiles=1)
def _():
    def f(x):
        y = x + 1
        with PrintingMode():
            return torch.sin(y) + 1

    return f, ones(3, 3)()


def _two():
    return [(TwoTensor(torch.ones(3), torch.zeros(3)),)] * 2


_row("wrapper_subclass", lambda t: t * 2 + 1, _two)
_row("wrapper_subclass_parts", lambda t: t.a + t.b, _two)


class Opaque(torch.Tensor):
    """Made of a tensor that it doesn't tell of."""

    @staticmethod
    def __new__(cls, of):
        made = torch.Tensor._make_wrapper_subclass(cls, of.shape, dtype=of.dtype)
        made.of = of
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*(a.of if isinstance(a, Opaque) else a for a in args), **(kwargs or {}))


@program("wrapper_that_tells_nothing", 39, graphs=1, breaks=1)
def _():
    return lambda w, x: w + x, [(Opaque(torch.ones(3)), torch.ones(3))] * 2


@program("wrapper_that_tells_nothing_asked", 39, graphs=1)
def _():
    return lambda w, x: w.of * 2 + x if isinstance(w, Opaque) else x, [
        (Opaque(torch.ones(3)), torch.ones(3))
    ] * 2


class Sharded(torch.nn.Parameter):
    """A parameter that knows more, as those of serving libraries do."""

    kind = "sharded"

    def __new__(cls, data, shard):
        return super().__new__(cls, data)

    def __init__(self, data, shard):
        self.shard = shard

    def loaded(self, x):
        return x * self.shard

    @property
    def next(self):
        return self.shard + 1


class WithSharded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = Sharded(torch.ones(3), 2)

    def forward(self, x):
        w = self.weight
        named = type(w) is Sharded, isinstance(w, Sharded), w.kind, type(w * 1) is torch.Tensor
        return w * x + w.loaded(x) + w.next, named, getattr(w, "missing", None)


program("derived_parameter", 39, graphs=1, entries=1)(lambda: (WithSharded(), [(torch.ones(3),)] * 2))
