"""The mixins that each model's tests inherit: no breaks, no recompiles, few entries for repeated blocks, any size, masks
that come and go, adapters that are swapped."""

import pytest
import torch
from blocks import Denoiser, MixedDenoiser


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

    @pytest.mark.dynacheck(fullgraph=True, graphs=2, max_recompiles=0, allow={"recompile:value:mask@*": 1})
    def test_with_and_without_mask(self):
        """One recompile for the mask that goes from None to a tensor, and no other."""
        model = torch.compile(self.model_class().eval())
        masks = [None, torch.ones(2, 8), None, torch.zeros(2, 8)]
        with torch.no_grad():
            for mask in masks:
                model(*self.inputs(), mask)

    def test_results(self, dynacheck):
        dynacheck.check(self.model_class().eval(), [self.inputs(), self.inputs()])


class LoraHotSwappingMixin:
    def test_hotswapping_does_not_recompile(self, dynacheck):
        """Adapters of other ranks and scales, swapped below the compiled model."""
        model = self.model_class().eval().add_adapters(rank=4)
        compiled = dynacheck.compile(model, fullgraph=True)
        with torch.no_grad():
            compiled(*self.inputs())
            for rank, scale in ((2, 0.5), (4, 2.0)):
                for block in model.blocks:
                    block.up.swap(torch.randn(rank, 16), torch.randn(32, rank), scale)
                with dynacheck.steady():
                    compiled(*self.inputs())


class TestDenoiserCompile(TorchCompileTesterMixin, LoraHotSwappingMixin):
    model_class = Denoiser


class TestMixedDenoiserCompile(TorchCompileTesterMixin):
    model_class = MixedDenoiser
    block_entries = 1  # of Block.forward, and of GatedBlock.forward
