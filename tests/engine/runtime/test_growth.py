"""Nothing grows: hits, compile/reset cycles, models compiled and dropped."""

from __future__ import annotations

import gc
import sys

import dynacheck
import pytest
import torch
from torch import nn


def blocks_after(run, n):
    run(n)
    for _ in range(3):  # classes of graph modules go after the modules
        gc.collect()
    return sys.getallocatedblocks()


def growth(run, n):
    """Allocated blocks per round, once everything is warm."""
    run(max(5, n // 10))
    before = blocks_after(run, max(3, n // 10))
    return (blocks_after(run, n) - before) / n


def hits(n):
    for _ in range(n):
        hits.compiled(hits.x)


def cycles(n):
    for _ in range(n):
        cycles.compiled(cycles.x)
        dynacheck.reset()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x).relu()


def models(n):
    for i in range(n):
        if i % 5 == 0:
            gc.collect()  # what isn't collected yet counts to the recompile limit
        model = Net()

        def backend(gm, example_inputs, model=model):
            return lambda *args: (model, gm(*args))[1]

        compiled = dynacheck.compile(model, backend=backend)
        model.compiled = [compiled]
        compiled(torch.ones(3))
        assert dynacheck.cache_entries(Net)[0].hits == 0
    gc.collect()


@pytest.mark.parametrize("n", [2000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_hits(n, x):
    hits.compiled, hits.x = dynacheck.compile(Net(), backend="eager"), x
    assert growth(hits, n) < 0.01


@pytest.mark.parametrize("n", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_compile_and_reset(n, x):
    cycles.compiled, cycles.x = dynacheck.compile(Net(), backend="eager"), x
    assert growth(cycles, n) < 3


@pytest.mark.parametrize("n", [15, pytest.param(1000, marks=pytest.mark.slow)])
def test_models_that_their_backend_closes_over(n):
    assert growth(models, n) < 3
    assert dynacheck.cache_entries(Net) == ()
