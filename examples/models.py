"""A convolutional residual network and a small encoder, as a project of yours might have them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class ResidualBlock(nn.Module):
    """Two convolutions and a shortcut, which is projected where the shape changes."""

    def __init__(self, inside: int, outside: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outside)
        self.project = nn.Conv2d(inside, outside, 1, stride, bias=False) if inside != outside else None

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        shortcut = x if self.project is None else self.project(x)
        return F.relu(out + shortcut)


class ResidualNet(nn.Module):
    """A ResNet of six blocks for images of shape (batch, 3, height, width)."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.blocks = nn.Sequential(
            ResidualBlock(16, 16),
            ResidualBlock(16, 16),
            ResidualBlock(16, 32, stride=2),
            ResidualBlock(32, 32),
            ResidualBlock(32, 64, stride=2),
            ResidualBlock(64, 64),
        )
        self.head = nn.Linear(64, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.blocks(self.stem(images))
        return self.head(x.mean(dim=(2, 3)))


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward network, each normalised first and added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def attend(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        return self.out(attended.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attend(self.norm1(x), mask)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Encoder(nn.Module):
    """Token ids of shape (batch, length) to one vector per sequence; padding (id 0) is masked."""

    def __init__(
        self, tokens: int = 100, width: int = 32, heads: int = 4, layers: int = 3, longest: int = 64
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(tokens, width)
        self.positions = nn.Embedding(longest, width)
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.scale = 0.5

    def forward(self, ids: Tensor) -> Tensor:
        mask = ids != 0
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x, mask)
        weights = mask.unsqueeze(-1).to(x.dtype)
        pooled = (self.norm(x) * weights).sum(1) / weights.sum(1).clamp(min=1)
        return pooled * self.scale
