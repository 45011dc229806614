"""What the plugin asks of an engine, whichever it is.

An engine compiles, forgets and is watched. ``dynacheck`` (bundled) and the installed torch.compile
(``stock``) both answer to this; counts that an engine can't know are ``None``, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

__all__ = ["Engine", "Watched"]


class Watched(Protocol):
    """What was seen between entering and leaving :meth:`Engine.record`."""

    @property
    def counts(self) -> Mapping[str, int | None]:
        """The numbers budgets are about: ``graphs``, ``graph_breaks``, ``recompiles``, ``cache_entries``."""


class Engine(Protocol):
    """Compiles callables and tells what that took."""

    name: str

    def compile(self, fn: Callable[..., Any], **keywords: Any) -> Callable[..., Any]:
        """Returns the compiled form of ``fn``; takes torch.compile's keywords."""

    def reset(self) -> None:
        """Drops entries and shape history, as if nothing had been compiled in this process."""

    def record(self) -> AbstractContextManager[Watched]:
        """Watches every thread of this process until the context is left."""
