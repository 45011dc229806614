"""Message passing over the edges of a graph: a base class that hands each method what its arguments name."""

import inspect

import torch
from torch import nn


class MessagePassing(nn.Module):
    def __init__(self):
        super().__init__()
        self.wanted = tuple(inspect.signature(self.message).parameters)

    def propagate(self, edge_index, size, **features):
        source, target = edge_index[0], edge_index[1]
        found = {}
        for name in self.wanted:
            stem, _, side = name.rpartition("_")
            found[name] = (
                features[stem][source if side == "j" else target] if side in "ij" else features[name]
            )
        return self.update(self.aggregate(self.message(**found), target, size))

    def message(self, x_j):
        return x_j

    def aggregate(self, messages, index, size):
        total = messages.new_zeros(size, messages.shape[1]).index_add(0, index, messages)
        count = messages.new_zeros(size).index_add(0, index, torch.ones_like(index, dtype=messages.dtype))
        return total / count.clamp(min=1).unsqueeze(1)

    def update(self, out):
        return out


class MeanConv(MessagePassing):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own = nn.Linear(inputs, outputs)
        self.others = nn.Linear(inputs, outputs)

    def forward(self, x, edge_index):
        return self.own(x) + self.others(self.propagate(edge_index, x.shape[0], x=x))


class GateConv(MessagePassing):
    """A gate on each edge, of what is at both of its ends."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.key, self.query = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x.shape[0], k=self.key(x), q=self.query(x))

    def message(self, k_i, q_j):
        return torch.sigmoid(k_i + q_j) * q_j


class GNN(nn.Module):
    def __init__(self, conv=MeanConv):
        super().__init__()
        self.first, self.second = conv(6, 8), conv(8, 3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)
