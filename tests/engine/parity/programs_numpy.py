"""Functions of numpy on arrays (row 40): graphs have torch's numpy, on tensors over the arrays' memory."""

import numpy as np
import torch
from parity.harness import registry
from torch import nn

PROGRAMS, program = registry()


def tensors():
    return [(torch.randn(3, 4),), (torch.randn(3, 4),)]


def arrays():
    return [(np.arange(12.0).reshape(3, 4),), (np.ones((3, 4)),)]


def on(calls, graphs=1, entries=1, **figures):
    def add(fn):
        program(f"numpy_{fn.__name__}", 40, graphs=graphs, entries=entries, **figures)(lambda: (fn, calls()))
        return fn

    return add


@on(arrays)
def arithmetic(a):
    return (a > 1) & (a < 3), ~(a > 1), -a, a // 2, a % 2, a @ a.T, 2 * a, 1 / (a + 1), np.sin(a) + 1


@on(arrays)
def reductions(a):
    return a.sum(axis=0), np.max(a, axis=1, keepdims=True), np.cumsum(a), np.argsort(a, axis=0)


@on(arrays)
def indexing(a):
    return a[1:, ::2], a[..., 0], a[:, None], a[[0, 1]], a[np.array([0, 1])]


@on(arrays)
def attributes(a):
    return a.T, a.ndim, a.size, a.shape, len(a), a * a.shape[0], isinstance(a, np.ndarray)


@on(arrays)
def in_place(a):
    a[0] = 5.0
    a[:, 1] *= 3
    a[a > 4] = 0
    b = a[1:]
    b += 1
    np.add(a, 1, out=a)
    return a, b


@on(arrays, torch_differs="numpy.split returns a list")
def joined(a):
    return np.concatenate([a, a], axis=1), np.stack([a, a]).transpose(1, 0, 2), np.split(a, 2, axis=1)


@on(arrays)
def dtypes(a):
    return (
        a.astype(int),
        a.astype("float32"),
        np.zeros_like(a, dtype=np.int32),
        np.sum(a, axis=0, dtype=np.float32),
    )


@on(arrays)
def iterated(a):
    first, *_ = a
    return [row * i for i, row in enumerate(a)], first


@on(arrays, graphs=2, entries=2, breaks=1)
def printed_between(a):
    b = a + 1
    print("hi")
    return b * 2


@on(arrays, graphs=3, entries=3, breaks=1)
def branch(a):
    return a + 1 if a.sum() > 50 else a * 2


@on(lambda: [(np.ones((n, 2)),) for n in (3, 4, 5)], graphs=3, entries=3, recompiles=2)
def sizes(a):
    return np.zeros(a.shape) + a * a.size


@on(tensors)
def back_and_forth(x):
    return torch.from_numpy(np.cos(x.numpy())) * 2, torch.as_tensor(x.detach().cpu().numpy() + 1)


@on(tensors)
def written_through(x):
    x.numpy()[0] = 7.0
    return x + 1


@on(tensors)
def made(x):
    full = torch.from_numpy(np.full((4,), 2.0, dtype="float32"))
    return x * full + torch.tensor(np.arange(4)) + torch.from_numpy(np.array([1.0, 2, 3, 4])), x * np.pi


@on(lambda: [(torch.randn(3), np.float32(2)), (torch.randn(3), np.float32(3))])
def scalar(x, s):
    y = x * s
    y *= s
    return y, s * x


@on(arrays)
def limits(a):
    return a * np.finfo(np.float32).eps, a + np.iinfo(np.int32).max


WEIGHTS = np.ones(4, dtype=np.float32)


@program("numpy_in_a_module", 40, graphs=1, entries=1)
def _():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.scale = np.float64(0.5)
            self.bias = np.ones(4, dtype=np.float32)

        def forward(self, x):
            h = self.layer(x)
            mask = (h.detach().numpy() > 0).astype(np.float32)
            return h * torch.from_numpy(mask + self.bias * WEIGHTS) * self.scale

    return Masked(), tensors()


@program("numpy_state", 40, graphs=1, entries=1, state=lambda f: (f.total.tolist(), f.last.tolist()))
def _():
    class Running:
        def __init__(self):
            self.total, self.last = np.zeros(4), np.zeros(4)

        def __call__(self, a):
            self.total[:] = self.total + a.sum(0)
            self.last = self.last + a[0]
            return self.total.copy()

    return Running(), arrays()


FLOATS = {
    "ceil": "int(np.ceil(7 / 2))",
    "of_a_size": "int(np.ceil(x.shape[0] / 7)) * 7",
    "sqrt": "float(np.sqrt(4.0))",
    "round": "np.round(2.5).item()",
    "truth": "bool(np.floor(1.5))",
    "logarithm": "int(np.log2(8) + 0.5), float(np.exp(1)), float(np.arctan2(1.0, 2.0))",
    "power": "int(np.power(2.0, 3.0)), float(np.float32(1.5)), int(np.float64(3.5))",
    "item": "np.array([1.5]).item(), float(np.sum([1.5])), float(np.exp(np.array([1.5])).sum())",
    "formatted": "f'{np.log2(8):.1f}'",
    "logarithm_of_a_size": "int(np.log2(x.shape[0]))",
    "integer": "int(np.maximum(1, 2))",
    "of_two": "float(np.sum([1.5, 2.5]))",
    "of_a_factory": "float(np.ones(()) + 1)",
}


def _float(name, text):
    breaks, varies = int(name in ("integer", "of_two", "of_a_factory")), name.endswith("of_a_size")
    graphs = 3 if varies or breaks else 2

    @program(
        f"numpy_float_{name}",
        40,
        graphs=graphs,
        breaks=breaks,
        recompiles=2 if varies else 1,
        entries=graphs,
    )
    def _():
        space = {"np": np}
        exec(compile(f"def f(x):\n    known = {text}\n    return x + 1, known", __file__, "exec"), space)
        return space["f"], [(torch.ones(n),) for n in (8, 9, 15)]


for _name, _text in FLOATS.items():
    _float(_name, _text)
