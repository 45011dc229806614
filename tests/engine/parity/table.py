"""Prints how far the bundled engine agrees with torch.compile, program by program.

    python tests/engine/parity/table.py [NAME ...] [--verbose] [--torch] [--failing] [--rows | --cases]

NAME is a part of a program's name, or a row number. Columns are graphs/break places/recompiles/entries.
``--verbose`` also prints calls, reasons and tracebacks; ``--torch`` leaves our engine out; ``--failing``
hides what agrees.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
for root in (HERE.parents[2], HERE.parents[2] / "engine"):
    sys.path.append(str(root))


def chosen(programs: list, names: list[str]) -> list:
    """Returns the programs that one of the names selects; all without names."""
    return [
        program
        for program in programs
        if not names or any(str(program.row) == name or name in program.name for name in names)
    ]


def torch_only(program):
    """Returns the outcome under torch.compile and what is unexpected about it."""
    from parity.engines import ENGINES
    from parity.harness import differences, run

    seen = run(program, ENGINES["torch"])
    wrong = [] if program.torch_differs else differences(run(program), seen, tracebacks=False)
    raw = {**seen.figures.raw}
    if not program.row:
        raw["graphs"] = seen.backend_calls  # a case's own other backends aren't in its figures
    return seen, wrong + [
        f"{key}: {raw[key]}, expected {n}" for key, n in program.raw.items() if raw[key] != n
    ]


def both(program):
    """Returns the outcomes under both engines and why they disagree."""
    from parity.compare import compare

    found = compare(program)
    return found.torch, found.bundled, found.disagreements()


def verdict_of(problems: list[str], name: str) -> str:
    """Returns one word for the table."""
    from parity.expected_failures import AS_TORCH, EXPECTED_FAILURES, ON_PURPOSE

    if problems:
        return "expected" if name in EXPECTED_FAILURES else "DIFFERS"
    if name in EXPECTED_FAILURES:
        return "AGREES, remove from expected_failures"
    return "on purpose" if name in ON_PURPOSE or name in AS_TORCH else "agrees"


def detail(program, outcomes) -> None:
    """Prints calls, reasons and guards of every engine."""
    for name, outcome in outcomes:
        print(f"      {name}: calls {outcome.outcomes}")
        for label, lines in (
            ("break", outcome.figures.reasons),
            ("recompile", outcome.figures.guards),
            ("skip", outcome.figures.skipped),
        ):
            for line in lines:
                print(f"        {label} {line}")
    print(f"      {program.file}")


def show(program, arguments) -> bool:
    """Runs one program and prints its line; returns whether it is well."""
    started, outcomes, error = time.perf_counter(), [], ""
    try:
        if arguments.torch:
            theirs, problems = torch_only(program)
            outcomes = [("torch", theirs)]
            verdict = "DIFFERS" if problems else "as expected"
        else:
            theirs, ours, problems = both(program)
            outcomes = [("torch", theirs), ("ours", ours)]
            verdict = verdict_of(problems, program.name)
    except Exception as raised:
        problems, verdict = (
            [f"{type(raised).__name__}: {str(raised).splitlines()[0] if str(raised) else ''}"],
            "ERROR",
        )
        error = traceback.format_exc()
    well = not problems
    if well and arguments.failing:
        return well
    figures = [outcome.figures.short() for _, outcome in outcomes] + ["-", "-"]
    row = program.row or ""
    seconds = time.perf_counter() - started
    print(
        f"{row:>4} {program.name:38.38} {figures[0]:>11} {figures[1]:>11} {seconds:6.2f}s  {verdict}", end=""
    )
    print(f"  {problems[0]:.110}" if problems else "", flush=True)
    if arguments.verbose:
        for problem in problems[1:]:
            print("      " + problem)
        detail(program, outcomes)
        if error:
            print(error)
    return well


def main() -> int:
    """Prints the table; returns 1 if a program differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    for option in ("verbose", "torch", "failing", "rows", "cases"):
        parser.add_argument(f"--{option}", action="store_true")
    arguments = parser.parse_args()

    import torch
    import torch._dynamo
    from parity.engines import ENGINES
    from parity.programs import all_cases, all_programs

    torch.set_num_threads(1)
    for name in ("torch", *logging.root.manager.loggerDict):
        if not name.startswith("torch"):
            continue
        for handler in logging.getLogger(name).handlers:
            handler.setLevel(logging.CRITICAL + 1)
    if not arguments.torch and (reason := ENGINES["bundled"].unavailable()):
        print(f"torch only: {reason}")
        arguments.torch = True
    rows = [] if arguments.cases else all_programs()
    cases = [] if arguments.rows else all_cases()
    print(
        f"{'row':>4} {'program':38} {'torch':>11} {'ours':>11} {'':7}  graphs/break places/recompiles/entries"
    )
    total = agreeing = 0
    for group in (rows, cases):
        results = [show(program, arguments) for program in chosen(group, arguments.names)]
        if results:
            print(f"     {sum(results)} of {len(results)} {'rows' if group is rows else 'cases'} agree")
        total, agreeing = total + len(results), agreeing + sum(results)
    print(f"     {agreeing} of {total} agree")
    return 0 if agreeing == total else 1


if __name__ == "__main__":
    sys.exit(main())
