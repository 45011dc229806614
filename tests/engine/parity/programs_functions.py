"""Operators that take functions (row 38): `torch.cond` and its relatives, checkpoints, `torch.func`."""

import torch
from parity.harness import registry
from torch import func
from torch._higher_order_ops import associative_scan, scan, while_loop
from torch._higher_order_ops.map import map as map_items
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

PROGRAMS, program = registry()


def xs(*shapes):
    return [(torch.ones(shape),) for shape in shapes]


@program("cond_nested", 38, graphs=1)
def _():
    def f(x):
        def deep(v):
            return torch.cond(v.sum() > 6, lambda a: a + x, lambda a: a * x, (v,))

        return torch.cond(x.sum() > 0, deep, lambda v: v - 1, (x,))

    return f, [(torch.ones(3),), (torch.full((3,), 3.0),), (-torch.ones(3),)]


@program("cond_structures", 38, graphs=1)
def _():
    def f(x, k):
        y = x * 2
        return torch.cond(
            x.sum() > 0,
            lambda v: {"a": v * y + k, "b": [v.sin()]},
            lambda v: {"a": v + y, "b": [v.cos()]},
            [x],
        )

    return f, [(torch.ones(3), 3), (-torch.ones(3), 3)]


@program("cond_of_size", 38, graphs=2, recompiles=1)
def _():
    def f(x):
        return torch.cond(x.sum() > 3, lambda v: v + x.shape[0], lambda v: v * v.shape[0], (x,))

    return f, xs(2, 3, 4, 5)


@program("cond_on_size", 38, graphs=2, recompiles=1)
def _():
    def f(x):
        return torch.cond(x.shape[0] > 3, lambda v: v + 1, lambda v: v * 2, (x,))

    return f, xs(2, 3, 4, 5)


@program("cond_constant", 38, graphs=2, recompiles=1)
def _():
    def f(x, flag):
        return torch.cond(flag, lambda v: v + 1, lambda v: v * 2, (x,))

    return f, [(torch.ones(3), True), (torch.ones(3), False)]


def _refused(name, make_true, **figures):
    @program(name, 38, **{"graphs": 0, **figures})
    def _():
        seen = []

        def f(x):
            return torch.cond(x.sum() > 0, make_true(seen), lambda v: v - 1, (x,))

        return f, xs(3)


_refused("cond_returns_its_input", lambda seen: lambda v: v)
_refused("cond_writes_to_its_input", lambda seen: lambda v: v.add_(1))
_refused("cond_has_a_side_effect", lambda seen: lambda v: seen.append(1) or v + 1)
_refused("cond_prints", lambda seen: lambda v: print("true") or v + 1)


@program("checkpointed", 38, graphs=1)
def _():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(4))

        def forward(self, x):
            for layer in self.layers:
                x = checkpoint(lambda v, layer=layer: torch.relu(layer(v)), x, use_reentrant=False)
            return x

    return Net(), xs((2, 3), (2, 3))


@program("checkpointed_sizes", 38, graphs=2, recompiles=1)
def _():
    def block(x, y, scale=1.0):
        return (x * y).sin() * scale, {"rest": [x - y, 3, x]}

    def f(x):
        return checkpoint(block, x, x + 1, scale=0.5, use_reentrant=False, preserve_rng_state=False)

    return f, xs(2, 3, 4)


@program("checkpointed_drops_out", 38, graphs=1)
def _():
    def f(x):
        return checkpoint(lambda v: torch.nn.functional.dropout(v, 0.5), x, use_reentrant=False)

    return f, xs(64, 64)


def _checkpointed(name, make, **figures):
    @program(name, 38, **{"graphs": 0, "breaks": 1, **figures})
    def _():
        seen = []
        block = make(seen)

        def f(x):
            return checkpoint(block, x, use_reentrant=False), len(seen)

        return f, xs(3, 3)


_checkpointed("checkpointed_prints", lambda seen: lambda v: print("block") or v + 1)
_checkpointed("checkpointed_side_effect", lambda seen: lambda v: seen.append(1) or v + 1)


@program("checkpoint_after_operation", 38, graphs=2, breaks=1)
def _():
    def block(v):
        print("block")
        return v + 1

    def f(x):
        y = x * 2
        return checkpoint(block, y, use_reentrant=False) * 3

    return f, xs(3, 3)


@program("counts_in_checkpoint", 38, graphs=0, breaks=1)
def _():
    def f(x):
        n = 0

        def block(v):
            nonlocal n
            n += 1
            return v + n

        return checkpoint(block, x, use_reentrant=False), n

    return f, xs(3, 3)


@program("while_loop_closure", 38, graphs=1)
def _():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x, n):
            return while_loop(lambda i, v: i < n, lambda i, v: (i + 1, self.linear(v)), (torch.tensor(0), x))

    return Net().requires_grad_(False), [(torch.ones(2, 3), torch.tensor(n)) for n in (3, 0, 5)]


def loop(name, **figures):
    def add(fn):
        program(f"while_loop_{name}", 38, graphs=1, **figures)(lambda: (fn, xs((3, 4), (3, 4))))

    return add


loop("over_a_number")(lambda x: while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (0, x * 1)))
loop("that_never_runs")(lambda x: while_loop(lambda i, v: False, lambda i, v: (i + 1, v * 2), (0, x * 1)))
loop("to_a_size")(lambda x: while_loop(lambda i, v: i < 1, lambda i, v: (v.shape[0], v * 2), (0, x * 1)))


@program("while_loop_from_a_size", 38, graphs=2, recompiles=1)
def _():
    def f(x):
        n, y = while_loop(lambda i, v: i < 7, lambda i, v: (i + 1, v * i), (x.shape[0], x * 1))
        return y + n

    return f, xs((3, 2), (4, 2), (5, 2))


@loop("over_numbers_in_structures")
def _(x):
    step = lambda at, v: ({"n": at["n"] + 1}, (v[0] * at["n"], v[1] + 1))
    return while_loop(lambda at, v: at["n"] * 2 < v[0].shape[0], step, ({"n": 0}, (x * 1, x + 1)))


@program("while_loop_of_dict", 38, graphs=2, recompiles=1)
def _():
    def f(x):
        found = while_loop(
            lambda state: state["n"] < 4, lambda state: ({"n": state["n"] + 1, "x": state["x"] * 2},),
            ({"n": torch.tensor(0), "x": x},),
        )  # fmt: skip
        return found[0]["x"]

    return f, xs(2, 3, 4)


@program("scanned", 38, graphs=2, recompiles=1)
def _():
    def f(x):
        return scan(lambda carry, item: (carry + item, (carry * 2, item.cos())), x[0] * 0, x, dim=0)

    return f, xs((2, 3), (4, 3), (5, 3))


@program("mapped", 38, graphs=2, recompiles=1)
def _():
    shift = torch.ones(3)

    def f(x, y):
        return map_items(lambda pair, more: {"sum": pair[0] + more, "of": pair[1] * shift}, [x, x * 2], y)

    return f, [(torch.ones(n, 3), torch.ones(3)) for n in (2, 4, 5)]


@program("checkpointed_segments", 38, graphs=0, breaks=1)
def _():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(4)))

        def forward(self, x):
            return checkpoint_sequential(self.layers, 2, x, use_reentrant=False)

    return Net(), xs((2, 3), (2, 3))


def _transformed(name, fn, calls, **figures):
    @program(name, 38, **{"graphs": 1, **figures})
    def _():
        return fn, calls()


class Made:
    """What transforms are tried on."""

    weight = torch.tensor([1.0, 2.0, 3.0])


TRIPLES = lambda: [(torch.ones(3),), (torch.full((3,), 2.0),)]  # noqa: E731
SIZES = lambda: xs((2, 3), (4, 3), (5, 3))  # noqa: E731

_transformed("func_grad", lambda x: func.grad(lambda v: (v * Made.weight).sin().sum())(x), TRIPLES)
_transformed(
    "func_grad_aux",
    lambda x: func.grad(lambda v, d: ((v * d["a"]).sum(), {"k": v * 2}), argnums=(1, 0), has_aux=True)(
        x, {"a": x + 1}
    ),
    TRIPLES,
)
_transformed("func_grad_and_value", lambda x: func.grad_and_value(lambda v: v.cos().sum())(x), TRIPLES)
_transformed(
    "func_second_derivative",
    lambda x: func.grad(lambda v: func.grad(lambda u: (u * v).sin().sum())(v).sum())(x),
    TRIPLES,
)
_transformed(
    "func_vmap", lambda x: func.vmap(lambda v: v * Made.weight + v.sum())(x), SIZES, graphs=2, recompiles=1
)
_transformed(
    "func_vmap_dims",
    lambda x: func.vmap(lambda a, b: (a * b["k"], [a.sum()]), in_dims=(1, {"k": None}), out_dims=(1, [0]))(
        x, {"k": x[:, 0]}
    ),
    lambda: xs((3, 3)),
)
_transformed("func_vmap_random", lambda x: func.vmap(lambda v: v + torch.rand(3), randomness="different")(x), SIZES,
             graphs=2, recompiles=1)  # fmt: skip
_transformed(
    "func_per_sample_gradients",
    lambda x: func.vmap(func.grad(lambda w, v: (w * v).sin().sum()), in_dims=(None, 0))(Made.weight, x),
    lambda: xs((2, 3), (2, 3)),
)
_transformed("func_jvp", lambda x: func.jvp(lambda v: (v * Made.weight).sin(), (x,), (x * 2,)), TRIPLES)


def _pulled_back(x):
    out, pullback = func.vjp(lambda v: (v * Made.weight).sin(), x)
    return out, pullback(out * 2), pullback(torch.ones_like(out))


_transformed("func_vjp", _pulled_back, TRIPLES)
_transformed(
    "func_jacrev", lambda x: func.jacrev(lambda a, b: (a * b, b.sum()), argnums=(0, 1))(x, x * 2), TRIPLES
)
_transformed("func_jacfwd", lambda x: func.jacfwd(lambda v: v.sin() * Made.weight)(x), TRIPLES)
_transformed("func_hessian", lambda x: func.hessian(lambda v: (v.sin() * v).sum())(x), TRIPLES)
_transformed("func_made_outside", func.grad(lambda v: v.sin().sum()), TRIPLES)
_transformed("func_vmap_made_outside", func.vmap(lambda v: v.sin().sum()), lambda: xs((2, 3), (2, 3)))


@program("func_functional_call", 38, graphs=1)
def _():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x):
            weights = {name: found * 2 for name, found in self.linear.named_parameters()}

            def loss(weights, x):
                return func.functional_call(self.linear, weights, (x,)).pow(2).sum()

            return func.grad(loss)(weights, x)

    return Net(), xs(3, 3)


def _breaking(name, transform, **figures):
    @program(name, 38, **{"graphs": 2, "breaks": 3, **figures})
    def _():
        def inner(v):
            print("inner")
            return v.sin().sum()

        def f(x):
            y = x + 1
            return transform(inner)(y) * 2

        return f, xs(3, 3)


_breaking("func_grad_prints", func.grad)
_breaking("func_vmap_prints", func.vmap)
_breaking("func_jacfwd_prints", func.jacfwd)


@program("func_grad_of_branch", 38, graphs=2, breaks=3)
def _():
    def f(x):
        return func.grad(lambda v: v.sum() if v.sum() > 0 else v.sin().sum())(x * 2) + 1

    return f, TRIPLES()


@program("func_vmap_side_effect", 38, graphs=2, recompiles=1)
def _():
    seen = []

    def f(x):
        return func.vmap(lambda v: seen.append(tuple(v.shape)) or v.sin())(x), len(seen)

    return f, xs((2, 3), (2, 3))


@program("associative_scanned", 38, graphs=1)
def _():
    def f(x):
        return associative_scan(lambda a, b: a * b, x, dim=0, combine_mode="generic")

    return f, xs((4, 3), (4, 3))


def _differentiable(name, forward, backward, apply=lambda cls, x: cls.apply(x), **figures):
    @program(name, 38, **{"graphs": 1, **figures})
    def _():
        cls = type(
            "Custom",
            (torch.autograd.Function,),
            {"forward": staticmethod(forward), "backward": staticmethod(backward)},
        )

        def f(x):
            y = x * 1
            return apply(cls, y) + 1

        return f, [(torch.ones(3, requires_grad=True),), (torch.ones(3, requires_grad=True),)]


def _scaled(ctx, x, k):
    ctx.save_for_backward(x, x.sin())
    ctx.k = k
    return x * k


def _scaled_backward(ctx, grad):
    x, sine = ctx.saved_tensors
    return (grad * sine * ctx.k * x if ctx.needs_input_grad[0] else None), None


def _counted(ctx, x):
    SEEN.append(1)
    return x * 2


def _printed_backward(ctx, grad):
    print("backward")
    return grad * 2


def _marked(ctx, x):
    largest = x.argmax()
    ctx.mark_non_differentiable(largest)
    return x * 2, largest


SEEN = []
twice = lambda ctx, grad: grad * 2  # noqa: E731
_differentiable("function_saves", _scaled, _scaled_backward, lambda cls, x: cls.apply(x, 3.0))
_differentiable(
    "function_without_gradient", _marked, lambda ctx, grad, _: grad * 2, lambda cls, x: sum(cls.apply(x))
)
_differentiable("function_once", lambda ctx, x: x * 2, torch.autograd.function.once_differentiable(twice))
_differentiable("function_returns_its_input", lambda ctx, x: x, twice)
_differentiable("function_side_effect", _counted, twice, graphs=2, recompiles=1)
_differentiable("function_backward_prints", lambda ctx, x: x * 2, _printed_backward, graphs=3, breaks=2)
_differentiable(
    "function_forward_prints", lambda ctx, x: print("forward") or x * 2, twice, graphs=3, breaks=3
)
_differentiable(
    "function_backward_branches", lambda ctx, x: x * 2, lambda ctx, grad: grad * 2 if grad.sum() > 0 else grad,
    graphs=3, breaks=2,
)  # fmt: skip


@program("function_with_setup", 38, graphs=2, recompiles=1)
def _():
    class Custom(torch.autograd.Function):
        @staticmethod
        def forward(x, k):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0], output)
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, grad):
            x, output = ctx.saved_tensors
            return grad * ctx.k * output * x, None

    return lambda x: Custom.apply(x, 2).sum(), [(torch.ones(n, requires_grad=True),) for n in (2, 3, 4)]
