"""A model captured whole and split at its attention operator, as an inference engine does it: pieces are what a backend
makes of the one graph."""

import torch
from torch import nn
from torch.fx.passes.split_module import split_module


@torch.library.custom_op("pieces::attention", mutates_args=())
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-1, -2), dim=-1) @ v


@attention.register_fake
def _(q, k, v):
    return torch.empty_like(q)


class Counter:
    """What the backend has seen, beside what the plugin counts."""

    pieces = 0
    capturable = 0


counter = Counter()


def piecewise(graph, inputs):
    """Split the graph at attention; what is between can be captured once for all layers."""
    number, at = 0, {}
    for node in graph.graph.nodes:
        if node.target is torch.ops.pieces.attention.default:
            at[node] = number + 1
            number += 2
        else:
            at[node] = number
    split = split_module(graph, graph, lambda node: at[node])
    names = [name for name, _ in split.named_children()]
    counter.pieces += len(names)
    counter.capturable += sum(int(name.removeprefix("submod_")) % 2 == 0 for name in names)
    return split


def support_torch_compile(cls):
    """The number of tokens, the first size, is marked dynamic; the forward is compiled on its first call."""

    def call(self, x):
        if self.compiled is None:
            self.compiled = torch.compile(self.forward, backend=piecewise, fullgraph=self.fullgraph)
        torch._dynamo.mark_dynamic(x, 0)
        return self.compiled(x)

    cls.compiled, cls.fullgraph, cls.__call__ = None, True, call
    return cls


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return x + self.out(attention(q, k, v))


@support_torch_compile
class Model(nn.Module):
    def __init__(self, layers=2, width=8):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
