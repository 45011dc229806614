"""A denoiser of repeated blocks, conditioned on a timestep and on a text that may have a mask; with adapters."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.time = nn.Linear(1, width)
        self.scale = 1.0
        self.calls = 0

    def forward(self, x, timestep, mask=None):
        h = self.norm(x) + self.time(timestep)
        if mask is not None:
            h = h * mask.unsqueeze(-1)
        h = nn.functional.silu(self.up(h))
        return x + self.scale * self.down(h)


class GatedBlock(Block):
    def forward(self, x, timestep, mask=None):
        return x + torch.tanh(self.time(timestep)) * super().forward(x, timestep, mask)


class Adapter(nn.Module):
    """Low rank, beside a linear layer; made for the largest rank that will be swapped in."""

    def __init__(self, base, rank):
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.zeros(rank, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.a.T @ self.b.T)

    @torch.no_grad()
    def swap(self, a, b, scale):
        rank = a.shape[0]
        self.a.zero_()[:rank].copy_(a)
        self.b.zero_()[:, :rank].copy_(b)
        self.scale.fill_(scale)


class Denoiser(nn.Module):
    repeated = (Block,)

    def __init__(self, width=16, depth=4):
        super().__init__()
        kinds = self.repeated
        self.blocks = nn.ModuleList(kinds[i % len(kinds)](width) for i in range(depth))

    def forward(self, sample, timestep, mask=None):
        timestep = timestep[:, None, None]
        for block in self.blocks:
            sample = block(sample, timestep, mask)
        return sample

    def compile_repeated_blocks(self, **options):
        for block in self.blocks:
            block.compile(**options)

    def add_adapters(self, rank=4):
        for block in self.blocks:
            block.up = Adapter(block.up, rank)
        return self


class MixedDenoiser(Denoiser):
    """Two kinds of blocks in turn, which share one forward."""

    repeated = (Block, GatedBlock)
