"""Tracebacks of exceptions that leave compiled functions."""

from __future__ import annotations

from types import TracebackType

from dynacheck import config
from dynacheck.bytecode.assemble import continues
from dynacheck.errors import InternalError
from dynacheck.places import is_engine


def tidy(error: BaseException) -> None:
    """Leave out of a traceback what plain Python doesn't have there.

    That are frames which only called their own resume function and, unless the setting `verbose` is on or the
    exception is a fault of the engine, the engine's own frames.

    Args:
        error: what is being raised; its traceback, and those of what it came from, are changed.
    """
    own = isinstance(error, InternalError) or config.get("verbose")
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        item = todo.pop()
        if item is None or id(item) in seen:
            continue
        seen.add(id(item))
        todo += (item.__cause__, item.__context__)
        item.__traceback__ = _without_splits(item.__traceback__, own)


def _without_splits(first: TracebackType | None, own: bool) -> TracebackType | None:
    """The entries of a traceback but those that go on in a resume function of theirs, and the engine's own."""
    kept: list[TracebackType] = []
    entry = first
    while entry is not None:
        if kept and _resumes(kept[-1], entry):
            kept.pop()
        if own or not is_engine(entry.tb_frame.f_code.co_filename):
            kept.append(entry)
        entry = entry.tb_next
    following: TracebackType | None = None
    for entry in reversed(kept):
        if entry.tb_next is not following:
            entry.tb_next = following
        following = entry
    return following


def _resumes(entry: TracebackType, resumed: TracebackType) -> bool:
    """Whether an entry is a part of the function that another is a resume function of."""
    one, other = entry.tb_frame.f_code, resumed.tb_frame.f_code
    same = one.co_qualname == other.co_qualname and one.co_filename == other.co_filename
    return same and continues(other)
