"""A model split at attention: each piece is compiled, attention itself runs outside."""

import torch
from torch import nn


@torch.compiler.disable
def attention(q):
    return torch.softmax(q @ q.transpose(-1, -2), dim=-1) @ q


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.before = nn.Linear(width, width)
        self.after = nn.Linear(width, width)

    def forward(self, x):
        return x + self.after(attention(self.before(x)))


class Model(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.first, self.second = Layer(width), Layer(width)

    def forward(self, x):
        return self.second(self.first(x))
