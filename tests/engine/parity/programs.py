"""Every program of the table, in order of its rows."""

from pathlib import Path

from parity.harness import Program, from_case, load

__all__ = ["CASES", "ROWS", "all_cases", "all_programs"]

HERE = Path(__file__).parent
ROWS = sorted(HERE.glob("programs_*.py"))
CASES = sorted((HERE.parents[1] / "cases").glob("[0-9]*.py"), key=lambda path: int(path.stem.split("_")[0]))


def all_programs() -> list[Program]:
    """Returns the programs of the table."""
    found = [program for path in ROWS for program in load(path).PROGRAMS]
    return sorted(found, key=lambda program: program.row)


def all_cases() -> list[Program]:
    """Returns the handed cases as programs."""
    return [from_case(load(path)) for path in CASES]
