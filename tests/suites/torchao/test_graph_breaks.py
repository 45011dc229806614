"""Frame counts: one for a whole model, two around a known break, none thrown away; a tensor class on each side."""

import pytest
import torch
from float8 import ScaledTensor, swap, to_scaled
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend


def model():
    return swap(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)))


@pytest.mark.parametrize("fullgraph", [True, False])
@pytest.mark.parametrize("size", [(1, 8), (4, 8), (16, 8)], ids=str)
@pytest.mark.dynacheck(graphs=1, recompiles=0)
def test_forward_and_backward(size, fullgraph):
    reference, layers = model(), model()
    layers.load_state_dict(reference.state_dict())
    compiled = torch.compile(layers, fullgraph=fullgraph)
    for _ in range(2):
        x = torch.randn(size)
        expected, found = reference(x), compiled(x)
        torch.testing.assert_close(found, expected)
        expected.sum().backward()
        found.sum().backward()
    for a, b in zip(reference.parameters(), layers.parameters(), strict=True):
        torch.testing.assert_close(b.grad, a.grad)


class TestGraphBreaks:
    @pytest.mark.dynacheck(graphs=2, graph_breaks=1)
    def test_break_in_the_middle(self):
        """The tensor is made before the break and used after it."""
        counter = CompileCounterWithBackend("eager")

        @torch.compile(backend=counter)
        def fn(w):
            scaled = to_scaled(w)
            torch._dynamo.graph_break()
            return scaled.original() * 2

        w = torch.randn(4, 8)
        torch.testing.assert_close(fn(w), to_scaled(w).original() * 2)
        assert counter.frame_count == 2

    @pytest.mark.dynacheck(graphs=1, recompiles=0)
    def test_input(self):
        counter = CompileCounterWithBackend("eager")
        fn = torch.compile(lambda t: t.original() + 1, backend=counter)
        for _ in range(2):
            fn(to_scaled(torch.randn(4, 8)))
        assert counter.frame_count == 1, "likely encountered a skip!"

    @pytest.mark.dynacheck(graphs=1, graph_breaks=0, recompiles=0)
    def test_output(self):
        counter = CompileCounterWithBackend("eager")
        fn = torch.compile(to_scaled, backend=counter)
        for _ in range(2):
            assert isinstance(fn(torch.randn(4, 8)), ScaledTensor)
        assert counter.frame_count == 1, "likely encountered a skip!"


@pytest.mark.dynacheck(max_recompiles=0, allow={"recompile:size:*": 1})
def test_experts_take_any_number_of_tokens():
    """What is covered up with a limit of a thousand elsewhere: a group for each expert, of any size."""
    expert = torch.compile(ScaledExpert())
    for tokens in (3, 5, 8, 13, 21):
        expert(torch.randn(tokens, 8))


class ScaledExpert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        swap(self)

    def forward(self, x):
        return self.down(nn.functional.silu(self.up(x)))
