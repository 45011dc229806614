"""The zoo's models under both engines: `python tests/benchmarks/models.py [NAME ...] [--write] [--rounds=N]`.

For each model: graphs, break places and operators of a first call in eval mode; how long that call took with a backend
that compiles nothing, best of several rounds after a warm-up, the engines in turn; what a later call takes beyond its
graphs; and the most memory that Python held during a first call.
"""

from __future__ import annotations

import argparse
import logging
import math
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "engine" / "zoo"), str(ROOT / "tests" / "engine"), str(ROOT)]

import page  # noqa: E402
import torch  # noqa: E402
from parity.engines import ENGINES  # noqa: E402
from zoo import all_models  # noqa: E402
from zoo_model import Model, compared, is_operator, leaves, seed  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "models.md"
TEXT = """What both engines capture of models of the zoo at their first call in eval mode, and how long that takes with
a backend that compiles nothing: best of {rounds}, after a warm-up, the engines in turn, on one thread. Sizes are small:
capture depends on the number of operators, not on theirs. "Hit" is what a call takes that existing entries serve, with
graphs that give what they gave before: guards and rewritten code. "Peak" is the most memory that Python held in a first
call. Where two numbers stand, the second is torch.compile's.
"""


class Side:
    """One engine on one model.

    Attributes:
        best: the least milliseconds of a first call.
        operators: of each graph of the last first call.
        places: how many places broke.
        hit: microseconds of a later call with graphs that compute nothing.
        peak: most bytes that Python allocated in a first call.
        results: tensors and numbers of the first call's result, by path.
    """

    def __init__(self, name: str, model: Model) -> None:
        self.engine = ENGINES[name]
        seed(0)
        self.module, calls = model.make()
        self.module.eval()
        self.args, self.kwargs = calls[0]
        self.step = model.step
        self.best = math.inf
        self.operators: list[int] = []
        self.places = 0
        self.hit, self.peak = math.inf, 0
        self.results: dict[str, Any] = {}

    def run(self, target: Any) -> Any:
        """One call."""
        if self.step is None:
            return target(*self.args, **self.kwargs)
        return self.step(target, *self.args, **self.kwargs)

    def count(self) -> None:
        """A first call that counts; warms up, too. Then what hits take, and memory."""
        with self.engine.record() as seen:
            self._call()
        self.places = len(seen.finish().places)
        tracemalloc.start()
        try:
            self._call()
            self.peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        self._hits()

    def measure(self) -> None:
        self.best = min(self.best, self._call())

    def _hits(self, rounds: int = 30) -> None:
        """Calls whose graphs give what they gave the first time."""

        def computed_once(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
            kept: list[Any] = []

            def graph(*inputs: Any) -> Any:
                if not kept:
                    kept.append(gm.forward(*inputs))
                return kept[0]

            return graph

        self.engine.reset()
        compiled = self.engine.compile(self.module, backend=computed_once)
        for _ in range(3):  # sizes that change from call to call become symbols first
            self.run(compiled)
        for _ in range(rounds):
            start = time.perf_counter()
            self.run(compiled)
            self.hit = min(self.hit, (time.perf_counter() - start) * 1e6)
        self.engine.reset()

    def _call(self) -> float:
        operators: list[int] = []

        def nothing(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
            operators.append(sum(is_operator(node) for node in gm.graph.nodes))
            return gm.forward

        self.engine.reset()
        compiled = self.engine.compile(self.module, backend=nothing)
        seed(1)
        start = time.perf_counter()
        result = self.run(compiled)
        took = (time.perf_counter() - start) * 1e3
        self.operators, self.results = operators, dict(leaves(result))
        self.engine.reset()
        return took


def measured(model: Model, rounds: int) -> tuple[Side, Side]:
    """Both engines on a model: theirs, ours."""
    sides = Side("torch", model), Side("bundled", model)
    for side in sides:
        side.count()
    for _ in range(rounds):
        for side in sides:
            side.measure()
    return sides


def works(ours: Side, tolerance: float) -> bool:
    """Whether the first call's result is that of an eager call."""
    seed(1)
    plain = dict(leaves(ours.run(ours.module)))
    return not compared(plain, ours.results, "result", tolerance)


def row(model: Model, theirs: Side, ours: Side) -> tuple[str, ...]:
    def both(one: int, other: int) -> str:
        return str(one) if one == other else f"{one} / {other}"

    return (
        model.name,
        both(len(ours.operators), len(theirs.operators)),
        both(ours.places, theirs.places),
        both(sum(ours.operators), sum(theirs.operators)),
        f"{ours.best:.0f}",
        f"{theirs.best:.0f}",
        f"1/{theirs.best / ours.best:.1f}",
        f"{ours.hit:.0f} / {theirs.hit:.0f}",
        f"{ours.peak / 2**20:.1f} / {theirs.peak / 2**20:.1f}",
    )


def mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    groups: dict[str, list[tuple[str, ...]]] = {}
    ratios: list[float] = []
    whole = right = 0
    hits: list[float] = []
    peaks: list[float] = []
    with torch.no_grad():
        for model in all_models():
            if arguments.names and not {model.name, model.group} & set(arguments.names):
                continue
            theirs, ours = measured(model, arguments.rounds)
            groups.setdefault(model.group, []).append(row(model, theirs, ours))
            ratios.append(theirs.best / ours.best)
            hits.append(theirs.hit / ours.hit)
            peaks.append(theirs.peak / ours.peak)
            right += works(ours, model.tolerance)
            whole += ours.places == 0 and len(ours.operators) > 0
            print(*groups[model.group][-1], flush=True)
    n = len(ratios)
    text = f"{n} models, {right} give eager's results ({right / n:.0%}), {whole} without a break ({whole / n:.0%}). "
    text += f"Of torch's (geometric means), a first call takes 1/{mean(ratios):.1f} of the time (at worst "
    text += (
        f"1/{min(ratios):.1f}) and 1/{mean(peaks):.1f} of the memory, a hit 1/{mean(hits):.1f} of the time."
    )
    print(text)
    if arguments.write:
        head = ("", "graphs", "breaks", "operators", "ms", "torch, ms", "ratio", "hit, µs", "peak, MiB")
        tables = [f"### {group}\n\n{page.table(head, rows)}" for group, rows in groups.items()]
        page.write(
            "First calls and hits",
            "tests/benchmarks/models.py --write",
            f"{TEXT.format(rounds=arguments.rounds)}\n{text}",
            "\n\n".join(tables),
            PAGE,
        )


if __name__ == "__main__":
    main()
