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


@pytest.mark.dynacheck(graphs=2, max_recompiles=0, allow={"recompile:training:*": 1})
def test_train_and_eval_are_the_only_entries(layer):
    """The one recompile of switching between them is accepted, which torch's switch can't say."""
    model, x = torch.compile(layer), torch.randn(4, 8)
    for mode in (True, False, True, False):
        layer.train(mode)
        model(x)


@pytest.mark.dynacheck(graphs=1, recompiles=0)
def test_replacing_is_an_error_in_production(layer):
    """The negative test as it stands there: torch's own switch and torch's own exception."""
    model, x = torch.compile(layer), torch.randn(4, 8)
    model(x)
    replace(layer, adapter(8, rank=3))
    with torch._dynamo.config.patch(error_on_recompile=True):
        with pytest.raises(torch._dynamo.exc.RecompileError, match=r"self\S*\ba\b"):
            model(x)
