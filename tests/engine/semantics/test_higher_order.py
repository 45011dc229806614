"""Operators that take functions: one graph, results and gradients as eager's, also through AOTAutograd."""

import dynacheck
import pytest
import torch
from dynacheck import errors
from engine.semantics.differentiating import results_and_gradients
from torch._higher_order_ops import scan, while_loop
from torch._higher_order_ops.map import map as map_items
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
LINEAR = torch.nn.Linear(3, 3)
SHIFT = torch.randn(3, requires_grad=True)


def cond_closure(x):
    return torch.cond(x.sum() > 0, lambda v: LINEAR(v) * 2, lambda v: v - SHIFT, (x,))


def cond_nested(x):
    def deep(v):
        return torch.cond(v.sum() > 1, lambda a: a * x, lambda a: LINEAR(a) + x, (v,))

    return torch.cond(x.sum() > 0, deep, lambda v: v - SHIFT, (x,))


def cond_structure(x):
    y = x * 2
    return torch.cond(
        x.mean() > 0, lambda v: {"a": (v * y, [v.sin()])}, lambda v: {"a": (v + y, [v.cos()])}, [x]
    )


def cond_under_no_grad(x):
    with torch.no_grad():
        y = torch.cond(x.sum() > 0, lambda v: v * 2, lambda v: v * 3, (x,))
    return y * x


def checkpointed(x):
    return checkpoint(lambda v, k: torch.relu(LINEAR(v)) * k, x, SHIFT, use_reentrant=False)


def checkpointed_values(x):
    made, rest = checkpoint(lambda v: (v.sin(), {"n": 3, "same": v, "view": v[0]}), x, use_reentrant=False)
    return made * rest["view"], rest["n"], rest["same"] + 1


def checkpointed_twice(x):
    inner = lambda v: checkpoint(lambda w: LINEAR(w).sin(), v + 1, use_reentrant=False)  # noqa: E731
    return checkpoint(inner, x, use_reentrant=False) * x


def scanned(x):
    return scan(lambda carry, item: (carry + item * SHIFT, (carry * 2, item.cos())), x[0] * 0, x, dim=0)


def scanned_backwards(x):
    return scan(lambda carry, item: (carry * item, carry + 0), x[:, 0] * 0 + 1, x, dim=1, reverse=True)


def mapped(x):
    return map_items(lambda v, k: {"sum": v + k, "of": v * SHIFT}, x, x[0] * 2)


def looped(x):
    return while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * SHIFT.detach()), (torch.tensor(0), x * 1))[
        1
    ]


PROGRAMS = [
    cond_closure, cond_nested, cond_structure, cond_under_no_grad, checkpointed, checkpointed_values, checkpointed_twice,
    scanned, scanned_backwards, mapped, looped,
]  # fmt: skip
INPUTS = torch.rand(2, 3) + 0.1, -torch.rand(2, 3), torch.rand(4, 3)


def outcome(fn, x):
    return results_and_gradients(fn, x, [SHIFT, *LINEAR.parameters()])


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_eager(program, backend):
    dynacheck.reset()
    compiled = dynacheck.compile(program, backend=backend, fullgraph=True)
    with dynacheck.observe() as report:
        for x in INPUTS:
            for one, other in zip(outcome(program, x), outcome(compiled, x), strict=True):
                torch.testing.assert_close(other, one)
    assert len(report.graphs) == 2 and not report.graph_breaks  # the third input has another size


def test_a_branch_that_raises_is_not_the_programs_error():
    def refuse(v):
        raise ValueError("not this one")

    compiled = dynacheck.compile(
        lambda x: torch.cond(x.sum() > 0, refuse, lambda v: v + 1, (x,)), backend="eager"
    )
    with pytest.raises(errors.UncapturedHigherOrderOpError, match=r"torch.cond .* raises ValueError"):
        compiled(-torch.ones(3))


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (lambda v: (v, v + 1), "different structures|made outside"),
        (lambda v: v.sum(), "raises RuntimeError"),
        (lambda v: 3, "something else than tensors"),
        (lambda v: v[:1], "or a view of one"),
    ],
)
def test_what_branches_must_not_return(other, why):
    compiled = dynacheck.compile(
        lambda x: torch.cond(x.sum() > 0, lambda v: v + 1, other, (x,)), backend="eager"
    )
    with pytest.raises(errors.UncapturedHigherOrderOpError, match=why):
        compiled(torch.ones(3))


def test_tensor_kept_by_a_list_of_the_frame():
    """It may change nothing outside; eager checkpoints may."""

    def f(x):
        kept = []
        y = checkpoint(lambda v: kept.append(v * 2) or v.sin(), x, use_reentrant=False)
        return y, kept

    compiled = dynacheck.compile(f, backend="eager")
    one, other = f(torch.ones(3)), compiled(torch.ones(3))
    torch.testing.assert_close(other, one)
    with dynacheck.observe() as report:
        dynacheck.reset()
        compiled(torch.ones(3))
    assert [b.reason for b in report.graph_breaks] == ["DC123"], report.graph_breaks


def test_checkpoint_recomputes_in_aot():
    """What is kept for the backward pass is the checkpoint's input."""
    saved = []

    def f(x):
        return checkpoint(lambda v: v.sin().cos().exp(), x, use_reentrant=False)

    compiled = dynacheck.compile(f, backend="aot_eager_decomp_partition")
    x = torch.ones(64, requires_grad=True)
    compiled(x)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        compiled(x).sum().backward()
    assert len(saved) == 1
    torch.testing.assert_close(x.grad, torch.autograd.grad(f(x).sum(), x)[0])


def test_a_loop_that_never_ends():
    def f(x):
        return while_loop(lambda i, v: True, lambda i, v: (i + 1, v * 2), (0, x * 1))

    with pytest.raises(errors.UncapturedHigherOrderOpError, match="always true"):
        dynacheck.compile(f, backend="eager")(torch.ones(3))
