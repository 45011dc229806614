"""Exact differences of the compilation counters over a block, the formula in a comment."""

import pytest
import torch
from piecewise import Model, counter


@pytest.fixture
def pieces():
    counter.pieces = counter.capturable = 0
    return counter


@torch.no_grad()
@pytest.mark.parametrize("layers", [1, 2])
def test_simple_piecewise_compile(dynacheck, pieces, layers):
    model = Model(layers)
    with dynacheck.expect(
        graphs=1,  # the whole forward; what the backend splits it into is its own
        graph_breaks=0,
        recompiles=0,
        cache_entries=1,
    ):
        model(torch.randn(3, 8))
    assert pieces.pieces == 2 * layers + 1  # before, between and after attention, and attention itself
    assert pieces.capturable == 1 + layers


@torch.no_grad()
def test_no_request_compiles(dynacheck):
    model = Model()
    model(torch.randn(16, 8))
    with dynacheck.steady():
        for tokens in (2, 7, 16, 300):
            model(torch.randn(tokens, 8))


@torch.no_grad()
def test_models_of_one_shape_share_the_entry(dynacheck, pieces):
    with dynacheck.expect(graphs=1, recompiles=0):
        for _ in range(3):
            Model()(torch.randn(4, 8))
    assert pieces.pieces == 5
    assert [call.outcome for call in dynacheck.report.calls] == ["miss", "hit", "hit"]
