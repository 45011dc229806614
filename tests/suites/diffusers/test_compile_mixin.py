"""The mixin that each model's tests inherit: no breaks, no recompiles, few entries for repeated blocks, any size."""

import pytest
import torch
from blocks import Denoiser


class TorchCompileTesterMixin:
    model_class = None
    different_shapes = ((2, 8), (3, 12), (2, 20))
    block_entries = 1

    def inputs(self, batch=2, length=8):
        return torch.randn(batch, length, 16), torch.rand(batch)

    @pytest.mark.dynacheck(fullgraph=True, graphs=1, recompiles=0)
    def test_recompilation_and_graph_break(self):
        model = torch.compile(self.model_class().eval())
        with torch.no_grad():
            for _ in range(2):
                model(*self.inputs())

    def test_repeated_blocks(self, dynacheck):
        model = self.model_class().eval()
        model.compile_repeated_blocks(fullgraph=True)
        with torch.no_grad(), dynacheck.expect(max_cache_entries=self.block_entries, graph_breaks=0):
            for _ in range(2):
                model(*self.inputs())

    @pytest.mark.dynacheck(graphs=1, recompiles=0, graph_breaks=0)
    def test_different_shapes(self):
        model = torch.compile(self.model_class().eval(), dynamic=True)
        with torch.no_grad():
            for batch, length in self.different_shapes:
                model(*self.inputs(batch, length))

    def test_results(self, dynacheck):
        dynacheck.check(self.model_class().eval(), [self.inputs(), self.inputs()])


class TestDenoiserCompile(TorchCompileTesterMixin):
    model_class = Denoiser
