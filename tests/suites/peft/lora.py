"""Low-rank adapters, and two ways to exchange them."""

import torch
from torch import nn


class LoraLinear(nn.Module):
    def __init__(self, width, rank=2):
        super().__init__()
        self.base = nn.Linear(width, width)
        self.a = nn.Parameter(torch.randn(rank, width))
        self.b = nn.Parameter(torch.zeros(width, rank))
        self.register_buffer("scaling", torch.tensor(1.0))

        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        return self.base(x) + self.scaling * (self.dropout(x) @ self.a.T @ self.b.T)


def hotswap(layer, adapter):
    """Copy another adapter's numbers into the one that was compiled."""
    with torch.no_grad():
        layer.a.copy_(adapter["a"])
        layer.b.copy_(adapter["b"])
        layer.scaling.copy_(torch.as_tensor(adapter["scaling"]))


def replace(layer, adapter):
    """Put another adapter, which may have another rank, in the place of the one that was compiled."""
    layer.a = nn.Parameter(adapter["a"])
    layer.b = nn.Parameter(adapter["b"])


def adapter(width, rank, scaling=0.5):
    return {"a": torch.randn(rank, width), "b": torch.randn(width, rank), "scaling": scaling}
