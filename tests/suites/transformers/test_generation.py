"""Compiled generation: one graph for decoding, whatever the prompts and the number of tokens; results as without it."""

import pytest
import torch
from causal_lm import CausalLM, CompileConfig, DynamicCache


class GenerationTesterMixin:
    """What every model's tests inherit."""

    def model(self):
        torch.manual_seed(0)
        return CausalLM().eval()

    def prompt(self, length=5):
        return torch.randint(0, 50, (2, length))

    @pytest.mark.dynacheck(graphs=1, graph_breaks=0, recompiles=0)
    def test_generate_compile_model_forward_fullgraph(self):
        model = self.model()
        for _ in range(2):
            ids = self.prompt()
            expected = model.generate(ids, 6, cache="dynamic")
            found = model.generate(ids, 6, compile_config=CompileConfig(fullgraph=True))
            torch.testing.assert_close(found, expected)

    @pytest.mark.dynacheck(graphs=1, recompiles=0)
    def test_static_cache_no_recompile_with_smaller_length(self):
        """A shorter prompt and fewer tokens: the cache that is there serves."""
        model = self.model()
        model.generate(self.prompt(9), 8)
        model.generate(self.prompt(3), 2)

    def test_a_longer_cache_compiles_once_more(self, dynacheck):
        model = self.model()
        model.generate(self.prompt(), 4, length=16)
        with dynacheck.expect(recompiles=1):
            model.generate(self.prompt(), 4, length=32)
        with dynacheck.steady():
            model.generate(self.prompt(), 9, length=32)

    @pytest.mark.dynacheck(max_graphs=0)
    def test_a_dynamic_cache_is_not_compiled(self):
        self.model().generate(self.prompt(), 4, cache="dynamic")

    @pytest.mark.dynacheck(max_recompiles=0, max_graph_breaks=0, allow={"recompile:size:ids@*": 1})
    def test_sdpa_can_compile_dynamic(self):
        """The forward over whole prompts of any length, without a cache that persists."""
        model = self.model()
        compiled = torch.compile(model.forward)
        for length in (4, 7, 12, 5):
            compiled(self.prompt(length), DynamicCache(), torch.arange(length))


class TestCausalLM(GenerationTesterMixin):
    pass
