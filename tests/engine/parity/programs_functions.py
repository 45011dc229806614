"""Operators that take functions (row 38): `torch.cond` and its relatives, checkpoints, `torch.func`."""

import torch
from parity.harness import registry
from torch._higher_order_ops import scan, while_loop
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
