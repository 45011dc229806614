"""A residual network with squeeze and excitation."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from vision.registry import register


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int, reduction: int = 4) -> None:
        super().__init__()
        self.down = nn.Conv2d(channels, channels // reduction, 1)
        self.up = nn.Conv2d(channels // reduction, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        gate = self.up(torch.relu(self.down(x.mean((2, 3), keepdim=True))))
        return x * gate.sigmoid()


class DropPath(nn.Module):
    """Leaves out whole samples of a residual branch while training."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0.0:
            return x
        keep = torch.rand(x.shape[0], 1, 1, 1, device=x.device) >= self.rate
        return x * keep / (1 - self.rate)


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, rate: float) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.se = SqueezeExcite(outputs)
        self.drop = DropPath(rate)
        self.shortcut = (
            nn.Conv2d(inputs, outputs, 1, stride) if stride > 1 or inputs != outputs else nn.Identity()
        )

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.norm1(self.conv1(x)))
        h = self.se(self.norm2(self.conv2(h)))
        return torch.relu(self.shortcut(x) + self.drop(h))


class ConvNet(nn.Module):
    def __init__(self, widths: tuple[int, ...], classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, widths[0], 3, 2, 1)
        pairs = pairwise(widths)
        self.stages = nn.Sequential(*(Block(a, b, 2, 0.1 * i) for i, (a, b) in enumerate(pairs)))
        self.head = nn.Linear(widths[-1], classes)

    def features(self, x: Tensor) -> dict[str, Tensor]:
        found = {"stem": self.stem(x)}
        x = found["stem"]
        for i, stage in enumerate(self.stages):
            x = found[f"stage{i}"] = stage(x)
        return found

    def forward(self, x: Tensor) -> Tensor:
        last = list(self.features(x).values())[-1]
        return self.head(last.mean((2, 3)))


@register
def convnet_tiny() -> nn.Module:
    return ConvNet((8, 16, 16))


@register
def convnet_small() -> nn.Module:
    return ConvNet((8, 16, 32, 32))
