"""Tracebacks of exceptions that leave compiled functions."""

from __future__ import annotations

from types import TracebackType

from dynacheck import config
from dynacheck.errors import InternalError
from dynacheck.places import is_engine


def tidy(error: BaseException) -> None:
    """Leave the engine's own frames out of a traceback: plain Python has none there.

    They stay while the setting `verbose` is on, and in faults of the engine.

    Args:
        error: what is being raised; its traceback, and those of what it came from, are changed.
    """
    if isinstance(error, InternalError) or config.get("verbose"):
        return
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        item = todo.pop()
        if item is None or id(item) in seen:
            continue
        seen.add(id(item))
        todo += (item.__cause__, item.__context__)
        item.__traceback__ = _without_ours(item.__traceback__)


def _without_ours(first: TracebackType | None) -> TracebackType | None:
    """The entries of a traceback but the engine's own."""
    kept: list[TracebackType] = []
    entry = first
    while entry is not None:
        if not is_engine(entry.tb_frame.f_code.co_filename):
            kept.append(entry)
        entry = entry.tb_next
    following: TracebackType | None = None
    for entry in reversed(kept):
        if entry.tb_next is not following:
            entry.tb_next = following
        following = entry
    return following
