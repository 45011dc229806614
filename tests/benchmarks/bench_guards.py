"""Cost of a guard check, printed as a table: `python tests/benchmarks/bench_guards.py`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
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


if __name__ == "__main__":
    main()
