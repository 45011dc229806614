"""Calls of compiled callables, while somebody observes: when one starts, what served it, how it ended."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

from dynacheck import _C
from dynacheck.events import CallFinished, CallStarted, CodeRef, observers
from dynacheck.runtime.codes import EntryRecord, caller_line


class Call:
    """One outermost call on a thread.

    Attributes:
        number: its number, of all threads.
        hits: frames that an entry served.
        added: entries that were added.
    """

    __slots__ = ("added", "hits", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.hits = 0
        self.added = 0

    @property
    def outcome(self) -> str:
        return "miss" if self.added else "hit" if self.hits else "eager"


class _Current(threading.local):
    """The call that runs on this thread."""

    call: Call | None = None


_current = _Current()
_numbers = itertools.count(1)


def current() -> Call | None:
    """The outermost compiled call on this thread, if it is watched."""
    return _current.call


def number() -> int:
    """The number of the compiled call on this thread, 0 outside."""
    call = _current.call
    return 0 if call is None else call.number


def added() -> None:
    """An entry was added during the call on this thread."""
    if _current.call is not None:
        _current.call.added += 1


def hit(entry: _C.Entry, func: FunctionType | None = None) -> None:
    """An entry served a frame. Entries of frames without tensor operations don't count."""
    call = _current.call
    owner = entry.owner
    if call is not None and isinstance(owner, EntryRecord) and owner.counted:
        call.hits += 1


def watched(target: CodeRef | None, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a compiled callable and tell observers.

    Args:
        target: the function it was made of.
        fn: what runs it with the hook on.
        args: positional arguments.
        kwargs: keyword arguments.

    Returns:
        What it returns. A call inside another one on the same thread is part of that one.
    """
    if _current.call is not None:
        return fn(*args, **kwargs)
    call = _current.call = Call(next(_numbers))
    raised = True
    try:
        observers.emit(CallStarted(target, caller_line(), call=call.number))
        result = fn(*args, **kwargs)
        raised = False
        return result
    finally:
        _current.call = None
        observers.emit(CallFinished(target, call.outcome, call.hits, raised, call=call.number))
