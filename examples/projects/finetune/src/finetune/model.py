"""A classifier with label smoothing on top of a small BERT."""

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel


class Classifier(nn.Module):
    def __init__(self, labels: int = 2, smoothing: float = 0.1) -> None:
        super().__init__()
        config = BertConfig(
            vocab_size=100,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=64,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        self.encoder = BertModel(config)
        self.head = nn.Linear(32, labels)
        self.loss = nn.CrossEntropyLoss(label_smoothing=smoothing)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * weights).sum(1) / weights.sum(1)
        logits = self.head(torch.tanh(pooled))
        return self.loss(logits, labels), logits
