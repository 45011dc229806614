"""Cost of a guard check, printed as a table: `python tests/benchmarks/bench_guards.py [--write]`.

The page gets what state that hasn't changed adds to a check, per module and per parameter.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

import dynacheck
import page
import torch
from bench_hit import nothing
from dynacheck import _C
from dynacheck.guards import (
    Absent,
    AmbientState,
    CodeIs,
    CompiledGuards,
    Distinct,
    KeysAre,
    NoMarks,
    TensorMatch,
    TypeIs,
    ValueIs,
    build_program,
    install,
    relate,
)
from dynacheck.sources import FrameView, Node, Root
from torch import nn


def add(x: Any, y: Any) -> Any:
    return x + y


def best(compiled: CompiledGuards, frame: FrameView, n: int) -> float:
    """Nanoseconds of the fastest of many runs."""
    assert compiled.check(frame)
    return min(compiled.program.bench(frame.args, frame.func, n) for _ in range(40))


def tensor(node: Node, value: torch.Tensor) -> None:
    install(node, TensorMatch.of(value), None)
    install(node, NoMarks(), None)


def two_tensors(ambient: AmbientState | None) -> tuple[CompiledGuards, FrameView]:
    frame = FrameView(add, (torch.randn(4), torch.randn(4)))
    root = Root(frame)
    nodes = [root.local("x", 0), root.local("y", 1)]
    for node, value in zip(nodes, frame.args):
        tensor(node, value)
    relate(root, Distinct(), nodes, None)
    return build_program(root, ambient), frame


def module(node: Node, value: nn.Module, capture: list[Node]) -> None:
    install(node, TypeIs(type(value)), None)
    install(node.attr("forward"), Absent(), None)
    install(node.class_attr("forward"), CodeIs(type(value).forward), None)
    for name, parameter in value._parameters.items():
        place = node.attr("_parameters").key(name)
        if parameter is None:
            install(place, ValueIs(None), None)
        else:
            tensor(place, parameter)
            capture.append(place)
    for name, child in value._modules.items():
        assert child is not None
        module(node.attr("_modules").key(name), child, capture)
    if value._modules:
        install(node.attr("_modules"), KeysAre(value._modules), None)


def whole_module(n: int, captured: bool) -> tuple[CompiledGuards, FrameView]:
    model = nn.Sequential(*[nn.Linear(4, 4, bias=False) for _ in range(n)])
    frame = FrameView(add, (model, torch.randn(2, 4)))
    root, capture = Root(frame), []
    module(root.local("self", 0), model, capture)
    tensor(root.local("x", 1), frame.args[1])
    relate(root, Distinct(), [*capture, root.local("x", 1)], None)
    return build_program(root, AmbientState.now(), capture if captured else ()), frame


def torch_state() -> tuple[str, Callable[[], float]]:
    from timeit import repeat

    from torch._C._dynamo.guards import GlobalStateGuard

    check = GlobalStateGuard().check
    return (
        "torch's GlobalStateGuard, from Python",
        lambda: min(repeat(check, number=10_000, repeat=20)) / 10_000 * 1e9,
    )


class Idle(nn.Module):
    def forward(self, x: Any) -> Any:
        return x


class Whole(nn.Module):
    """A model whose own forward is the frame that is compiled."""

    def __init__(self, *inner: nn.Module) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.ReLU(), *inner)

    def forward(self, x: Any) -> Any:
        return self.inner(x)


class Adding(nn.Module):
    def __init__(self, parameters: int) -> None:
        super().__init__()
        self.all = nn.ParameterList([nn.Parameter(torch.ones(4)) for _ in range(parameters)])

    def forward(self, x: Any) -> Any:
        for parameter in self.all:
            x = x + parameter
        return x


def guarded(model: nn.Module) -> tuple[CompiledGuards, FrameView]:
    """Guards on types, dicts and tensors only."""
    frame = FrameView(add, (model, torch.randn(2, 4)))
    root = Root(frame)
    module(root.local("self", 0), model, [])
    return build_program(root, AmbientState.now()), frame


def captured(model: nn.Module) -> float:
    """Nanoseconds of a check of the entry that compiling the model makes."""
    x = torch.ones(2, 4)
    dynacheck.compile(model, backend=nothing)(x)
    (entry,) = _C.state(type(model).forward.__code__).entries
    program = entry.program
    assert program is not None and program.check((model, x), type(model).forward)
    ns = min(program.bench((model, x), type(model).forward, 30) for _ in range(100))
    dynacheck.reset()
    return ns


def slope(measure: Callable[[int], float], n: int) -> float:
    """What each of `n` more adds, in nanoseconds."""
    few, many = (min(measure(size) for _ in range(3)) for size in (1, n + 1))
    return (many - few) / n


def unchanged() -> list[tuple[str, ...]]:
    """(what, nanoseconds each of 100, 300 and 1000) per kind of state."""
    kinds: list[tuple[str, Callable[[int], float]]] = [
        (
            "a module: type and dicts",
            lambda n: best(*guarded(nn.Sequential(*[Idle() for _ in range(n)])), 60),
        ),
        (
            "the same, in a captured model: its four dicts of hooks, too",
            lambda n: captured(Whole(*[Idle() for _ in range(n)])),
        ),
        ("a parameter", lambda n: best(*guarded(Adding(n).all), 60)),
        ("the same, in a captured model", lambda n: captured(Adding(n))),
        (
            "a module with one parameter",
            lambda n: best(*guarded(nn.Sequential(*[nn.Linear(4, 4, bias=False) for _ in range(n)])), 60),
        ),
    ]
    return [(name, *(f"{slope(measure, n):.1f}" for n in (100, 300, 1000))) for name, measure in kinds]


def main() -> None:
    torch.set_num_threads(1)
    rows: list[tuple[str, float]] = []
    with torch.no_grad():
        name, measure = torch_state()
        rows.append((name, measure()))
        empty = build_program(Root(FrameView(add, (1, 2))), None)
        rows.append(("empty program", best(empty, FrameView(add, (1, 2)), 20_000)))
        ambient = build_program(Root(FrameView(add, (1, 2))), AmbientState.now())
        rows.append(("global state", best(ambient, FrameView(add, (1, 2)), 20_000)))
        rows.append(("f(x, y) without global state", best(*two_tensors(None), 20_000)))
        rows.append(("f(x, y)", best(*two_tensors(AmbientState.now()), 20_000)))
        for n in (1, 10, 100, 1000):
            for shortcut in (0, 1):
                for captured in (False, True):
                    _C.force("shortcut", shortcut)
                    how = ("walk", "shortcut")[shortcut] + (", captured" if captured else "")
                    rows.append(
                        (f"{n} parameters, {how}", best(*whole_module(n, captured), max(20, 20_000 // n)))
                    )
    for name, ns in rows:
        sys.stdout.write(f"{name:40} {ns / 1000:9.3f} µs\n")
    _C.force("shortcut", 1)
    with torch.no_grad():
        table = page.table(("nanoseconds for each of", "100", "300", "1000"), unchanged())
    print(table)
    if "--write" in sys.argv[1:]:
        what = (
            "What a check costs for state that is as it was, for each more of it (an entry that serves a hit looks "
            "at all of it, since a write to a tensor's metadata or an object's class tells nobody)."
        )
        page.write("State that hasn't changed", "tests/benchmarks/bench_guards.py --write", what, table)


if __name__ == "__main__":
    main()
