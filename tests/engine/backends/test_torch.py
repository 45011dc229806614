"""torch's own backends by name, forward and backward."""

from __future__ import annotations

import dynacheck
import pytest
import torch
from torch import nn


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2))


def same(compiled, plain, *args):
    one = [
        a.detach().clone().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in args
    ]
    other = [
        a.detach().clone().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in args
    ]
    got, wanted = compiled(*one), plain(*other)
    torch.testing.assert_close(got, wanted)
    if wanted.requires_grad:
        got.sum().backward()
        wanted.sum().backward()
    for a, b in zip(one, other):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(a, b)
            torch.testing.assert_close(a.grad, b.grad)


BACKENDS = ["aot_eager", "aot_eager_decomp_partition", "check"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_forward_and_backward_with_changing_sizes(backend):
    net = model()

    def f(x, n):
        return net(x).sum(-1) * n * x.shape[0]

    compiled = dynacheck.compile(f, backend=backend)
    with dynacheck.observe() as report:
        for size in (3, 4, 5, 1):
            same(compiled, f, torch.randn(size, 4, requires_grad=True), 2.0)
    assert [c.outcome for c in report.calls] == ["miss", "miss", "hit", "miss"]
    assert not report.failures


@pytest.mark.parametrize("backend", BACKENDS)
def test_training_steps(backend):
    nets = [model(), model()]
    compiled = dynacheck.compile(nets[0], backend=backend)
    optimizers = [torch.optim.SGD(net.parameters(), 0.1) for net in nets]
    for _ in range(3):
        x = torch.randn(5, 4)
        for call, optimizer in zip((compiled, nets[1]), optimizers):
            call(x).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    for one, other in zip(nets[0].parameters(), nets[1].parameters()):
        torch.testing.assert_close(one, other)
    assert len(dynacheck.cache_entries(compiled)) <= 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_writes_to_arguments(backend):
    def f(x, y):
        x.add_(y)
        return x * 2

    compiled = dynacheck.compile(f, backend=backend)
    same(compiled, f, torch.ones(3), torch.ones(3))
    same(compiled, f, torch.ones(3), torch.ones(3))


@pytest.mark.parametrize("backend", BACKENDS)
def test_aliased_arguments(backend):
    def f(x, y):
        x.add_(1)
        return x + y

    compiled = dynacheck.compile(f, backend=backend)
    base = torch.ones(4)
    for _ in range(2):
        one, other = torch.ones(4), torch.ones(4)
        torch.testing.assert_close(compiled(one[:2], one[:2]), f(other[:2], other[:2]))
        torch.testing.assert_close(compiled(one[:2], one[2:]), f(other[:2], other[2:]))
        torch.testing.assert_close(compiled(base, torch.zeros(4)), f(base.clone() - 1, torch.zeros(4)))
        base = torch.ones(4)


@pytest.mark.parametrize("dynamic", [True, None])
def test_symbols_reach_the_backend(dynamic):
    def f(x, n):
        return x.reshape(-1, 2).sum(0) * n + x.numel()

    compiled = dynacheck.compile(f, backend="aot_eager", dynamic=dynamic)
    for size, n in ((4, 3), (6, 4), (8, 5)):
        same(compiled, f, torch.randn(size, requires_grad=True), n)
        same(compiled, f, torch.randn(size), float(n))


def test_guards_that_lowering_added_hold():
    """AOTAutograd specialises on what the graph alone does not show: storage that two inputs share."""
    base = torch.randn(6)

    def f(x, y):
        x.mul_(2)
        return x.sum() + y.sum()

    compiled = dynacheck.compile(f, backend="aot_eager")
    for x, y in ((base[:3], base[3:]), (base[:4], base[2:])):
        copy = base.clone()
        offset, length = y.storage_offset(), len(x)
        wanted = f(copy[:length], copy[offset:])
        torch.testing.assert_close(compiled(x, y), wanted)
        torch.testing.assert_close(base, copy)


def test_modes_and_options_go_to_the_backend():
    with pytest.raises(RuntimeError, match="nonsense"):
        dynacheck.compile(lambda x: x + 1, backend="inductor", options={"nonsense": 1})
    with pytest.raises(RuntimeError, match="fastest"):
        dynacheck.compile(lambda x: x + 1, backend="inductor", mode="fastest")


@pytest.mark.slow
def test_inductor():
    net = model()
    compiled = dynacheck.compile(net)
    for size in (3, 4, 5):
        same(compiled, net, torch.randn(size, 4, requires_grad=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
@pytest.mark.parametrize("backend", ["cudagraphs", "inductor"])
def test_cudagraphs(backend):
    net = model().cuda()
    options = {"mode": "reduce-overhead"} if backend == "inductor" else {}
    compiled = dynacheck.compile(net, backend=backend, **options)
    for _ in range(4):
        same(compiled, net, torch.randn(3, 4, device="cuda"))
