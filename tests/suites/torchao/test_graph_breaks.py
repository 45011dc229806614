"""Frame counts: one for a whole model, two around a known break, and none thrown away."""

import pytest
import torch
from float8 import ScaledLinear, swap
from torch import nn


def model():
    return swap(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)))


class TestGraphBreaks:
    @pytest.mark.dynacheck(graphs=1, graph_breaks=0)
    def test_float8_graph(self):
        compiled = torch.compile(model())
        compiled(torch.randn(4, 8)).sum().backward()

    @pytest.mark.dynacheck(graphs=2, graph_breaks=1)
    def test_graph_break_in_the_middle(self):
        linear = ScaledLinear(8, 8)

        @torch.compile
        def fn(x):
            y = linear(x)
            torch._dynamo.graph_break()
            return linear(y)

        fn(torch.randn(4, 8))

    @pytest.mark.parametrize("size", [(1, 8), (4, 8), (16, 8)])
    @pytest.mark.dynacheck(graphs=1, recompiles=0)
    def test_compile(self, size):
        compiled = torch.compile(model().eval())
        for _ in range(2):
            compiled(torch.randn(size))
