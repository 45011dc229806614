"""Compiled losses: they compile whole, what can't compile is known, a recompile is told, and they are timed."""

import pytest
import torch
from losses import QLoss, discounted, soft_update, until_done
from torch import nn


def batch(seed, n=8):
    torch.manual_seed(seed)
    return {
        "obs": torch.randn(n, 4),
        "next": torch.randn(n, 4),
        "action": torch.randint(2, (n, 1)),
        "reward": torch.randn(n),
        "done": torch.arange(n) % 4 == 3,
    }


def make_loss():
    return QLoss(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2)))


@pytest.mark.dynacheck(fullgraph=True, max_recompiles=0)
def test_dqn_compile():
    loss = make_loss()
    compiled = torch.compile(loss)
    for seed in range(3):
        compiled(batch(seed)).backward()
        soft_update(loss)


@pytest.mark.dynacheck(allow=["nothing-compiled"])
def test_what_depends_on_data_does_not_compile_whole():
    with pytest.raises(torch._dynamo.exc.Unsupported, match="(?i)branch"):
        torch.compile(until_done, fullgraph=True)(batch(0))


def test_recompile_is_told(dynacheck):
    compiled = dynacheck.compile(discounted)
    rewards = torch.ones(5, 2)
    compiled(rewards, 0.9)
    with dynacheck.expect(recompiles=1):
        compiled(rewards, 0.5)
    change = dynacheck.report.recompiles[0].changes[0]
    assert (change.source, change.then, change.now) == ("gamma", 0.9, 0.5)


@pytest.mark.dynacheck(backend="eager")
def test_dqn_speed(dynacheck_benchmark):
    dynacheck_benchmark(make_loss(), batch(0))
