"""A decoder with a static cache, and greedy generation."""

import torch
from torch import nn


class StaticCache:
    def __init__(self, batch, length, width):
        self.keys = torch.zeros(batch, length, width)
        self.values = torch.zeros(batch, length, width)
        self.seen = 0

    def update(self, keys, values, position):
        self.keys.index_copy_(1, position, keys)
        self.values.index_copy_(1, position, values)
        return self.keys, self.values


class CausalLM(nn.Module):
    def __init__(self, vocabulary=50, width=16):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.qkv = nn.Linear(width, 3 * width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids, cache, position):
        q, k, v = self.qkv(self.embed(ids)).chunk(3, dim=-1)
        keys, values = cache.update(k, v, position)
        allowed = torch.arange(keys.shape[1]) <= position[:, None]
        attended = nn.functional.scaled_dot_product_attention(q, keys, values, attn_mask=allowed)
        return self.head(attended)


@torch.no_grad()
def generate(model, forward, ids, new_tokens, length=32):
    cache = StaticCache(ids.shape[0], length, model.embed.embedding_dim)
    position = torch.arange(ids.shape[1])
    out = ids
    for _ in range(new_tokens):
        ids = forward(ids, cache, position)[:, -1:].argmax(-1)
        out = torch.cat([out, ids], dim=1)
        position = position[-1:] + 1
    return out
