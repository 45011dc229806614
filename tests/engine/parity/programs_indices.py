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


# -- tensors of one number where an operator takes a number: a symbol for it, if it came in

NUMBERS = {
    "repeated": ("x.repeat(n, n)", (1, 0, 0)),
    "padded": ("nn.functional.pad(x, (n, n))", (1, 0, 0)),
    "rolled": ("x.roll(n)", (1, 0, 0)),
    "split": ("x.split(n)", (3, 0, 2)),
    "made": ("torch.zeros(n) + torch.ones((n,))", (2, 0, 1)),
    "viewed": ("x.view(n, -1)", (1, 0, 0)),
    "diagonal": ("x.diagonal(n)", (3, 0, 2)),
    "shape": ("x.repeat(n, 1).shape[0] + x", (1, 0, 0)),
    "branch": ("x * 2 if x.repeat(n, 1).shape[0] > 20 else x", (2, 0, 1)),
    "of_another_type": ("x.repeat(n.to(torch.int32), 1)", (3, 1, 1)),
    "computed": ("x.repeat(n + 1, 1)", (3, 1, 1)),
    "written_before": ("torch.zeros(n.add_(1))", (3, 1, 1)),
    "slope": ("nn.functional.leaky_relu(x, n.double())", (2, 1, 0)),
    "sliced": ("x[:n]", (0, 1, 0)),
    "sliced_in_a_tuple": ("x[0, n:]", (0, 1, 0)),
    "list_sliced": ("[1, 2, 3][:n]", (0, 1, 0)),
}


def number(name, text, graphs, breaks, recompiles, numbers=(2, 4, 4, 1)):
    @program(f"number_in_a_tensor_{name}", 37, graphs=graphs, breaks=breaks, recompiles=recompiles)
    def _():
        space = {"nn": nn, "torch": torch}
        exec(compile(f"def f(x, n):\n    found = {text}\n    return x + 1, found", __file__, "exec"), space)
        return space["f"], [(torch.ones(8, 3) - 2, torch.tensor(n)) for n in numbers]


for _name, (_text, _figures) in NUMBERS.items():
    number(_name, _text, *_figures)
number("that_is_a_float", "nn.functional.leaky_relu(x, n)", 1, 1, 0, (0.5, 0.25, 0.125))
number("that_is_a_double", "torch.add(x, x, alpha=n)", 1, 0, 0, tuple(torch.tensor([0.5, 2.0, 3.0]).double()))


def cut(y, n):
    y = y + 1
    y = y * 2
    return y[:n]


@program("sliced_behind_a_graph", 37, graphs=4, breaks=1, recompiles=2)
def _():
    def doubled(z):
        return z * 2

    def f(x, n):
        y = x + 1
        z = y * 2
        z = z[:n]
        print("of", len(z))
        return doubled(z), y

    return f, [(torch.ones(8), torch.tensor(n)) for n in (2, 3, 4, 1)]


@program("sliced_in_a_callee", 37, graphs=2, breaks=2)
def _():
    def f(x, n):
        x = x + 1
        x = x + 2
        return cut(x, n), x

    return f, [(torch.ones(8), torch.tensor(n)) for n in (2, 3)]


@program("sliced_in_a_try", 37, graphs=1, breaks=1)
def _():
    def f(x, n):
        x = x + 1
        x = x * 2
        try:
            x = x * 3
            y = x[n:]
        except ValueError:
            y = x
        return y, x

    return f, [(torch.ones(8), torch.tensor(n)) for n in (2, 3)]


@program("number_in_a_buffer", 37, graphs=1)
def _():
    class Padded(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("width", torch.tensor(2))

        def forward(self, x):
            return nn.functional.pad(x, (self.width, self.width))

    return Padded(), [(torch.rand(3),), (torch.rand(3),)]
