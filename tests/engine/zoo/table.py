"""Prints how far the bundled engine agrees with eager and with torch.compile, model by model.

    python tests/engine/zoo/table.py [NAME ...] [--verbose] [--eval | --train] [--no-torch]

Columns are graphs/break places/recompiles/entries.
"""

from __future__ import annotations

import argparse
import logging
import pickle
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent)]
for root in (HERE.parents[2], HERE.parents[2] / "engine"):
    sys.path.append(str(root))


def show(model: object, training: bool, arguments: argparse.Namespace) -> bool:
    """Run one model in one mode and print its line; returns whether all agree."""
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
        found = disagreements(model, eager, theirs, ours)
    except Exception as raised:
        text = str(raised).strip() or " "
        found, error = [f"{type(raised).__name__}: {text.splitlines()[0]}"], traceback.format_exc(limit=-8)
    figures = [run.figures.short() for run in runs] + ["-", "-"]
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


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keep", help="a folder that keeps torch's runs for the next time")
    for option in ("verbose", "eval", "train", "no-torch"):
        parser.add_argument(f"--{option}", action="store_true")
    arguments = parser.parse_args()

    import torch
    from zoo import all_models

    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    agreeing = total = 0
    for model in all_models():
        if arguments.names and not any(name in model.name or name == model.group for name in arguments.names):
            continue
        for training in (False, True):
            if (training and (arguments.eval or not model.training)) or (not training and arguments.train):
                continue
            total += 1
            agreeing += show(model, training, arguments)
    print(f"{agreeing} of {total} agree")
    return 0 if agreeing == total else 1


if __name__ == "__main__":
    sys.exit(main())
