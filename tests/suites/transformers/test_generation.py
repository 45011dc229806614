"""Compiled generation: one graph for the prompt, one for decoding, whatever the number of tokens."""

import pytest
import torch
from causal_lm import CausalLM, generate


@pytest.fixture
def model():
    torch.manual_seed(0)
    return CausalLM().eval()


@pytest.mark.dynacheck(fullgraph=True, graphs=2, max_recompiles=0, allow={"recompile:size:*": 1})
def test_generate_compile_fullgraph(model):
    prompt = torch.randint(0, 50, (2, 5))
    expected = generate(model, model.forward, prompt, 6)
    forward = torch.compile(model.forward, dynamic=False)
    torch.testing.assert_close(generate(model, forward, prompt, 6), expected)


def test_no_recompile_with_other_prompts(model, dynacheck):
    forward = dynacheck.compile(model.forward, fullgraph=True, dynamic=False)
    generate(model, forward, torch.randint(0, 50, (2, 5)), 3)
    with dynacheck.steady():
        generate(model, forward, torch.randint(0, 50, (2, 5)), 8)
