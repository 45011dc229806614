"""Four ways in which a compiled model degrades while its results stay right. Every test here fails."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from examples.models import Encoder


class Counting(nn.Module):
    """Keeps a step counter in a Python int."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.steps = 0

    def forward(self, x: Tensor) -> Tensor:
        self.steps += 1
        warmup = min(1.0, self.steps / 100)
        return self.linear(x) * warmup


def normalised(x: Tensor) -> Tensor:
    norm = x.norm(dim=-1, keepdim=True)
    print("normalising", tuple(x.shape))
    return x / norm


class Chatty(nn.Module):
    """Calls a helper in which someone left a print."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return normalised(self.linear(x)) + 1


@pytest.mark.max_recompiles(0)
def test_counter():
    model = torch.compile(Counting())
    for _ in range(5):
        model(torch.randn(4, 8))


@pytest.mark.max_graphs(1)
@pytest.mark.max_graph_breaks(0)
def test_print():
    torch.compile(Chatty())(torch.randn(4, 8))


@pytest.mark.max_recompiles(1)
def test_batch_of_one():
    model = torch.compile(Encoder().eval())
    for size in (8, 4, 1):  # the second makes the batch dynamic, but 1 is always an entry of its own
        model(torch.randint(1, 100, (size, 16)))


@pytest.mark.max_recompiles(0)
def test_changed_float():
    encoder = Encoder().eval()
    model = torch.compile(encoder)
    model(torch.randint(1, 100, (8, 16)))
    encoder.scale = 0.6
    model(torch.randint(1, 100, (8, 16)))
