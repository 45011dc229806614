"""Run a function over trackers, without graph, guards or rewritten code, and tell what it gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # noqa: F401  (constants of its types)
from dynacheck.config import Config
from dynacheck.graph.oracle import Oracle
from dynacheck.sources import FrameView
from dynacheck.translate.frame import Frame
from dynacheck.translate.signals import Speculation
from dynacheck.translate.tracing import Attempt
from dynacheck.variables import abstract
from dynacheck.variables.base import ObservedException
from dynacheck.variables.results import python_value

Outcome = tuple[Any, ...]


class Static:
    """A policy without symbols."""

    def number(self, tx: Any, node: Any, value: Any) -> None:
        return None


def plainly(fn: Callable[[], Any]) -> Outcome:
    """What plain Python gives."""
    try:
        return "value", fn()
    except BaseException as error:
        return "raise", type(error).__name__, str(error)


def interpreted(fn: Any) -> Outcome:
    """What the interpreter over trackers gives, where torch breaks too."""
    attempt = Attempt(
        FrameView(fn, ()), Speculation(), Oracle(), Static(), None, False, Config(split_more=True)
    )
    frame = Frame(attempt, fn.__code__, {}, fn.__globals__, None)
    try:
        return "value", python_value(frame, frame.run())
    except ObservedException as observed:
        name = observed.exception.get_type().__name__
        return "raise", name, python_value(frame, abstract.str_(frame, observed.exception))
