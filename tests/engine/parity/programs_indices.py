"""Tensors of one integer as indices (row 37): known by value when they came into the frame."""

import torch
from parity.harness import registry
from torch import nn

PROGRAMS, program = registry()


def rows(shape=(4,)):
    return [(torch.rand(shape), torch.tensor(i)) for i in (0, 1, 2, 1)]


@program("index_read", 37, graphs=3, recompiles=2, frames=(3, 3), entries=3)
def _():
    def f(x, i):
        return x[i] * 2

    return f, rows()


@program("index_written", 37, graphs=3, recompiles=2, frames=(3, 3), entries=3)
def _():
    def f(x, i):
        x = x * 1
        x[i] = 5.0
        return x

    return f, rows()


@program("index_in_a_tuple", 37, graphs=3, recompiles=2, frames=(3, 3), entries=3)
def _():
    def f(x, i):
        return x[i, 0], x[:, i], x[..., i]

    return f, rows((4, 4))


@program("index_computed", 37, graphs=1, breaks=1, frames=(2, 2), entries=1)
def _():
    def f(x, i):
        x = x * 1
        x[i + 1] = 5.0
        return x

    return f, rows()


@program("index_is_a_buffer", 37, graphs=3, recompiles=2, frames=(3, 3), entries=3)
def _():
    class Ring(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("at", torch.tensor(0))
            self.register_buffer("values", torch.zeros(4))

        def forward(self, x):
            self.values[self.at] = x
            self.at.add_(1)
            return self.values * 2

    return Ring(), [(torch.tensor(float(i)),) for i in range(3)]


@program("index_of_32_bits", 37, graphs=1, frames=(1, 1), entries=1)
def _():
    def f(x, i):
        return x * 2, x.index_select(0, i)

    return f, [(torch.rand(4), torch.tensor([i], dtype=torch.int32)) for i in (0, 1)]
