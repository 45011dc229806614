"""A small decoder."""

import torch
from torch import Tensor, nn

from server.cache import StaticCache


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, cache: StaticCache, position: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        keys, values = cache.update(k, v, position)
        seen = torch.arange(keys.shape[1]) <= position[:, None]
        return x + self.out(nn.functional.scaled_dot_product_attention(q, keys, values, attn_mask=seen))


class Decoder(nn.Module):
    def __init__(self, vocabulary: int = 64, width: int = 32, depth: int = 2) -> None:
        super().__init__()
        self.width = width
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids: Tensor, caches: list[StaticCache], position: Tensor) -> Tensor:
        x = self.embed(ids)
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache, position)
        return self.head(x[:, -1])
