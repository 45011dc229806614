"""Faults that real models showed, each as a small program."""

import dynacheck
import pytest
import torch


@pytest.fixture(autouse=True)
def clean():
    dynacheck.reset()
    with dynacheck.configured(raise_internal_errors=True):
        yield
    dynacheck.reset()


class Cache:
    def __init__(self):
        self.keys = None


def test_object_is_written_to_though_the_way_to_it_is_gone():
    def step(x, **kwargs):
        cache = kwargs.pop("cache")
        cache.keys = x if cache.keys is None else torch.cat([cache.keys, x])
        return cache.keys.sum()

    compiled, cache = dynacheck.compile(step, backend="eager"), Cache()
    for i in range(3):
        compiled(torch.ones(2), cache=cache)
    assert cache.keys.shape == (6,)


def test_size_alone_crosses_a_break():
    def f(x):
        n = x.shape[0] * 2
        dynacheck.graph_break()
        return x + n

    compiled = dynacheck.compile(f, backend="eager")
    for n in (3, 4, 5):
        assert torch.equal(compiled(torch.zeros(n)), torch.full((n,), 2.0 * n))


def test_strides_with_symbols():
    def f(x):
        stride = x.stride()
        return torch.as_strided(x, (2, 2), (stride[0] // 2, stride[1])) + 1

    compiled = dynacheck.compile(f, backend="eager")
    for n in (4, 6, 8):
        x = torch.randn(3, n)
        assert torch.equal(compiled(x), f(x))


@pytest.mark.parametrize("grad", [True, False])
def test_autograd_function(grad):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, upstream):
            return upstream * ctx.factor * 10, None

    def f(x):
        return Scale.apply(x, 3.0).sin().sum()

    x = torch.randn(4, requires_grad=grad)
    with dynacheck.observe() as report:
        out = dynacheck.compile(f, backend="eager")(x)
    assert torch.equal(out, f(x)) and report.counts["graphs"] == 1 and not report.graph_breaks
    if grad:
        (found,), (wanted,) = torch.autograd.grad(out, x), torch.autograd.grad(f(x), x)
        assert torch.equal(found, wanted)


def test_sizes_stay_symbols_inside_kernels():
    unfold = torch.nn.Unfold(2)
    compiled = dynacheck.compile(unfold, backend="eager")
    with dynacheck.observe() as report:
        for n in (2, 3, 5):
            compiled(torch.randn(n, 3, 4, 4))
    assert report.counts["graphs"] == 2


def test_redundant_grad_modes_and_unused_items_are_not_recorded():
    targets = []

    def backend(gm, inputs):
        targets.extend(node.target for node in gm.graph.nodes if node.op.startswith("call"))
        return gm.forward

    def f(x):
        with torch.enable_grad():
            values, _ = x.max(-1)
        with torch.no_grad():
            pass
        x[0]
        return values

    dynacheck.compile(f, backend=backend)(torch.randn(3, 4))
    assert len(targets) == 2
