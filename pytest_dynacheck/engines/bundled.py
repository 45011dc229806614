"""The engine that comes with the plugin: `dynacheck`, loaded when the first test needs it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

__all__ = ["Bundled"]


class Bundled:
    """`dynacheck`, as the plugin's protocol asks for it.

    Args:
        root: folder that file names in reports are relative to.
    """

    name = "bundled"
    silent: frozenset[str] = frozenset()

    def __init__(self, root: str) -> None:
        self._root = root
        self._module: ModuleType | None = None

    @property
    def module(self) -> ModuleType:
        """The engine's package, imported on first use."""
        if self._module is None:
            self._module = importlib.import_module("dynacheck")
        return self._module

    @property
    def loaded(self) -> bool:
        return self._module is not None

    def compile(self, fn: Callable[..., Any], **keywords: Any) -> Callable[..., Any]:
        compiled: Callable[..., Any] = self.module.compile(fn, **keywords)
        return compiled

    def reset(self) -> None:
        self.module.reset()

    was_reset = reset

    def explain(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What one call captures; a function of the call's arguments if there are none yet, as torch's is."""
        return self.module.explain(fn, *args, **kwargs)

    def record(self) -> AbstractContextManager[Any]:
        """Yields the engine's own Report, which grows until the context is left."""
        watched: AbstractContextManager[Any] = self.module.observe(self._root)
        return watched

    def unwatched(self) -> AbstractContextManager[None]:
        """Calls cost what they cost a program that nobody watches; what happens meanwhile isn't in any report."""
        events = importlib.import_module("dynacheck.events")
        paused: AbstractContextManager[None] = events.observers.paused()
        return paused

    def compile_count(self) -> int:
        """A number that grows when anything is compiled, watched or not: the cache entries of this process."""
        count: int = importlib.import_module("dynacheck.api").entry_count()
        return count

    def backends(self) -> Iterable[str]:
        """Names that `backend=` takes."""
        names: Iterable[str] = self.module.list_backends(None)
        return names

    def settings(self) -> ModuleType:
        """The module of the engine's settings."""
        return importlib.import_module("dynacheck.config")
