"""A decoder with a static cache, and generation that compiles the forward by itself where the cache allows it."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class CompileConfig:
    fullgraph: bool = False
    dynamic: bool | None = None
    mode: str = "reduce-overhead"
    backend: str = "inductor"


class StaticCache:
    is_compileable = True

    def __init__(self, batch, length, width):
        self.keys = torch.zeros(batch, length, width)
        self.values = torch.zeros(batch, length, width)
        self.seen = 0
        for tensor in (self.keys, self.values):
            torch._dynamo.mark_static_address(tensor)

    def update(self, keys, values, position):
        self.keys.index_copy_(1, position, keys)
        self.values.index_copy_(1, position, values)
        return self.keys, self.values


class DynamicCache:
    is_compileable = False

    def __init__(self):
        self.keys = self.values = None

    def update(self, keys, values, position):
        self.keys = keys if self.keys is None else torch.cat([self.keys, keys], dim=1)
        self.values = values if self.values is None else torch.cat([self.values, values], dim=1)
        return self.keys, self.values


class CausalLM(nn.Module):
    def __init__(self, vocabulary=50, width=16):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.qkv = nn.Linear(width, 3 * width)
        self.head = nn.Linear(width, vocabulary)
        self._compiled_call = None
        self._cache = None

    def forward(self, ids, cache, position):
        q, k, v = self.qkv(self.embed(ids)).chunk(3, dim=-1)
        keys, values = cache.update(k, v, position)
        allowed = torch.arange(keys.shape[1]) <= position[:, None]
        attended = nn.functional.scaled_dot_product_attention(q, keys, values, attn_mask=allowed)
        return {"logits": self.head(attended)}

    def compiled_call(self, config):
        if self._compiled_call is None:
            self._compiled_call = torch.compile(self.forward, **vars(config))
        return self._compiled_call

    def cache_for(self, kind, batch, length):
        if kind == "dynamic":
            return DynamicCache()
        if self._cache is None or self._cache.keys.shape[:2] != (batch, length):
            self._cache = StaticCache(batch, length, self.embed.embedding_dim)
        return self._cache

    @torch.no_grad()
    def generate(self, ids, new_tokens, cache="static", length=32, compile_config=None):
        """The prompt runs eagerly, each token after it through the compiled forward."""
        cache = self.cache_for(cache, ids.shape[0], length)
        decode = (
            self.compiled_call(compile_config or CompileConfig()) if cache.is_compileable else self.forward
        )
        position = torch.arange(ids.shape[1])
        out, step = ids, self.forward
        for _ in range(new_tokens):
            ids = step(ids, cache, position)["logits"][:, -1:].argmax(-1)
            out = torch.cat([out, ids], dim=1)
            position, step = position[-1:] + 1, decode
        return out
