"""Engine `torch`: the installed torch.compile, watched."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

from dynacheck.events import WasReset
from dynacheck.report import Report

from pytest_dynacheck.engines import stock
from pytest_dynacheck.engines.stock_events import EventRecorder, unknown_counts

__all__ = ["Stock"]


class Stock:
    """The installed torch.compile, as the plugin's protocol asks for it.

    Args:
        root: folder that file names in reports are relative to.

    Attributes:
        silent: the hooks that don't answer on this torch; known once something was recorded.
    """

    name = "torch"
    loaded = True
    explain = None  # torch._dynamo.explain stays what it is

    def __init__(self, root: str) -> None:
        self._root = root
        self._recorders: list[EventRecorder] = []
        self.silent: frozenset[str] = frozenset()

    def compile(self, fn: Callable[..., Any], **keywords: Any) -> Callable[..., Any]:
        compiled: Callable[..., Any] = importlib.import_module("torch").compile(fn, **keywords)
        return compiled

    def reset(self) -> None:
        importlib.import_module("torch._dynamo").reset()

    def was_reset(self) -> None:
        """The program reset torch's compiler: what was counted stays counted, entries are counted anew."""
        for recorder in self._recorders:
            recorder.events.append(WasReset())

    @contextlib.contextmanager
    def record(self) -> Iterator[Report]:
        """Yields a Report that grows until the context is left; counts that can't be known are None."""
        with stock.record(make=EventRecorder) as recorder:
            assert isinstance(recorder, EventRecorder)
            self.silent = recorder.silent
            self._recorders.append(recorder)
            try:
                yield Report(recorder.events, root=self._root, unknown=unknown_counts(recorder.silent))
            finally:
                self._recorders.remove(recorder)

    def unwatched(self) -> AbstractContextManager[None]:
        """torch.compile without our hooks, until the block ends."""
        return stock.paused()

    def compile_count(self) -> int:
        """How many frames torch has tried to compile in this process."""
        count: int = importlib.import_module("torch._dynamo.utils").counters["frames"]["total"]
        return count

    def backends(self) -> Iterable[str]:
        """Names that `backend=` takes."""
        names: Iterable[str] = importlib.import_module("torch._dynamo").list_backends(None)
        return names

    def settings(self) -> ModuleType | None:
        """torch's own settings are looked after for every engine."""
        return None
