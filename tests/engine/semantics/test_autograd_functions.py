"""`torch.autograd.Function`: results, gradients and second gradients as eager's, also through AOTAutograd."""

import dynacheck
import pytest
import torch
from torch import func
from torch.autograd.function import once_differentiable

torch.manual_seed(0)
W = torch.randn(3, requires_grad=True)
LINEAR = torch.nn.Linear(3, 3)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, k):
        ctx.save_for_backward(x, w)
        ctx.k = {"value": k}
        return x * w * k

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        k = ctx.k["value"]
        return grad * w * k, (grad * x * k).sum(0) if ctx.needs_input_grad[1] else None, None


class Pair(torch.autograd.Function):
    @staticmethod
    def forward(x, k):
        return x.exp() * k, x.argmax(), 7

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[0])

    @staticmethod
    def backward(ctx, grad, _, __):
        (made,) = ctx.saved_tensors
        return grad * made, None


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * 2 * ctx.saved_tensors[0]


class Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x


class Lazy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, one, other):
        return one * 2 if other is None else one * 2 + other * 3


class Closing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return LINEAR(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * LINEAR.weight.sum()


class Dirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Mapped(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, grad):
        return grad * 3 * ctx.saved_tensors[0]


PROGRAMS = {
    "saves": lambda x: Scaled.apply(x, W, 3) + 1,
    "needs_one": lambda x: Scaled.apply(x.detach(), W, 3) + x,
    "twice": lambda x: Scaled.apply(Scaled.apply(x, W, 2), W, 3),
    "one_tensor_twice": lambda x: Times.apply(x, x),
    "pair": lambda x: Pair.apply(x, 2)[:2],
    "once": lambda x: Once.apply(x) * 2,
    "lazy": lambda x: Lazy.apply(x)[0],
    "closing": lambda x: Closing.apply(x),
    "dirty": lambda x: Dirty.apply(x * 1) + 1,
    "under_grad": lambda x: func.grad(lambda v: Mapped.apply(v).sum())(x) + x,
    "under_vmap": lambda x: func.vmap(lambda v: Mapped.apply(v))(x),
}


def outcome(fn, x):
    x = x.clone().requires_grad_()
    results, _ = torch.utils._pytree.tree_flatten(fn(x))
    loss = sum(r.sum() for r in results if r.requires_grad)
    grads = torch.autograd.grad(loss, [x, W, *LINEAR.parameters()], allow_unused=True)
    return [*results, *(torch.zeros(()) if g is None else g for g in grads)]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_eager(name, backend):
    program = PROGRAMS[name]
    dynacheck.reset()
    compiled = dynacheck.compile(program, backend=backend, fullgraph=name != "dirty")
    with dynacheck.observe() as report:
        for x in (torch.rand(2, 3), torch.rand(2, 3)):
            for one, other in zip(outcome(program, x), outcome(compiled, x), strict=True):
                torch.testing.assert_close(other, one)
    assert report.graphs and (name == "dirty" or len(report.graphs) == 1)


def second(fn, x):
    (grad,) = torch.autograd.grad(fn(x).pow(2).sum(), x, create_graph=True)
    return torch.autograd.grad(grad.sum(), W)[0]


def test_second_gradients():
    x = torch.rand(2, 3, requires_grad=True)
    compiled = dynacheck.compile(PROGRAMS["saves"], backend="eager")
    torch.testing.assert_close(second(compiled, x), second(PROGRAMS["saves"], x))


@pytest.mark.parametrize("backend", [None, "eager", "aot_eager"])
def test_a_backward_that_is_not_differentiable_again(backend):
    program = PROGRAMS["once"] if backend is None else dynacheck.compile(PROGRAMS["once"], backend=backend)
    x = torch.rand(3, requires_grad=True)
    (grad,) = torch.autograd.grad(program(x).pow(2).sum(), x, create_graph=True)
    with pytest.raises(
        RuntimeError, match="once_differentiable|does not require grad|does not currently support double"
    ):
        grad.sum().backward()


def test_side_effects_of_forward_happen_once():
    seen = []

    class Counted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append(x.shape[0])
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    compiled = dynacheck.compile(lambda x: Counted.apply(x) + 1, backend="eager", fullgraph=True)
    for n in range(1, 4):
        compiled(torch.ones(3, requires_grad=True))
        assert seen == [3] * n


def test_a_backward_that_raises_raises_when_it_runs():
    class Raising(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("not differentiable")

    out = dynacheck.compile(lambda x: Raising.apply(x) + 1, backend="eager", fullgraph=True)(
        torch.ones(3, requires_grad=True)
    )
    torch.testing.assert_close(out, torch.full((3,), 3.0), check_stride=False)
    with pytest.raises(ValueError, match="not differentiable"):
        out.sum().backward()
