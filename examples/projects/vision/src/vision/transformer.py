"""A vision transformer."""

import torch
from torch import Tensor, nn

from vision.registry import register


class VisionTransformer(nn.Module):
    def __init__(
        self, size: int = 32, patch: int = 8, width: int = 32, depth: int = 2, classes: int = 10
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.grid = size // patch
        self.positions = nn.Parameter(torch.zeros(1, self.grid**2 + 1, width))
        layer = nn.TransformerEncoderLayer(width, 2, 2 * width, 0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def embed_positions(self, height: int, width: int) -> Tensor:
        """Position embeddings, resized where the image isn't of the size they were made for."""
        if height == width == self.grid:
            return self.positions
        token, grid = self.positions[:, :1], self.positions[:, 1:]
        grid = grid.transpose(1, 2).unflatten(2, (self.grid, self.grid))
        grid = nn.functional.interpolate(grid, (height, width), mode="bilinear")
        return torch.cat([token, grid.flatten(2).transpose(1, 2)], 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x)
        positions = self.embed_positions(x.shape[2], x.shape[3])
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x.flatten(2).transpose(1, 2)], 1)
        return self.head(self.encoder(x + positions)[:, 0])


@register
def vit_tiny() -> nn.Module:
    return VisionTransformer()
