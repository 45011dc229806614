"""Functions without side effects that are run for real when all their arguments are constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dynacheck.handlers.registry import handles
from dynacheck.reasons import UNKNOWN_OPERATION
from dynacheck.variables.base import NotConstant, Tracer, VariableTracker
from dynacheck.variables.results import fold, python_value


def fold_call(
    tx: Tracer, fn: Callable[..., Any], args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker | None:
    """Call a pure function for real, if all arguments are constants; else None.

    What it raises is raised in the traced program, wrong arguments included.
    """
    try:
        values = [python_value(tx, a) for a in args]
        named = {k: python_value(tx, v) for k, v in kwargs.items()}
    except NotConstant:
        return None
    return fold(tx, fn, *values, **named)


def folds(*functions: Callable[..., Any]) -> None:
    """Register pure functions that are run for real on constants, and break on anything else."""
    for function in functions:
        handles(function)(_folding(function))


def _folding(function: Callable[..., Any]) -> Callable[..., VariableTracker]:
    name = f"{function.__module__}.{function.__qualname__}"

    def handler(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
        found = fold_call(tx, function, args, kwargs)
        if found is not None:
            return found
        unknown = next((a for a in (*args, *kwargs.values()) if not a.is_constant()), None)
        what = "its arguments" if unknown is None else unknown.describe()
        return tx.break_(UNKNOWN_OPERATION, operation=f"{name}()", what=what)

    return handler
