"""A convolutional network: one graph for inference, one for training."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from examples.models import ResidualNet


@pytest.mark.max_graphs(1)
@pytest.mark.max_graph_breaks(0)
@pytest.mark.max_recompiles(0)
def test_inference():
    model = torch.compile(ResidualNet().eval())
    with torch.no_grad():
        for _ in range(3):
            assert model(torch.randn(4, 3, 32, 32)).shape == (4, 10)


@pytest.mark.max_graphs(1)
@pytest.mark.max_graph_breaks(0)
@pytest.mark.max_recompiles(0)
def test_training_step():
    model = ResidualNet().train()
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = F.cross_entropy(compiled(torch.randn(4, 3, 32, 32)), torch.randint(0, 10, (4,)))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    assert torch.isfinite(loss)


@pytest.mark.max_graph_breaks(0)
@pytest.mark.dynacheck(recompiles=1)
def test_train_and_eval_have_an_entry_each(dynacheck):
    model = torch.compile(ResidualNet())
    images = torch.randn(4, 3, 32, 32)
    model.train()(images)
    model.eval()(images)
    with dynacheck.steady():
        model.train()(images)
        model.eval()(images)
