"""Tracebacks of tests under test without the engine's and torch's compiler's frames, in causes too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import pytest

_HIDDEN = tuple(
    f"{os.sep}{name}"
    for name in (
        "dynacheck" + os.sep,
        os.path.join("torch", "_dynamo", ""),
        os.path.join("torch", "_functorch", ""),
        os.path.join("torch", "_inductor", ""),
        os.path.join("torch", "_subclasses", ""),
        os.path.join("torch", "fx", ""),
        os.path.join("torch", "nn", "modules", "module.py"),
        os.path.join("torch", "__init__.py"),
        os.path.join("torch", "_compile.py"),
        os.path.join("torch", "_guards.py"),
        os.path.join("torch", "_utils_internal.py"),
    )
)


def is_internal(file: str) -> bool:
    """True for files of the plugin, of the engine and of torch's compiler."""
    return any(part in file for part in _HIDDEN) or f"{os.sep}pytest_dynacheck{os.sep}" in file


def trim(info: pytest.ExceptionInfo[BaseException]) -> None:
    """Leave out internal frames where others remain; `--pdb` and the exception's own traceback keep them all.

    Args:
        info: as pytest got it; changed.
    """
    # pytest cuts by the chain of raw entries, so that a filtered list of them would not hold
    kept = _without(info.tb)
    if kept is not None:
        info.traceback = type(info.traceback)(kept)
    for error in _behind(info.value):
        error.__traceback__ = _without(error.__traceback__)


def _behind(error: BaseException) -> Iterator[BaseException]:
    """The exceptions that pytest shows above this one."""
    seen = {id(error)}
    current: BaseException | None = error
    while current is not None:
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        if current is None or id(current) in seen:
            return
        seen.add(id(current))
        yield current


def _without(traceback: TracebackType | None) -> TracebackType | None:
    entries: list[Any] = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    kept = [e for e in entries if not is_internal(e.tb_frame.f_code.co_filename)] or entries[-1:]
    result: TracebackType | None = None
    for entry in reversed(kept):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result
