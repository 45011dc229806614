"""Keys and values of the tokens so far, in buffers of a fixed size."""

import torch
from torch import Tensor


class StaticCache:
    """One layer's cache for a batch of sequences."""

    def __init__(self, batch: int, length: int, width: int) -> None:
        self.keys = torch.zeros(batch, length, width)
        self.values = torch.zeros(batch, length, width)

    def update(self, keys: Tensor, values: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
        self.keys.index_copy_(1, position, keys)
        self.values.index_copy_(1, position, values)
        return self.keys, self.values
