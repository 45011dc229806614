"""Random functions of tensors, sizes and plain values, and random histories of calls."""

from __future__ import annotations

import contextlib
import linecache
import random
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

# What uses a size or a value; d: a dimension, k: a small number. Every line keeps `x` two-dimensional.
LINES = {
    "size": [
        "x = x * x.shape[{d}]",
        "x = x + x.size({d}) // 2",
        "x = x + (x.shape[{d}] % 3)",
        "x = x[: x.shape[{d}] // 2 + 1]",
        "x = x[:, : max(x.shape[1] - 1, 1)]",
        "x = x + min(x.shape[0], x.shape[1])",
        "x = x + sum(x.shape)",
        "x = x + len(x)",
        "x = x + x.numel()",
        "x = x.reshape(x.shape[1], x.shape[0])",
        "x = x.reshape(-1, 1)",
        "x = x + torch.zeros(x.shape)",
        "x = x + torch.ones(x.shape[0], 1)",
        "x = torch.cat([x, x], {d})",
        "x = x.sum(0, keepdim=True)",
        "x = x.t()",
        "x = x.repeat(2, 1)",
        "x = x.expand(x.shape[0], x.shape[1]) + 1",
        "x = torch.nn.functional.pad(x, (0, x.shape[0]))",
        "x = x + float(x.shape[{d}])",
        "x = x + x.shape[0] / 2",
        "x = x / (x.shape[{d}] ** 2 + 1)",
        "x = x + math.ceil(x.shape[0] / 2)",
        "x = x + torch.arange(x.shape[1])",
        "rows, columns = x.shape; x = x.view(rows * columns, 1).view(rows, columns)",
        "sizes = {{'rows': x.shape[0]}}; x = x + sizes['rows']",
        "x = helper(x, x.shape[{d}])",
        "if x.shape[{d}] > {k}: x = x + 1",
        "if x.shape[0] == x.shape[1]: x = x + x.t()",
        "if x.shape[{d}] % 2 == 0: x = x * 2",
        "if x.shape[{d}]: x = x - 1",
        "if x.shape == (4, 4): x = x + 4",
        "if x.shape[1] in (3, 5): x = x * 3",
        "for i in range(x.shape[{d}]): x = x + i",
        "if x.shape[0] * x.shape[1] >= 2 * {k} and x.shape[0] < 7: x = x * 0.5",
    ],
    "two": [
        "x = x + y.sum()",
        "if x.shape == y.shape: x = x + y",
        "if x.shape[{d}] == y.shape[{d}]: x = x * 2",
        "if x.shape[0] > y.shape[0]: x = x - 1",
        "x = x + y.shape[{d}]",
        "x = torch.cat([x.reshape(-1), y.reshape(-1)]).reshape(1, -1)",
        "x = x.reshape(-1, 1) + y.reshape(1, -1)",
        "x = x + y.shape[0] * x.shape[1]",
    ],
    "n": [
        "x = x + n",
        "x = x * (n + 1)",
        "x = x + n // 2",
        "x = x + n % 3",
        "if n > {k}: x = x + 1",
        "if n == {k}: x = x * 2",
        "x = x + torch.ones(n + 1).sum()",
        "x = x[: n + 1]",
        "x = helper(x, n)",
        "for i in range(n): x = x + 1",
        "x = x + (n if n else 5)",
        "x = x + max(n, 2)",
        "x = x + [1, 2, 3][n % 3]",
        "if x.shape[0] > n: x = x + 1",
    ],
    "r": [
        "x = x * r",
        "x = x + r / 2",
        "if r > 1.0: x = x + 1",
        "x = x + math.sqrt(r * r + 1)",
        "x = x ** 2 * (r + 1)",
    ],
    "flag": ["if flag: x = x + 1", "x = x + 1 if flag else x - 1", "x = x * (not flag)", "x = x + flag"],
    "s": [
        "if s == 'a': x = x + 1",
        "x = x + len(s)",
        "x = x * {{'a': 1, 'bb': 2, 'c': 3}}[s]",
        "x = x + s.startswith('b')",
    ],
    "box": [
        "x = x + box.n",
        "x = x * box.r",
        "if box.n > {k}: x = x + 1",
        "x = x + torch.ones(box.n + 1).sum()",
    ],
    "items": [
        "x = x + items[0]",
        "x = x + len(items)",
        "for item in items: x = x + item",
        "x = x + items[-1] * items[0]",
    ],
    "pair": [
        "x = x + pair['t'].sum()",
        "x = x + pair['k']",
        "x = x + pair['t'].shape[{d}]",
        "if pair['t'].shape[{d}] > {k}: x = x - 1",
        "for name in pair: x = x + len(name)",
        "x = x * pair.get('k', 1) + pair.get('none', 2)",
    ],
    "tensors": [
        "x = x + sum(t.sum() for t in tensors)",
        "x = x + len(tensors)",
        "for t in tensors: x = x + t.shape[{d}]",
        "if tensors[0].shape == tensors[-1].shape: x = x + tensors[0].sum() * tensors[-1].sum()",
        "x = x + torch.cat([t.reshape(-1) for t in tensors]).sum()",
        "x = x + max(t.shape[{d}] for t in tensors)",
    ],
    "net": [
        "x = net(x)",
        "x = x + net.width",
        "x = x * net.gain",
        "if net.training: x = x + 1",
        "x = x + torch.zeros(1, net.width + 1).sum()",
        "x = x + net.table[: x.shape[{d}]].sum()",
    ],
    "dtype": [
        "x = x.to(dtype)",
        "x = x + torch.ones(1, dtype=dtype)",
        "x = x + torch.zeros(x.shape, dtype=dtype)",
    ],
}
HELPER = """
def helper(x, n):
    return x + n * 2

"""
SIZES = (0, 1, 2, 3, 4, 5, 7, 8)
MARKS = ("mark_dynamic", "maybe_mark_dynamic", "mark_static", "mark_unbacked")


class Box:
    """A plain object with numbers."""

    def __init__(self, n: int, r: float) -> None:
        self.n = n
        self.r = r


class Net(torch.nn.Module):
    """A module with numbers, one of which counts calls."""

    width, gain = 1, 1.0

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self.register_buffer("table", torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        return x * self.gain + self.steps


@dataclass
class Call:
    """One call.

    Args:
        values: of each parameter; tensors as sizes.
        marks: on `x`: (function, dimension), and bounds.
        transposed: whether tensors are transposed views.
        owning: whether tensors are no views.
        by_name: whether all but `x` are passed by name.
        mode: the grad mode around the call: "", "no_grad" or "inference_mode".
        grad: whether `x` requires grad.
    """

    values: dict[str, Any]
    marks: list[tuple[Any, ...]] = field(default_factory=list)
    transposed: bool = False
    owning: bool = False
    by_name: bool = False
    mode: str = ""
    grad: bool = False

    def arguments(self, kept: dict[str, Any]) -> dict[str, Any]:
        """The arguments, made anew, but for a module that stays the same one: it is in what is kept between calls."""
        made = {name: self._made(name, value, kept) for name, value in self.values.items()}
        made["x"] = made["x"].requires_grad_() if self.grad else made["x"]
        return made

    def run(self, fn: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Call a function as this call has it."""
        with getattr(torch, self.mode)() if self.mode else contextlib.nullcontext():
            if self.by_name:
                return fn(arguments["x"], **{name: v for name, v in arguments.items() if name != "x"})
            return fn(*arguments.values())

    def _made(self, name: str, value: Any, kept: dict[str, Any]) -> Any:
        if name in ("x", "y"):
            return self._tensor(value)
        if name == "pair":
            return {"t": self._tensor(value[0]), "k": value[1]}
        if name == "tensors":
            return [self._tensor(size) for size in value]
        if name == "net":
            net = kept.setdefault(name, Net())
            net.width, net.gain = value[:2]
            return net.train(value[2])
        if name == "dtype":
            return getattr(torch, value)
        if name == "box":
            return Box(*value)
        return list(value) if name == "items" else value

    def _tensor(self, size: tuple[int, int]) -> torch.Tensor:
        flat = torch.arange(float(size[0] * size[1]))
        view = flat.view(size[1], size[0]).t() if self.transposed else flat.view(size)
        return view.clone() if self.owning else view


@dataclass
class History:
    """A function's source, how it is compiled, and the calls."""

    number: int | str
    source: str
    options: dict[str, Any]
    calls: list[Call]

    def function(self) -> types.FunctionType:
        """A function of a new execution of the source."""
        file = f"<history {self.number}>"
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(True), file)
        namespace: dict[str, Any] = {"torch": torch, "math": __import__("math")}
        exec(compile(self.source, file, "exec"), namespace)
        return namespace["f"]

    def __str__(self) -> str:
        return f"history {self.number}\n{self.source}\n{self.options}\n" + "\n".join(map(str, self.calls))


def value(rng: random.Random, name: str) -> Any:
    if name in ("x", "y"):
        return (rng.choice(SIZES), rng.choice(SIZES))
    if name == "box":
        return (rng.choice(range(6)), rng.choice((0.5, 1.0, 2.5)))
    if name == "pair":
        return (value(rng, "x"), rng.choice(range(5)))
    if name == "tensors":
        return tuple(value(rng, "x") for _ in range(rng.choice((1, 2, 2, 3))))
    if name == "net":
        return (rng.choice(range(4)), rng.choice((0.5, 1.0, 2.5)), rng.random() < 0.7)
    if name == "dtype":
        return rng.choice(("float32", "float32", "float64", "bfloat16"))
    if name == "items":
        return tuple(rng.choice((1, 2, 3)) for _ in range(rng.choice((1, 2, 3))))
    return rng.choice(
        {"n": range(7), "r": (0.0, 0.5, 1.0, 1.5, 2.5), "flag": (True, False), "s": ("a", "bb", "c")}[name]
    )


def changed(rng: random.Random, name: str, have: Any) -> Any:
    """Another value near this one."""
    if name in ("x", "y"):
        dim = rng.choice((0, 1, 2))
        return tuple(rng.choice(SIZES) if dim in (d, 2) else size for d, size in enumerate(have))
    if name == "box":
        return (
            (rng.choice(range(6)), have[1]) if rng.random() < 0.5 else (have[0], rng.choice((0.5, 1.0, 2.5)))
        )
    if name in ("pair", "net", "tensors"):
        which = rng.randrange(len(have))
        new = value(rng, name) if name != "tensors" else [changed(rng, "x", size) for size in have]
        return tuple(new[which] if i == which else item for i, item in enumerate(have))
    return value(rng, name)


FIRST, MORE = 2000, ["pair", "tensors", "net", "dtype"]
"""Numbers from here on may have these parameters, and more ways of calling; those before stay what they were."""


def more(number: int, calls: list[Call]) -> None:
    """Vary how the calls are made."""
    rng = random.Random(f"{number}: how it is called")
    modes, grads, names = rng.random() < 0.25, rng.random() < 0.25, rng.random() < 0.25
    for call in calls:
        call.by_name = names and rng.random() < 0.5
        call.mode = rng.choice(("", "no_grad", "inference_mode")) if modes else ""
        call.grad = grads and rng.random() < 0.5
        if rng.random() < 0.5:
            call.marks = [(*m, {"min": 2, "max": 64}) if m[0] == "mark_dynamic" else m for m in call.marks]


def history(number: int) -> History:
    """The history of that number, always the same."""
    rng = random.Random(number)
    pool = ["y", "n", "r", "flag", "s", "box", "items", *(MORE if number >= FIRST else [])]
    names = [
        "x",
        *sorted(rng.sample(pool, rng.choice((0, 1, 1, 2, 2, 3)))),
    ]
    kinds = ["size", *("two" if n == "y" else n for n in names[1:])]
    lines = [rng.choice(LINES[kind]) for kind in [*kinds, rng.choice(kinds)]]
    rng.shuffle(lines)
    body = "".join(f"    {line.format(d=rng.choice((0, 1)), k=rng.choice((2, 3, 4)))}\n" for line in lines)
    source = f"{HELPER}def f({', '.join(names)}):\n    x = x + 1\n{body}    return x\n"
    options: dict[str, Any] = {"dynamic": rng.choice((None, None, None, True, False))}
    if rng.random() < 0.1:
        options["recompile_limit"] = rng.choice((1, 2, 3))
    now = {name: value(rng, name) for name in names}
    marks = [(rng.choice(MARKS), rng.choice((0, 1)))] if rng.random() < 0.3 else []
    if "range(x.shape" in source:
        # the graph breaks at the range of a size that isn't known, and torch (2.13) fails on a range that comes into a
        # frame with another length: InternalTorchDynamoError, or the frame is given up
        marks = [("maybe_mark_dynamic" if name == "mark_unbacked" else name, dim) for name, dim in marks]
    often = rng.random() < 0.5
    calls = []
    for i in range(rng.choice((4, 5, 6))):
        calls.append(Call(dict(now), marks if i == 0 or often else [], rng.random() < 0.08))
        for name in rng.sample(names, min(len(names), rng.choice((0, 1, 1, 1, 2)))):
            now[name] = changed(rng, name, now[name])
    owning = random.Random(f"{number}: which tensors are no views")
    for call in calls:
        call.owning = owning.random() < 0.5
    if number >= FIRST:
        more(number, calls)
    return History(number, source, options, calls)
