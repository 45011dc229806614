"""Exact differences of the compilation counters over a block, the formula in a comment."""

import torch
from piecewise import Model


@torch.no_grad()
def test_simple_piecewise_compile(dynacheck):
    model = dynacheck.compile(Model())
    with dynacheck.expect(
        graphs=2,  # before and after attention; all layers share them
        graph_breaks=1,  # distinct places: all layers break at one line
        recompiles=0,
    ):
        model(torch.randn(3, 8))
    with dynacheck.expect(graphs=0, recompiles=0):
        for _ in range(3):
            model(torch.randn(3, 8))
