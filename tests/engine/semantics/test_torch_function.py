"""`__torch_function__` of subclasses, of other objects and of modes: asked for the same, in the same order, as eagerly."""

import dynacheck
import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.testing._internal.two_tensor import TwoTensor

ASKED = []


class Logged(torch.Tensor):
    """Notes what it is asked for."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        ASKED.append((getattr(func, "__name__", ""), len(args), sorted(kwargs or {}), len(types)))
        return super().__torch_function__(func, types, args, kwargs or {})


class Swapped(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.sin:
            func = torch.cos
        with torch._C.DisableTorchFunctionSubclass():
            found = func(*args, **(kwargs or {}))
        return found * 2 if func is torch.cos else found

    def twice(self):
        return self * 2

    @property
    def half(self):
        return self / 2


class Plain(torch.Tensor):
    def scaled(self, by=3):
        return self * by


class Child(Plain):
    pass


class Wrapped:
    def __init__(self, data):
        self.data = data

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        ASKED.append(func.__name__)
        args = [a.data if isinstance(a, Wrapped) else a for a in args]
        return Wrapped(func(*args, **(kwargs or {})))


class Mode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        ASKED.append((getattr(func, "__name__", ""), len(args), sorted(kwargs or {})))
        if func is torch.sin:
            func = torch.cos
        return func(*args, **(kwargs or {}))


def operators(x, y):
    return (
        x + 1, 1 - x, x * y, y * x, y - x, x / 2, 2 / x, x**2, -x, x @ x, x[0], x[:2], x > 0, x == y, abs(x), x // 2, 3 % x,
    )  # fmt: skip


def functions(x, y):
    stacked = torch.stack([x, y], dim=1)
    return (
        torch.add(x, y, alpha=2),
        stacked,
        torch.nn.functional.relu(x),
        torch.where(y > 0, x, y),
        torch.cat((y, x)),
    )


def methods(x, y):
    z = x.clone()
    z.add_(1).mul_(2)
    z[0] = 5
    return z, x.view(1, -1), x.sum(dim=0, keepdim=True), x.to(torch.float64), y.expand_as(x), x.max(0)


def attributes(x, y):
    return x.shape, x.dtype, x.ndim, x.T, x.requires_grad, x.size(0), x.dim(), x.is_floating_point(), x.device


def called_by_modules(x, y):
    return (
        torch.nn.functional.layer_norm(x, (4,)),
        torch.nn.functional.dropout(x, 0.0),
        torch.nn.functional.linear(x, y[None]),
    )


CALLS = [operators, functions, methods, attributes, called_by_modules]


def compared(value):
    if isinstance(value, torch.Tensor):
        return type(value).__name__, value.as_subclass(torch.Tensor).detach().tolist(), value.requires_grad
    if isinstance(value, Wrapped):
        return "Wrapped", compared(value.data)
    return type(value).__name__, [compared(v) for v in value] if isinstance(value, (tuple, list)) else value


def both(program, *args, graphs=1, backend="eager"):
    dynacheck.reset()
    ASKED.clear()
    wanted = compared(program(*args)), list(ASKED)
    compiled = dynacheck.compile(program, backend=backend, fullgraph=bool(graphs))
    for _ in range(2):
        ASKED.clear()
        with dynacheck.observe() as report:
            found = compared(compiled(*args)), list(ASKED)
        assert found == wanted
        if _ == 0:
            assert len(report.graphs) == graphs


@pytest.mark.parametrize("kind", [Plain, Logged, Swapped])
@pytest.mark.parametrize("program", CALLS, ids=lambda p: p.__name__)
def test_subclass_given(program, kind):
    x = torch.arange(1.0, 5.0)
    both(program, x.as_subclass(kind), x + 1)


@pytest.mark.parametrize("program", CALLS, ids=lambda p: p.__name__)
def test_mode_entered(program):
    def under_mode(x, y):
        with Mode():
            return program(x, y)

    both(under_mode, torch.arange(1.0, 5.0), torch.arange(4.0))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.sin(x.as_subclass(Swapped)) + x.as_subclass(Swapped).twice(),
        lambda x: x.as_subclass(Swapped).half + x,
        lambda x: Plain(x).scaled(by=4),
        lambda x: Child(x) + Plain(x),
        lambda x: Plain(x) + Child(x),
        lambda x: (
            isinstance(Plain(x), torch.Tensor),
            type(Plain(x) + 1) is Plain,
            isinstance(x, Plain),
            x * 2,
        ),
        lambda x: torch.mul(Wrapped(x), 3).data + x,
        lambda x: torch.mul(Wrapped(x), 3),
    ],
)
def test_made_in_the_frame(program, backend):
    both(program, torch.arange(1.0, 5.0), backend=backend)


def test_nested_modes():
    def f(x):
        with Mode():
            y = torch.sin(x)
            with Mode():
                z = y + torch.zeros(4)
        return z * 2

    both(f, torch.arange(4.0))


def test_gradients_go_through():
    def f(x):
        return (x.as_subclass(Plain) * 3).scaled(2).sum()

    x = torch.ones(3, requires_grad=True)
    for backend in ("eager", "aot_eager"):
        (grad,) = torch.autograd.grad(dynacheck.compile(f, backend=backend, fullgraph=True)(x), x)
        assert grad.tolist() == [6, 6, 6]


def test_a_class_that_knows_no_function():
    class Refusing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    def f(x):
        try:
            return x + 1
        except TypeError:
            return "refused"

    x = torch.ones(3).as_subclass(Refusing)
    assert dynacheck.compile(f, backend="eager")(x) == f(x) == "refused"


def test_a_mode_that_stays_on():
    """The frame runs as it is."""
    mode = Mode()

    def f(x):
        mode.__enter__()
        return torch.sin(x)

    try:
        found = dynacheck.compile(f, backend="eager")(torch.ones(3))
    finally:
        mode.__exit__(None, None, None)
    torch.testing.assert_close(found, torch.ones(3).cos())


def test_wrappers_that_ask_a_torch_function_too_are_captured():
    class Asking(TwoTensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    two = Asking(torch.ones(3), torch.zeros(3))
    with dynacheck.observe() as seen:
        found = dynacheck.compile(lambda t: t * 2 + 1, backend="eager")(two)
    assert type(found) is Asking and found.a.tolist() == [3, 3, 3] and found.b.tolist() == [1, 1, 1]
    assert (len(seen.graphs), len(seen.graph_breaks)) == (1, 0)
