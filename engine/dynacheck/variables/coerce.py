"""What builtin containers ask of the trackers they are given: integers, text, the data of a subclass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynacheck.variables import abstract
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.methods import BuiltinObject
from dynacheck.variables.walk import reachable


def data(tx: Tracer, value: VariableTracker) -> VariableTracker:
    """The builtin container that a value is or, for an object of a subclass, holds."""
    value = value.realize(tx)
    base = getattr(value, "base", None)
    return base if isinstance(base, BuiltinObject) else value


def is_integer(tx: Tracer, value: VariableTracker) -> bool:
    """Whether a value can be an index (has `__index__`)."""
    return abstract.has(tx, value, "__index__")


def integer(tx: Tracer, value: VariableTracker) -> int:
    """`operator.index(value)` as a Python int; a symbolic one is specialised.

    Raises a TypeError in the program when the value is no integer.
    """
    found = abstract.unary(tx, "index", value).realize(tx)
    symbol = getattr(found, "sym", None)
    if symbol is not None:
        return int(tx.specialize(symbol))
    return int(abstract.constant_of(tx, found, "an index"))


def text(tx: Tracer, value: VariableTracker) -> str:
    """`repr(value)` as a Python string."""
    shown: str = abstract.constant_of(tx, abstract.repr_(tx, value), "repr()")
    return shown


def natively(tx: Tracer, fn: Callable[..., Any], *args: Any) -> Any:
    """Run an operation on a Python container of trackers; its errors are raised in the traced program."""
    try:
        return fn(*args)
    except (IndexError, ValueError, TypeError, KeyError, RuntimeError, OverflowError, MemoryError) as error:
        tx.raise_(type(error), *error.args)


def holds_itself(value: VariableTracker) -> bool:
    """Whether a container is reachable from its own items."""
    return any(one is value for one in reachable(value.children()))
