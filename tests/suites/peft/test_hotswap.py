"""Hot-swapping an adapter doesn't recompile; replacing it by one of another rank does, which is why it exists."""

import pytest
import torch
from lora import LoraLinear, adapter, hotswap, replace


@pytest.fixture
def layer():
    return LoraLinear(8).eval()


@pytest.mark.dynacheck(graphs=1, recompiles=0)
def test_hotswap_does_not_recompile(layer):
    model, x = torch.compile(layer), torch.randn(4, 8)
    with torch.no_grad():
        before = model(x)
        hotswap(layer, adapter(8, rank=2))
        assert not torch.equal(model(x), before)


def test_replacing_recompiles(layer, dynacheck):
    model, x = dynacheck.compile(layer), torch.randn(4, 8)
    model(x)
    with dynacheck.expect(recompiles=1):
        replace(layer, adapter(8, rank=3))
        model(x)
    assert dynacheck.report.recompiles[0].cause == "recompile:size:self.a@lora.py:LoraLinear.forward"


@pytest.mark.dynacheck(max_recompiles=0, allow={"recompile:grad_mode:*": 1, "recompile:training:*": 1})
def test_train_and_eval_are_the_only_entries(layer):
    model, x = torch.compile(layer), torch.randn(4, 8)
    for mode in (True, False, True, False):
        layer.train(mode)
        with torch.set_grad_enabled(mode):
            model(x)
