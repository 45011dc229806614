"""Standard library functions that reach outside of the program: logs, clocks, random numbers."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import Any, Final

from dynacheck.handlers.registry import handles
from dynacheck.reasons import LOGGING_CALL, SKIPPED_CALL
from dynacheck.variables.base import NotConstant, Tracer, VariableTracker
from dynacheck.variables.loggers import is_ignored
from dynacheck.variables.randoms import RandomVariable, call_generator
from dynacheck.variables.results import python_value

Arg = VariableTracker

_LEVELS: Final = ("debug", "info", "warning", "error", "exception", "critical", "log")


def _logs(function: Callable[..., Any], name: str) -> None:
    @handles(function, lazy=True)
    def call(tx: Tracer, *args: Arg, **kwargs: Arg) -> VariableTracker:
        if is_ignored(function):
            return tx.constant(None)
        return tx.break_(LOGGING_CALL, call=f"{name}()")


for _level in (*_LEVELS, "warn"):
    for _owner, _prefix in (
        (logging.Logger, "Logger"),
        (logging, "logging"),
        (logging.LoggerAdapter, "LoggerAdapter"),
    ):
        if hasattr(_owner, _level):
            _logs(getattr(_owner, _level), f"{_prefix}.{_level}")


def _reads_the_world(function: Callable[..., Any], name: str) -> None:
    @handles(function, lazy=True)
    def call(tx: Tracer, *args: Arg, **kwargs: Arg) -> VariableTracker:
        return tx.break_(SKIPPED_CALL, call=f"{name}()", why="what it returns is different in every call")


for _name in (
    "time",
    "time_ns",
    "perf_counter",
    "perf_counter_ns",
    "monotonic",
    "monotonic_ns",
    "process_time",
    "sleep",
):
    _reads_the_world(getattr(time, _name), f"time.{_name}")


def _of_a_generator(method: Callable[..., Any], name: str) -> None:
    @handles(method, lazy=True)
    def call(tx: Tracer, *args: Arg, **kwargs: Arg) -> VariableTracker | None:
        owner = args[0].realize(tx) if args else None
        return (
            call_generator(tx, owner, name, args[1:], kwargs) if isinstance(owner, RandomVariable) else None
        )


@handles(random.Random)
def make_generator(tx: Tracer, seed: Arg | None = None) -> VariableTracker | None:
    try:
        known = None if seed is None else python_value(tx, seed)
    except NotConstant:
        return None
    return None if known is None else RandomVariable(random.Random(known))


for _name in random.__all__:
    _found: Any = getattr(random.Random, _name, None)
    if callable(_found):
        _of_a_generator(_found, _name)
        if not hasattr(getattr(random, _name), "__func__"):  # a C method bound to the hidden instance
            _reads_the_world(getattr(random, _name), f"random.{_name}")
