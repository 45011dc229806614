"""Graphs are recorded by this engine: the example models are translated whole, and torch's compiler sees no frame."""

from __future__ import annotations

import sys
from pathlib import Path

import dynacheck
import pytest
import torch

pytestmark = pytest.mark.usefixtures("engine")

ROOT = str(Path(__file__).parents[2])
LEFT_ALONE = {"DC304"}  # no tensor operation: torch makes no entry of such frames either


@pytest.fixture
def models(monkeypatch):
    """The example models with a batch for each."""
    monkeypatch.syspath_prepend(ROOT)
    import examples.models as models

    torch.manual_seed(0)
    return {
        "residual": (models.ResidualNet(), lambda n: torch.randn(n, 3, 16, 16)),
        "encoder": (models.Encoder(), lambda n: torch.randint(1, 100, (n, 16))),
    }


def bert():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=99, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    return transformers.BertModel(config), lambda n: torch.randint(1, 99, (n, 8))


def check(report, graphs):
    assert len(report.graphs) == graphs
    assert not report.failures and not report.graph_breaks and not report.eager_runs
    assert [s for s in report.skipped if s.reason not in LEFT_ALONE] == []
    utils = sys.modules.get("torch._dynamo.utils")
    assert utils is None or not utils.counters["frames"]


def tensor(output):
    return output if isinstance(output, torch.Tensor) else output[0]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", ["residual", "encoder", "bert"])
def test_example_models(name, training, models, seen):
    model, batch = bert() if name == "bert" else models[name]
    if name == "bert":
        for part in model.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
    model.train(training)
    compiled = dynacheck.compile(model, backend="eager")
    x = batch(4)
    torch.manual_seed(1)
    expected = tensor(model(x))
    torch.manual_seed(1)
    found = tensor(compiled(x))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    if training:
        found.sum().backward()
        assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
    compiled(batch(4))
    assert [call.outcome for call in seen.calls] == ["miss", "hit"]
    check(seen, 1)


def test_torchs_counter_would_tell(seen):
    """The counter is the right one: torch.compile counts there."""
    import torch._dynamo

    counters = torch._dynamo.utils.counters
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert counters["frames"]["ok"] == 1
    counters.clear()
    torch._dynamo.reset()
    dynacheck.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    check(seen, 1)
