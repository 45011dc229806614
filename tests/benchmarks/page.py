"""The page that benchmark scripts write their tables to: docs/reference/benchmarks.md, a section per
script."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "benchmarks.md"
HEAD = """# Benchmarks

Ratios against `torch.compile`, measured by the scripts below in one process, interleaved, best of several, on
one thread. Run them yourself: absolute times depend on the machine, ratios hardly do.
"""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are right-aligned."""
    lines = [head, [":---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(section: str, script: str, text: str, rows: str, where_to: Path = PAGE) -> None:
    """Put a section on the page, in place of its earlier form.

    Args:
        section: its heading.
        script: the script that measures it.
        text: what is measured.
        rows: the table.
        where_to: the page.
    """
    where = f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}"
    new = f"## {section}\n\n{text}\n\n{rows}\n\n`python {script}` on {where}.\n"
    page = where_to.read_text() if where_to.exists() else HEAD
    found = re.search(rf"## {re.escape(section)}\n.*?(?=\n## |\Z)", page, re.DOTALL)
    page = page.replace(found.group(), new) if found else f"{page.rstrip()}\n\n{new}"
    where_to.parent.mkdir(parents=True, exist_ok=True)
    where_to.write_text(page.rstrip() + "\n")


def interleaved(sides: Sequence[Callable[[], float]], rounds: int) -> list[float]:
    """The least value of each side over several rounds, one after the other in each round."""
    found = [[side() for side in sides] for _ in range(rounds)]
    return [min(values) for values in zip(*found)]
