"""From trackers to Python values and back: running a real operation on constants while translating."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dynacheck.variables.base import NotConstant, Tracer, VariableTracker


def python_value(tx: Tracer, value: VariableTracker) -> Any:
    """The Python value of a constant, or a fresh copy of a plain container of constants.

    For operations that only read their arguments. A symbolic number is specialised.

    Raises:
        NotConstant: something in it is no constant.
    """
    value = value.realize(tx)
    snapshot = getattr(value, "snapshot", None)
    if snapshot is not None:
        return snapshot(tx)
    symbol = getattr(value, "sym", None)
    if symbol is not None:
        return tx.specialize(symbol)
    known = scalar(value)
    if not known.is_constant():
        raise NotConstant(value.describe())
    return known.as_constant(tx)


def scalar(value: VariableTracker) -> VariableTracker:
    """What C code reads of a value: the constant that an object of a subclass of int, str or tuple holds, else itself."""
    base = getattr(value, "base", None)
    return base if isinstance(base, VariableTracker) and base.is_constant() else value


CONTAINERS: Final[dict[type, Callable[[Tracer, Any], VariableTracker]]] = {}
"""Makers of new containers by exact type, filled by `literals.py`."""


def result(tx: Tracer, value: Any) -> VariableTracker:
    """The tracker of what a real operation on constants returned: a constant, or a new container of such."""
    make = CONTAINERS.get(type(value))
    if make is not None:
        return make(tx, value)
    return tx.object(value) if isinstance(value, type) else tx.constant(value)


def fold(tx: Tracer, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> VariableTracker:
    """Run an operation on constants for real; what it raises is raised in the traced program."""
    try:
        value = fn(*args, **kwargs)
    except Exception as error:
        tx.raise_(type(error), *error.args)
    return result(tx, value)
