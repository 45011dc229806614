"""A model whose call reads modules, parameters, buffers, hooks and plain attributes at several depths."""

import torch
from torch import nn

SCALE = 2.0
LIMITS = {"low": -1.0, "high": 1.0}


def squash(x, low=-2.0, *, high=2.0):
    return x.clamp(low, high)


class Config:
    alpha = 0.5
    names = ("a", "b")

    def __init__(self):
        self.beta = 2.0
        self.width = 4
        self.norms = ["first", "second"]

    @property
    def gamma(self):
        return self.beta + self.alpha


class Slots:
    __slots__ = ("gain", "unused")

    def __init__(self):
        self.gain = 1.5
        self.unused = 0


class Block(nn.Module):
    power = 2

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.lin = nn.Linear(config.width, config.width)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("shift", torch.zeros(config.width))
        self.register_buffer("nothing", None)
        self.residual = True
        self.scale = 1.25
        self.mode = "relu"
        self.extra = torch.ones(config.width)
        self.options = {"bias": True, "temperature": 2.0}
        self.steps = [1, 2.0, "s"]
        self.wanted = {"relu", "tanh"}
        self.act = torch.relu

    def inner(self, x):
        return self.act(x) if self.mode in self.wanted else x

    def forward(self, x, weight=1.0):
        y = self.drop(self.lin(x)) + self.shift
        if self.nothing is not None:
            y = y + self.nothing
        if self.options["bias"]:
            y = y / self.options["temperature"]
        if "late" in self.options:
            y = y - 1
        y = self.inner(y) ** self.power * self.scale * weight + self.extra
        for step in self.steps:
            if step != "s":
                y = y + step
        return x + y if self.residual else y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = Config()
        self.slots = Slots()
        self.blocks = nn.ModuleList([Block(self.config) for _ in range(2)])
        self.norms = nn.ModuleDict({name: nn.LayerNorm(4) for name in self.config.norms})
        self.gains = nn.ParameterList([nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(1))])
        self.tail = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Tanh())
        self.frozen = nn.Parameter(torch.ones(4), requires_grad=False)
        self.bn = nn.BatchNorm1d(4)

    def forward(self, x):
        for i, block in enumerate(self.blocks):
            x = block(x, weight=1.0 + i)
        for norm in self.norms.values():
            x = norm(x)
        for gain in self.gains:
            x = x * gain
        x = squash(self.tail(x) * SCALE) + self.config.gamma + self.slots.gain
        x = self.bn(x.clamp(LIMITS["low"], LIMITS["high"]))
        return x + self.frozen if self.training else x


class LinearToo(nn.Linear):
    def forward(self, x):
        return super().forward(x) + 1


def hook(module, args, output=None):
    return None if output is None else output + 1


def make():
    """What is called and its arguments."""
    return Net(), [torch.linspace(-1, 1, 12).view(3, 4)]
