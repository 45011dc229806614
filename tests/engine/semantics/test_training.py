"""Optimizers compiled: parameters, state and settings after some steps are those of plain Python."""

import copy

import dynacheck
import pytest
import torch
from torch import nn

OPTIMIZERS = {
    "SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "Adam": {"weight_decay": 0.01},
    "AdamW": {"amsgrad": True, "maximize": True},
    "Adamax": {},
    "NAdam": {},
    "RAdam": {},
    "Adagrad": {"lr_decay": 0.1},
    "Adadelta": {},
    "RMSprop": {"momentum": 0.5, "centered": True},
    "Rprop": {},
    "ASGD": {},
}


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))


def steps(net, optimizer, step, n=5):
    torch.manual_seed(1)
    for _ in range(n):
        optimizer.zero_grad()
        net(torch.randn(3, 4)).square().sum().backward()
        step()


def settings(optimizer):
    return [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_of_plain_python(name, foreach, seen):
    nets = [model(), model()]
    kind = getattr(torch.optim, name)
    plain, compiled = (kind(n.parameters(), lr=0.05, foreach=foreach, **OPTIMIZERS[name]) for n in nets)
    steps(nets[0], plain, plain.step)
    steps(nets[1], compiled, dynacheck.compile(compiled.step, backend="eager"))
    for one, other in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert settings(plain) == settings(compiled)
    states = [list(o.state.values()) for o in (plain, compiled)]
    for one, other in zip(*states, strict=True):
        assert set(one) == set(other)
        for key in one:
            torch.testing.assert_close(
                one[key], other[key], rtol=1e-4, atol=1e-5, check_dtype=key != "mu_product"
            )
    assert seen.graphs and not seen.failures


def test_loaded_state_is_used(seen):
    nets = [model(), model()]
    plain, compiled = (torch.optim.Adam(n.parameters(), lr=0.05) for n in nets)
    step = dynacheck.compile(compiled.step, backend="eager")
    steps(nets[0], plain, plain.step)
    steps(nets[1], compiled, step)
    compiled.load_state_dict(copy.deepcopy(plain.state_dict()))
    nets[1].load_state_dict(nets[0].state_dict())
    steps(nets[0], plain, plain.step, 2)
    steps(nets[1], compiled, step, 2)
    for one, other in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert seen.graphs


def test_a_parameter_that_gets_its_first_gradient_later(seen):
    nets = [model(), model()]
    optimizers = [torch.optim.Adam(n.parameters(), lr=0.05) for n in nets]
    compiled = dynacheck.compile(optimizers[1].step, backend="eager")
    for net, step in zip(nets, (optimizers[0].step, compiled), strict=True):
        for number in range(4):
            for i, p in enumerate(net.parameters()):
                p.grad = torch.full_like(p, 0.5) if number >= 2 or i else None
            step()
    for one, other in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert len(seen.recompiles) == 1


def test_an_error_of_the_optimizer_is_raised():
    embedding = nn.Embedding(4, 2, sparse=True)
    optimizer = torch.optim.Adam(embedding.parameters())
    embedding(torch.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="sparse gradients"):
        dynacheck.compile(optimizer.step, backend="eager")()


def test_a_break_in_an_optimizer_is_shown_at_the_users_call(seen):
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    step = dynacheck.compile(optimizer.step, backend="eager")
    steps(net, optimizer, step, 1)
    assert [found.file.rpartition("/")[2] for found in seen.graph_breaks] == ["test_training.py"]
    assert [found.reason for found in seen.graph_breaks] == ["DC104"]


def test_what_depends_on_being_compiled_is_compiled_without_operations(seen):
    def f(x):
        return "compiled" if torch.compiler.is_compiling() else "plain"

    compiled = dynacheck.compile(f, backend="eager")
    assert [compiled(torch.ones(2)), compiled(torch.ones(2))] == ["compiled", "compiled"]
    assert [call.outcome for call in seen.calls] == ["miss", "hit"]


@pytest.mark.parametrize("scale", [2.0, torch.tensor(2.0)])
def test_factors_that_are_tensors(scale, seen):
    def f(x, y, z):
        x = x.clone()
        x.add_(y, alpha=scale)
        x.addcdiv_(y, z, value=scale)
        return x, torch._foreach_pow(scale, [y, z]) if isinstance(scale, torch.Tensor) else None

    args = torch.ones(3), torch.rand(3), torch.rand(3) + 1
    torch.testing.assert_close(dynacheck.compile(f, backend="eager", fullgraph=True)(*args), f(*args))
    assert seen.graphs
