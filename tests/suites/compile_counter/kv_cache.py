"""A cache of keys that is filled token by token."""

import torch
from torch import nn


class KVCache(nn.Module):
    def __init__(self, batch, length, width):
        super().__init__()
        self.register_buffer("keys", torch.zeros(batch, length, width))
        self.register_buffer("position", torch.arange(length))
        self.filled = 0

    def update(self, k):
        self.keys.index_copy_(1, self.position[: k.shape[1]], k)
        self.position.add_(k.shape[1])
        return self.keys
