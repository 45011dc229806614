"""What the plugin asks of an engine, whichever it is.

An engine compiles, forgets and is watched. ``dynacheck`` (bundled) and the installed torch.compile
(``stock``) both answer to this; counts that an engine can't know are ``None``, never 0.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, Protocol

__all__ = ["ENGINES", "Engine", "Make", "Watched", "load"]

ENGINES = {
    "bundled": "pytest_dynacheck.engines.bundled:Bundled",
    "torch": "pytest_dynacheck.engines.stock_engine:Stock",
}
"""Where the engines are, by name."""


class Watched(Protocol):
    """What was seen between entering and leaving :meth:`Engine.record`."""

    @property
    def counts(self) -> Mapping[str, int | None]:
        """The numbers budgets are about: ``graphs``, ``graph_breaks``, ``recompiles``, ``cache_entries``."""


class Engine(Protocol):
    """Compiles callables and tells what that took.

    Attributes:
        name: as options and reports call it.
        silent: hooks of the engine that don't answer, so that counts are unknown.
    """

    name: str
    silent: frozenset[str]

    @property
    def loaded(self) -> bool:
        """Whether its modules were imported."""

    @property
    def explain(self) -> Callable[..., Any] | None:
        """What ``torch._dynamo.explain`` becomes in a test; None leaves it."""

    def compile(self, fn: Callable[..., Any], **keywords: Any) -> Callable[..., Any]:
        """Returns the compiled form of ``fn``; takes torch.compile's keywords."""

    def reset(self) -> None:
        """Drops entries and shape history, as if nothing had been compiled in this process."""

    def was_reset(self) -> None:
        """The program reset torch's compiler."""

    def record(self) -> AbstractContextManager[Any]:
        """Watches every thread of this process until the context is left."""

    def unwatched(self) -> AbstractContextManager[None]:
        """Calls cost what they cost a program that nobody watches; what happens meanwhile isn't in any report."""

    def compile_count(self) -> int:
        """A number that grows when anything is compiled, watched or not."""

    def backends(self) -> Iterable[str]:
        """Names that ``backend=`` takes."""

    def settings(self) -> ModuleType | None:
        """The module of the engine's own settings, if it has any."""


Make = str | Callable[[str], Engine]
"""What makes an engine: `module:class` for ours, what a plugin gave for others."""


def load(make: Make, root: str) -> Engine:
    """Returns an engine.

    Args:
        make: what makes it.
        root: folder that file names in reports are relative to.

    Raises:
        ImportError: it can't be loaded, or not with this Python or torch.
    """
    if isinstance(make, str):
        importlib.import_module("dynacheck.versions").require()
        module, _, cls = make.partition(":")
        make = getattr(importlib.import_module(module), cls)
    engine: Engine = make(root)  # type: ignore[operator]
    return engine
