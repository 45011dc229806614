"""BERT from Hugging Face transformers, built from a small configuration with random weights."""

from __future__ import annotations

import pytest
import torch

transformers = pytest.importorskip("transformers")

CONFIG = {
    "vocab_size": 200,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "max_position_embeddings": 64,
}


def inputs(size: int = 4, length: int = 16) -> dict[str, torch.Tensor]:
    return {
        "input_ids": torch.randint(1, 200, (size, length)),
        "attention_mask": torch.ones(size, length, dtype=torch.long),
    }


@pytest.mark.max_graphs(1)
@pytest.mark.max_graph_breaks(0)
@pytest.mark.max_recompiles(0)
def test_inference():
    model = transformers.BertModel(transformers.BertConfig(**CONFIG)).eval()
    compiled = torch.compile(model)
    with torch.no_grad():
        for _ in range(3):
            given = inputs()
            found = compiled(**given).last_hidden_state
            torch.testing.assert_close(found, model(**given).last_hidden_state)


@pytest.mark.max_graphs(1)
@pytest.mark.max_graph_breaks(0)
@pytest.mark.max_recompiles(0)
def test_training_step():
    # without problem_type the model sets it in its first call, and compiles again in the second
    config = transformers.BertConfig(**CONFIG, num_labels=3, problem_type="single_label_classification")
    model = transformers.BertForSequenceClassification(config).train()
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(3):
        loss = compiled(**inputs(), labels=torch.randint(0, 3, (4,))).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert torch.isfinite(loss)
