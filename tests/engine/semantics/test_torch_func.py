"""`torch.func`: one graph, results and gradients as eager's, also through AOTAutograd."""

import dynacheck
import pytest
import torch
from dynacheck import versions
from engine.semantics.differentiating import results_and_gradients
from torch import func

torch.manual_seed(0)
LINEAR = torch.nn.Linear(3, 3)
W = torch.randn(3, requires_grad=True)


def second_derivative(x):
    return func.grad(lambda v: func.grad(lambda u: (u * v * W).sin().sum())(v).sum())(x[0])


def gradients_of_structures(x):
    def loss(v, table):
        return (v * table["w"]).sum() + (table["more"][0] ** 2).sum(), {"kept": v * W}

    return func.grad_and_value(loss, argnums=(1, 0), has_aux=True)(x, {"w": W, "more": [x * 2]})


def batched(x):
    return func.vmap(lambda a, b: (a * b["k"] + W, [b["k"].sum()]), in_dims=(0, {"k": 1}), out_dims=(1, [0]))(
        x, {"k": x.T * 2}
    )


def nested_batches(x):
    return func.vmap(func.vmap(lambda a: a * 2 + W.sum()))(x)


def per_sample(x):
    weights = dict(LINEAR.named_parameters())

    def loss(weights, v):
        return func.functional_call(LINEAR, weights, (v,)).pow(2).sum()

    return func.vmap(func.grad(loss), in_dims=(None, 0))(weights, x)


def pushed(x):
    return func.jvp(lambda v, u: ({"o": (v * u * W).sin()}, v + 1), (x, x + 1), (x * 2, x), has_aux=True)


def pulled(x):
    out, pullback = func.vjp(lambda v: (v * W).sin(), x)
    return pullback(out), pullback(out * 2)


def jacobians(x):
    return func.jacrev(lambda a, b: (a * b, b.sum()), argnums=(0, 1))(x[0], x[0] * W), func.jacfwd(torch.sin)(
        x[0]
    )


def hessians(x):
    return func.hessian(lambda v: (v.sin() * W).sum())(x[0])


def in_place_inside(x):
    return func.vmap(lambda v: v.clone().add_(W).mul_(2))(x)


def keeps_a_shape(x):
    shapes = []
    out = func.vmap(lambda v: shapes.append(v.shape) or v * 2)(x)
    return out, shapes


PROGRAMS = [
    second_derivative, gradients_of_structures, batched, nested_batches, per_sample, pushed, pulled, jacobians, hessians,
    in_place_inside, keeps_a_shape,
]  # fmt: skip


def outcome(fn, x):
    return results_and_gradients(fn, x, [W, *LINEAR.parameters()])


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_eager(program, backend):
    if program is jacobians and not versions.torch_since(2, 13):
        pytest.skip(
            "jacrev with several arguments looks at values of tensors inside of torch.func before torch 2.13"
        )
    dynacheck.reset()
    compiled = dynacheck.compile(program, backend=backend, fullgraph=True)
    with dynacheck.observe() as report:
        for x in (torch.rand(2, 3), torch.rand(2, 3)):
            for one, other in zip(outcome(program, x), outcome(compiled, x), strict=True):
                torch.testing.assert_close(other, one)
    assert len(report.graphs) == 1 and not report.graph_breaks


@pytest.mark.parametrize(
    "program",
    [
        lambda x: func.grad(lambda v: v * 2)(x),
        lambda x: func.grad(lambda v: v.sum(), argnums=2)(x),
        lambda x: func.grad(lambda v: (v.sum(), 3), has_aux=True)(x),
        lambda x: func.vmap(lambda v: v, in_dims=5)(x),
        lambda x: func.vmap(lambda v: 3)(x),
        lambda x: func.vmap(lambda v: v + torch.rand(3))(x),
        lambda x: func.jvp(torch.sin, (x,), (x, x)),
        lambda x: func.vjp(torch.sin, x)[1]((x, x)),
        lambda x: func.vmap(lambda v: v.sum().item())(x),
    ],
)
def test_misuse_says_what_eager_says(program):
    x = torch.rand(2, 3)
    with pytest.raises(Exception) as wanted:  # noqa: PT011 (whichever it is)
        program(x)
    dynacheck.reset()
    with pytest.raises(type(wanted.value)) as found:
        dynacheck.compile(program, backend="eager")(x)
    assert str(found.value) == str(wanted.value)


def test_a_tensor_that_a_transform_must_not_let_out():
    def f(x):
        kept = []
        out = func.vmap(lambda v: kept.append(v * 2) or v.sin())(x)
        return out, kept

    out, kept = dynacheck.compile(f, backend="eager")(torch.rand(2, 3))
    assert out.shape == (2, 3) and len(kept) == 1
