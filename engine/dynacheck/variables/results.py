"""From trackers to Python values and back: running a real operation on constants while translating."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynacheck.variables.base import NotConstant, Tracer, VariableTracker


def python_value(tx: Tracer, value: VariableTracker) -> Any:
    """The Python value of a constant, or a fresh copy of a plain container of constants.

    For operations that only read their arguments.

    Raises:
        NotConstant: something in it is no constant.
    """
    value = value.realize(tx)
    snapshot = getattr(value, "snapshot", None)
    if snapshot is not None:
        return snapshot(tx)
    if not value.is_constant():
        raise NotConstant(value.describe())
    return value.as_constant(tx)


def result(tx: Tracer, value: Any) -> VariableTracker:
    """The tracker of what a real operation on constants returned."""
    if isinstance(value, type):
        return tx.object(value)
    return tx.constant(value)


def fold(tx: Tracer, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> VariableTracker:
    """Run an operation on constants for real; what it raises is raised in the traced program."""
    try:
        value = fn(*args, **kwargs)
    except Exception as error:
        tx.raise_(type(error), *error.args)
    return result(tx, value)
