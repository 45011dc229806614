"""Prints how far the bundled engine agrees with eager and with torch.compile, model by model.

    python tests/engine/zoo/table.py [NAME ...] [--verbose] [--eval | --train] [--no-torch] [--write]

Columns are graphs/break places/recompiles/entries, torch's first. ``--write`` puts a table of what ran on
docs/reference/models.md.
"""

from __future__ import annotations

import argparse
import logging
import pickle
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent), str(HERE.parents[1] / "benchmarks")]
PAGE = HERE.parents[2] / "docs" / "reference" / "models.md"
for root in (HERE.parents[2], HERE.parents[2] / "engine"):
    sys.path.append(str(root))


def show(model: object, training: bool, arguments: argparse.Namespace, rows: list[tuple]) -> bool:
    """Run one model in one mode, print its line and add what it gave to the rows; returns whether all agree."""
    import zoo_model
    from parity.engines import ENGINES
    from zoo import disagreements

    started, error, found, runs = time.perf_counter(), "", [], []
    try:
        eager = zoo_model.run(model, training=training)
        theirs = None
        if not arguments.no_torch:
            kept = Path(arguments.keep, f"{model.name}-{training}") if arguments.keep else None
            if kept is not None and kept.exists():
                theirs = pickle.loads(kept.read_bytes())
            else:
                theirs = zoo_model.run(model, ENGINES["torch"], training=training)
                if kept is not None:
                    kept.write_bytes(pickle.dumps(theirs))
        ours = zoo_model.run(model, ENGINES["bundled"], training=training)
        runs = [run for run in (theirs, ours) if run is not None]
        found = disagreements(model, eager, theirs, ours, training)
    except Exception as raised:
        text = str(raised).strip() or " "
        found, error = [f"{type(raised).__name__}: {text.splitlines()[0]}"], traceback.format_exc(limit=-8)
    figures = [run.figures.short() for run in runs] + ["-", "-"]
    if len(runs) == 2:
        right = not zoo_model.differences(eager, runs[1], model.tolerance)
        rows.append((model, training, *runs, right, not disagreements(model, eager, *runs, training, False)))
    name = f"{model.name} {'train' if training else 'eval'}"
    print(
        f"{name:34.34} {figures[0]:>11} {figures[1]:>11} {time.perf_counter() - started:6.1f}s  ",
        "DIFFERS  " + found[0][:200] if found else "agrees",
        flush=True,
    )
    if arguments.verbose:
        for text in found[1:]:
            print("      " + text[:300])
        for run in runs if found else ():
            print("     ", run.operators, *run.figures.reasons, *run.figures.guards, sep="\n        ")
            print("      skipped", *run.figures.skipped, sep="\n        ")
        if error:
            print(error)
    return not found


TEXT = """{n} runs of the zoo's {total} models, in eval and in training mode: three calls of different shapes, captured
with a backend that compiles nothing. "Right" is whether results, gradients, buffers and random numbers are eager's. Where
two numbers stand, the second is torch's; `why` is the reason that `tests/engine/zoo/expected_differences.py` has.

{works} of {n} runs give eager's results ({works_share:.0%}), {whole} of them as whole graphs without a break
({whole_share:.0%}; torch.compile {whole_torch}). {breaks:.2f} places break per run (torch.compile {breaks_torch:.2f}),
{graphs:.2f} graphs are made per run over the three shapes ({graphs_torch:.2f}), with {operators:.0f} operators in the
first ({operators_torch:.0f}). All figures agree with torch.compile's on {agree} runs.
"""


def summary(rows: list[tuple]) -> str:
    """The sentences above the table."""
    from zoo import all_models

    n = len(rows)
    theirs, ours = [row[2] for row in rows], [row[3] for row in rows]

    def per_model(runs: list, count: Callable) -> float:
        return sum(map(count, runs)) / n

    def whole(runs: list) -> int:
        return sum(not run.figures.places and run.figures.graphs > 0 for run in runs)

    named = {}
    for suffix, runs in (("", ours), ("_torch", theirs)):
        named[f"breaks{suffix}"] = per_model(runs, lambda run: len(run.figures.places))
        named[f"graphs{suffix}"] = per_model(runs, lambda run: run.figures.graphs)
        named[f"operators{suffix}"] = per_model(runs, lambda run: sum(run.operators[:1]))
        named[f"whole{suffix}"] = whole(runs)
    works = sum(row[4] for row in rows)
    return TEXT.format(
        n=n,
        total=sum(model.is_here() for model in all_models()),
        works=works,
        works_share=works / n,
        whole_share=named["whole"] / n,
        agree=sum(row[5] for row in rows),
        **named,
    )


def write(rows: list[tuple]) -> None:
    """Put the table on the page, in place of its earlier form."""
    import page
    from expected_differences import EXPECTED_FAILURES, ON_PURPOSE, OTHER_OPERATORS

    def both(one: int, other: int) -> str:
        return str(one) if one == other else f"{one} / {other}"

    lines = []
    for model, training, theirs, ours, right, _ in rows:
        figures = [
            both(getattr(ours.figures, key), getattr(theirs.figures, key))
            for key in ("graphs", "recompiles", "entries")
        ]
        figures.insert(1, both(len(ours.figures.places), len(theirs.figures.places)))
        figures.append(both(sum(ours.operators[:1]), sum(theirs.operators[:1])))
        key = model.name, training
        why = (
            EXPECTED_FAILURES.get(key) or ON_PURPOSE.get(key, ("",))[0] or OTHER_OPERATORS.get(model.name, "")
        )
        name = f"{model.name}, training" if training else model.name
        lines.append((name, model.group, "yes" if right else "no", *figures, why))
    head = ("", "group", "right", "graphs", "breaks", "recompiles", "entries", "operators", "why")
    page.write(
        "Figures over three shapes",
        "tests/engine/zoo/table.py --write",
        summary(rows).rstrip(),
        page.table(head, lines),
        PAGE,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keep", help="a folder that keeps torch's runs for the next time")
    for option in ("verbose", "eval", "train", "no-torch", "write"):
        parser.add_argument(f"--{option}", action="store_true")
    arguments = parser.parse_args()

    import torch
    from zoo import all_models

    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    agreeing = total = 0
    rows: list[tuple] = []
    for model in filter(lambda model: model.is_here(), all_models()):
        if arguments.names and not any(name in model.name or name == model.group for name in arguments.names):
            continue
        for training in (False, True):
            if (training and (arguments.eval or not model.training)) or (not training and arguments.train):
                continue
            total += 1
            agreeing += show(model, training, arguments, rows)
    print(f"{agreeing} of {total} agree")
    if rows:
        print(summary(rows))
    if arguments.write:
        write(rows)
    return 0 if agreeing == total else 1


if __name__ == "__main__":
    sys.exit(main())
