"""What verdicts and numbers are called where people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_dynacheck._verdict import DIFFERS, EAGER, NOTHING, OK, OVER, UNKNOWN, counted

ALLOWED = "allowed"
WORDS = {
    OVER: "over budget",
    DIFFERS: "differing from eager",
    EAGER: "ended in eager",
    NOTHING: "compiled nothing",
    UNKNOWN: "with counts the engine can't know",
    OK: "ok",
}


def one_line(counts: Mapping[str, int | None]) -> str:
    """`2 graphs, 1 graph break`: for verbose mode and the table."""
    parts = [counted(counts["graphs"], "graphs")]
    parts += [counted(counts[name], name) for name in ("graph_breaks", "recompiles") if counts[name] != 0]
    if counts["eager_runs"]:
        parts.append(f"{counts['eager_runs']} eager runs" if counts["eager_runs"] > 1 else "1 eager run")
    return ", ".join(parts)


def name_of(fn: Any) -> str:
    """What a user calls a function, a module or the compiled form of one."""
    fn = getattr(fn, "_orig_mod", fn)
    name: str = getattr(fn, "__qualname__", type(fn).__qualname__)
    return name.rpartition("<locals>.")[2]


def given_up(run: tuple[str, str] | None) -> str:
    """What a break did to the frame that couldn't be split there.

    Args:
        run: the frame's function, and why; None if it isn't known.
    """
    function, why = run or ("the frame", "")
    return f"{function} can't go on after it{f' ({why})' if why else ''} and runs eagerly as a whole"
