"""A hit against torch.compile, with a backend that computes nothing: `python tests/benchmarks/bench_hit.py
[--write]`.

What is left is what the engine adds to every call: guards, and getting at the compiled code.
"""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

import dynacheck
import page
import torch


def nothing(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    out = gm(*example_inputs)
    return lambda *args: out


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


def layers(parameters: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(parameters // 2)))


def timer(call: Callable[..., Any], args: tuple[Any, ...], n: int) -> Callable[[], float]:
    """A function that measures the microseconds of one call."""

    def measure() -> float:
        start = time.perf_counter()
        for _ in range(n):
            call(*args)
        return (time.perf_counter() - start) / n * 1e6

    return measure


def rows() -> list[tuple[str, float, float]]:
    """(program, microseconds with torch.compile, microseconds with dynacheck) per program."""
    x, y = torch.ones(4), torch.ones(4)
    programs: list[tuple[str, Any, tuple[Any, ...], int]] = [("`f(x, y)`", add, (x, y), 3000)]
    for n, repeat in ((10, 2000), (100, 500), (1000, 60), (10000, 6)):
        programs.append((f"{n} parameters", layers(n), (torch.ones(2, 4),), repeat))
    found = []
    for name, program, args, n in programs:
        calls = [
            torch.compile(copy.deepcopy(program), backend=nothing),
            dynacheck.compile(copy.deepcopy(program), backend=nothing),
        ]
        for call in calls * 2:
            call(*args)
        theirs, ours = page.interleaved([timer(call, args, n) for call in calls], 25)
        found.append((name, theirs, ours))
        torch._dynamo.reset()
        dynacheck.reset()
    return found


def main() -> None:
    torch.set_num_threads(1)
    with torch.no_grad():
        measured = rows()
    lines = [
        (name, f"{theirs:.2f}", f"{ours:.2f}", f"1/{theirs / ours:.1f}") for name, theirs, ours in measured
    ]
    text = page.table(("", "torch.compile, µs", "dynacheck, µs", "ratio"), lines)
    print(text)
    if "--write" in sys.argv[1:]:
        what = (
            "One call that an existing entry serves, with a backend that computes nothing: `f(x, y)`, and "
            "`nn.Sequential` of `nn.Linear`."
        )
        page.write("A hit", "tests/benchmarks/bench_hit.py --write", what, text)


if __name__ == "__main__":
    main()
