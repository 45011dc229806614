"""Loggers: what their methods do happens outside of the program."""

from __future__ import annotations

from typing import Any

from dynacheck import interop
from dynacheck.reasons import LOGGING_CALL
from dynacheck.sources import Node
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.functions import BoundMethodVariable
from dynacheck.variables.objects import UserObjectVariable


def is_ignored(function: Any) -> bool:
    """Whether the user told torch to drop calls of a logging function while compiling."""
    return any(
        function in interop.torch_config(name, ())
        for name in ("ignore_logging_functions", "ignore_logger_methods")
    )


class LoggerVariable(UserObjectVariable):
    """A `logging.Logger`: whatever method of it is called, its own or one that a library adds, breaks."""

    __slots__ = ()

    def bind(self, tx: Tracer, name: str, raw: object, node: Node) -> VariableTracker:
        bound = super().bind(tx, name, raw, node)
        if isinstance(bound, BoundMethodVariable):
            return LoggerMethodVariable(bound.function, self)
        return bound


class LoggerMethodVariable(BoundMethodVariable):
    """A method bound to a logger."""

    __slots__ = ()

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        function: Any = getattr(self.function.realize(tx), "value", None)
        assert isinstance(self.owner, LoggerVariable)
        if is_ignored(function) or is_ignored(function.__get__(self.owner.value)):
            return tx.constant(None)
        return tx.break_(LOGGING_CALL, call=f"Logger.{function.__name__}()")
