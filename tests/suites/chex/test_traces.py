"""`assert_max_traces(n)`: a bound on how often one function is traced."""

import pytest
import torch
from steps import loss, step


@pytest.fixture
def data():
    return torch.zeros(3), torch.randn(8, 3), torch.randn(8)


@pytest.mark.max_graphs(1)
def test_step_is_traced_once(data):
    w, x, y = data
    compiled = torch.compile(step)
    for i in range(5):
        w = compiled(w, x, y, torch.tensor(0.1 / (i + 1)))


def test_each_function_on_its_own(data, dynacheck):
    w, x, y = data
    compiled_step, compiled_loss = dynacheck.compile(step), dynacheck.compile(loss)
    with dynacheck.expect(of=compiled_step, max_graphs=1), dynacheck.expect(of=compiled_loss, max_graphs=1):
        for _ in range(3):
            compiled_loss(w, x, y)
            w = compiled_step(w, x, y, torch.tensor(0.1))
    with dynacheck.steady():
        compiled_loss(w, x, y)
