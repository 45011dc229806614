"""A walk on a line: step left or right, be rewarded for staying near the middle. Many walks at once."""

import torch
from torch import Tensor


class Walk:
    def __init__(self, count: int = 8, seed: int = 0) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.count = count

    def reset(self) -> Tensor:
        self.position = torch.rand(self.count, 1, generator=self.generator) * 2 - 1
        return self.position

    def step(self, action: Tensor) -> tuple[Tensor, Tensor]:
        self.position = (self.position + (action.float() * 2 - 1).unsqueeze(1) * 0.1).clamp(-1, 1)
        return self.position, -self.position.abs().squeeze(1)
