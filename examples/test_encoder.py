"""A small transformer encoder: batches and lengths that vary, and the same results as without compiling."""

from __future__ import annotations

import pytest
import torch

from examples.models import Encoder


def batch(size: int, length: int) -> torch.Tensor:
    return torch.randint(1, 100, (size, length))


@pytest.mark.max_graphs(1)
@pytest.mark.max_graph_breaks(0)
@pytest.mark.max_recompiles(0)
def test_inference():
    model = torch.compile(Encoder().eval())
    with torch.no_grad():
        for _ in range(3):
            assert model(batch(8, 16)).shape == (8, 32)


@pytest.mark.max_graphs(1)
@pytest.mark.max_graph_breaks(0)
@pytest.mark.max_recompiles(0)
def test_training_step():
    model = Encoder().train()
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(3):
        loss = compiled(batch(8, 16)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert torch.isfinite(loss)


@pytest.mark.max_graph_breaks(0)
@pytest.mark.dynacheck(max_recompiles=0, allow={"recompile:size:ids@*": 1})
def test_one_recompile_makes_the_length_dynamic():
    model = torch.compile(Encoder().eval())
    with torch.no_grad():
        for length in (16, 24, 32, 40):
            model(batch(8, length))


@pytest.mark.max_graph_breaks(0)
def test_equal_to_eager(dynacheck):
    dynacheck.check(Encoder(), [batch(8, 16), batch(8, 16)], grad=True)
