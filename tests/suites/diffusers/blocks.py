"""A denoiser of repeated blocks, conditioned on a timestep."""

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

    def forward(self, x, timestep):
        h = self.norm(x) + self.time(timestep)
        h = nn.functional.silu(self.up(h))
        return x + self.scale * self.down(h)


class Denoiser(nn.Module):
    def __init__(self, width=16, depth=3):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, sample, timestep):
        timestep = timestep[:, None, None]
        for block in self.blocks:
            sample = block(sample, timestep)
        return sample

    def compile_repeated_blocks(self, **options):
        for block in self.blocks:
            block.compile(**options)
