"""The register of small programs that are run over trackers and by plain Python.

Each takes no arguments and returns plain data, or raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: list[Callable[[], Any]] = []


def program(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Register a program."""
    PROGRAMS.append(fn)
    return fn
