"""Where the time of a first call goes: `python tests/benchmarks/bench_profile.py [--write] [--functions=N]`.

A profile of first calls after a reset, in a process that has compiled before, of the models of `bench_capture.py`. What
functions in C take counts for the part that calls them.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

import dynacheck
import page
import torch
from bench_capture import nothing, programs

ENGINE = str(Path(dynacheck.__file__).parent)
PARTS = {
    "bytecode": "decoding and assembling code", "sources": "paths of values", "accessors": "paths of values",
    "guards": "guards", "graph": "the graph and metadata of tensors", "variables": "trackers of values",
    "handlers": "calls of known functions", "opcodes": "instructions", "translate": "frames, calls, rewritten code",
    "backends": "backend", "runtime": "entries, limits, history",
}  # fmt: skip


def part_of(file: str) -> str:
    """Which part of a first call a source file is."""
    if file.startswith(ENGINE):
        name = file[len(ENGINE) + 1 :].split("/")[0].removesuffix(".py")
        return PARTS.get(name, "events and settings")
    if "/torch/fx/" in file:
        return "torch.fx"
    return "the rest of torch" if "/torch/" in file else "the standard library"


def profiled(model: Any, args: tuple[Any, ...], rounds: int) -> pstats.Stats:
    """The profile of first calls."""
    profile = cProfile.Profile(time.process_time)
    for i in range(rounds + 1):
        dynacheck.reset()
        compiled = dynacheck.compile(model, backend=nothing)
        if i:  # the first one warms up
            profile.enable()
        compiled(*args)
        profile.disable()
    return pstats.Stats(profile)


def shares(stats: Any) -> Counter[str]:
    """The part of all time that each part takes."""
    found: Counter[str] = Counter()
    for (file, _, _), (_, _, own, _, callers) in stats.stats.items():
        if file == "~" and callers:
            for (caller, _, _), (_, _, from_there, _) in callers.items():
                found[part_of(caller)] += from_there
        else:
            found[part_of(file)] += own
    total = sum(found.values())
    return Counter({name: took / total for name, took in found.items()})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--functions", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    names, columns = [], []
    with torch.no_grad():
        for name, model, args in programs():
            stats = profiled(model, args, arguments.rounds)
            names.append(name.partition(",")[0])
            columns.append(shares(stats))
            if arguments.functions:
                print(name)
                stats.sort_stats("tottime").print_stats(arguments.functions)
    whole = sum(columns, Counter())
    rows = [(part, *(f"{column[part]:.0%}" for column in columns)) for part, _ in whole.most_common()]
    text = page.table(("", *names), rows)
    print(text)
    if arguments.write:
        what = "The profile of first calls, by part of the engine; functions in C count for the part that calls them."
        page.write(
            "Where the time of a first call goes", "tests/benchmarks/bench_profile.py --write", what, text
        )


if __name__ == "__main__":
    main()
