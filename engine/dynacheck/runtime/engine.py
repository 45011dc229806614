"""The state of the engine in this process: one object, cleared by `reset()`."""

from __future__ import annotations

import os
import threading
from contextvars import ContextVar

from dynacheck import _C
from dynacheck.backends.local import inspect
from dynacheck.events import WasReset, observers
from dynacheck.graph.oracle import Oracle
from dynacheck.runtime.codes import Numbers
from dynacheck.runtime.history import History
from dynacheck.runtime.regions import Regions


class Engine:
    """What all compiled callables of the process share.

    Attributes:
        lock: held while a frame is translated.
        oracle: metadata propagation; its memo outlives `reset()`.
        regions: the compile regions.
        numbers: of code objects.
        history: what changed between translations.
        fail_on_break: whether graph breaks are errors here, whatever the compile says; None: as it says.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.oracle = Oracle()
        self.regions = Regions()
        self.numbers = Numbers()
        self.history = History()
        self.fail_on_break: ContextVar[bool | None] = ContextVar("dynacheck_fail_on_break", default=None)

    def reset(self) -> None:
        """Drop all entries, graphs and histories."""
        with self.lock:
            for state in _C.states():
                state.clear()
            self.regions.reset()
            self.numbers.reset()
            self.history.clear()
            inspect.captured.clear()
        if observers.active:
            observers.emit(WasReset())

    def forked(self) -> None:
        """In a child process: whoever held the lock in the parent isn't there."""
        self.lock = threading.RLock()


engine = Engine()
os.register_at_fork(after_in_child=engine.forked)
