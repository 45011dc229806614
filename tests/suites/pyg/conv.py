"""Mean aggregation over the edges of a graph."""

import torch
from torch import nn


def scatter_mean(messages, index, size):
    total = messages.new_zeros(size, messages.shape[1]).index_add(0, index, messages)
    count = messages.new_zeros(size).index_add(0, index, torch.ones_like(index, dtype=messages.dtype))
    return total / count.clamp(min=1).unsqueeze(1)


class MeanConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own = nn.Linear(inputs, outputs)
        self.others = nn.Linear(inputs, outputs)

    def forward(self, x, edge_index):
        source, target = edge_index
        return self.own(x) + self.others(scatter_mean(x[source], target, x.shape[0]))


class GNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = MeanConv(6, 8), MeanConv(8, 3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)
