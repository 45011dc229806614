"""Tensors made of other tensors, with a `__torch_dispatch__` (row 39)."""

import torch
import torch.nn.functional as F
from parity.harness import registry
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import return_and_correct_aliasing

PROGRAMS, program = registry()


class Scaled(torch.Tensor):
    """A tensor of whole numbers and what to multiply them by: a weight as quantisation keeps it."""

    @staticmethod
    def __new__(cls, whole, scale, kind):
        return torch.Tensor._make_wrapper_subclass(
            cls, whole.shape, dtype=torch.float32, device=whole.device, strides=whole.stride()
        )

    def __init__(self, whole, scale, kind):
        self.whole, self.scale, self.kind = whole, scale, kind

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __repr__(self):
        return f"Scaled({self.whole}, {self.scale}, {self.kind})"

    def __tensor_flatten__(self):
        return ["whole", "scale"], {"kind": self.kind}

    @classmethod
    def __tensor_unflatten__(cls, inner, context, outer_size, outer_stride):
        return cls(inner["whole"], inner["scale"], context["kind"])

    @property
    def bits(self):
        return self.whole.element_size() * 8

    def numbers(self):
        return self.whole.float() * self.scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.ops.aten.detach.default:
            it = args[0]
            made = cls(func(it.whole), func(it.scale), it.kind)
            return return_and_correct_aliasing(func, args, kwargs, made)
        if func is torch.ops.aten.clone.default:
            return cls(func(args[0].whole), func(args[0].scale), args[0].kind)
        args, kwargs = pytree.tree_map_only(Scaled, Scaled.numbers, (args, kwargs))
        return func(*args, **kwargs)


class Layer(torch.nn.Module):
    def __init__(self, weight, trained):
        super().__init__()
        self.weight = torch.nn.Parameter(weight, requires_grad=trained)
        self.bias = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return F.relu(F.linear(x, self.weight, self.bias))


def two(*shape, grad=False):
    return TwoTensor(torch.randn(*shape), torch.randn(*shape)).requires_grad_(grad)


def halves():
    whole = two(4)
    return whole[:2], whole[2:]


def marked(n):
    made = two(n)
    torch._dynamo.mark_dynamic(made, 0)
    return made


def scaled(kind="whole", dtype=torch.int8):
    return Scaled(torch.arange(6, dtype=dtype).reshape(2, 3), torch.tensor(0.5), kind)


def _row(name, fn, calls, **figures):
    @program(f"wrapper_{name}", 39, **{"graphs": 1, **figures})
    def _():
        torch.manual_seed(0)
        return fn, calls()


def branches(x):
    return x + 1 if isinstance(x, TwoTensor) and type(x * 1) is TwoTensor else x - 1


def prints(x):
    y = x * 2
    print("here")
    return y + x


def written(x):
    x.add_(1)
    return x.view(-1) * 2


def holder(x, parts):
    return {"sum": parts["a"] + x, "kept": [x, parts["b"]]}


_row("mixed", lambda x, y: x + y, lambda: [(two(3), torch.ones(3)), (two(3), torch.zeros(3))])
_row("branches", branches, lambda: [(two(3),), (two(3),)])
_row("or_tensor", branches, lambda: [(two(3),), (torch.ones(3),), (two(3),)], graphs=2, recompiles=1)
_row("sizes", lambda x: x.sin() * 2, lambda: [(two(n, 3),) for n in (2, 4, 5)], graphs=2, recompiles=1)
_row("prints", prints, lambda: [(two(3),), (two(3),)], graphs=2, breaks=1)
_row("method", lambda x: x.get_elem_a() + 1, lambda: [(two(3),), (two(3),)])
_row("method_of_result", lambda x: (x * 2).get_elem_a() + 1, lambda: [(two(3),), (two(3),)])
_row("part_of_result", lambda x: (x * 2).a + 1, lambda: [(two(3),), (two(3),)])
_row("made", lambda a, b: TwoTensor(a, b) * 2, lambda: [(torch.ones(3), torch.zeros(3))] * 2)
_row("written", written, lambda: [(two(3, 2),), (two(3, 2),)])
_row("in_containers", holder, lambda: [(two(3), {"a": two(3), "b": two(2)})] * 2)
_row("of_wrappers", lambda x: x * 2 + 1, lambda: [(TwoTensor(two(3), two(3)),), (TwoTensor(two(3), two(3)),)])
_row("views", lambda x: (x.t()[1:] + 1, x.reshape(-1)), lambda: [(two(3, 2),), (two(3, 2),)])
_row("views_of_one", lambda x, y: x + y, lambda: [halves(), halves()])
_row("twice", lambda x, y: x + y, lambda: [(two(3),) * 2, (two(3), two(3))], graphs=2, recompiles=1)
_row("marked", lambda x: x * 2, lambda: [(marked(3),), (two(5),)])
_row("shape_used", lambda x: x.reshape(x.shape[0] // 2, 2) + x.shape[0], lambda: [(two(n),) for n in (4, 6, 8)],
     graphs=2, recompiles=1)  # fmt: skip
_row("attribute", lambda w, x: x + 1 if w.kind == "whole" else x - 1,
     lambda: [(scaled(kind), torch.ones(2)) for kind in ("whole", "half")], graphs=2, recompiles=1)  # fmt: skip
_row(
    "value_branch",
    lambda x: x + 1 if x.sum() > 0 else x - 1,
    lambda: [(two(3).abs(),)] * 2,
    graphs=2,
    breaks=1,
)
_row("no_grad", torch.no_grad()(lambda x: x * 2), lambda: [(two(3, grad=True),), (two(3, grad=True),)])
_row(
    "given", lambda w, x: F.linear(x, w), lambda: [(scaled(), torch.ones(4, 3)), (scaled(), torch.ones(4, 3))]
)
_row("property", lambda w: w.numbers() * w.bits, lambda: [(scaled(),), (scaled(),)])
_row(
    "contexts",
    lambda w, x: F.linear(x, w),
    lambda: [(scaled(kind), torch.ones(4, 3)) for kind in ("whole", "half", "whole", "half")],
    graphs=2,
    recompiles=1,
)
_row(
    "inner_dtypes",
    lambda w, x: F.linear(x, w),
    lambda: [(scaled("whole", dtype), torch.ones(4, 3)) for dtype in (torch.int8, torch.int16, torch.int8)],
    graphs=2,
    recompiles=1,
)


@program("wrapper_parameter", 39, graphs=1)
def _():
    torch.manual_seed(0)
    return Layer(scaled(), trained=False), [(torch.ones(4, 3),), (torch.randn(4, 3),)]


@program("wrapper_trained", 39, graphs=1)
def _():
    torch.manual_seed(0)
    return Layer(two(2, 3), trained=True), [(torch.ones(4, 3),), (torch.randn(4, 3),)]


@program("wrapper_lowered", 39, graphs=1, compile={"backend": "aot_eager"})
def _():
    torch.manual_seed(0)
    return Layer(two(2, 3), trained=True), [(torch.ones(4, 3),), (torch.randn(4, 3),)]


class Hooked(TwoTensor):
    """Adds one to what it is multiplied with, so that a class asked twice is noticed."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (torch.mul, torch.Tensor.mul):
            args = (args[0], args[1] + 1)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class Handed(TwoTensor):
    """Hands on to what a class with a `__torch_dispatch__` has."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


def hooked(cls, *shape):
    return cls(torch.ones(*shape), torch.zeros(*shape))


def _asked(name, fn, cls, *more, **figures):
    calls = lambda: [(hooked(cls, n, 3), *more) for n in (2, 4, 5)]  # noqa: E731
    _row(f"asked_{name}", fn, calls, **{"graphs": 2, "recompiles": 1, **figures})


def torn(x):
    """Parts of results, as the frame may go on with them: comparing wrappers would ask their class again."""
    y = x.mul(2).add(1)
    return y.a, y.b


_asked("method", torn, Hooked)
_asked("handed_on", torn, Handed)
_asked("isinstance", lambda x: (x.mul(2) if isinstance(x.add(1), TwoTensor) else x).a, Hooked)
_asked("sizes", lambda x: x.a * x.shape[0], Hooked)
_asked("function", lambda x: F.linear(x, x.a).b, Hooked)
