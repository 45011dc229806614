"""What the frame stored in classes: lookups on the class, its subclasses and their instances find it before it is
written back."""

from __future__ import annotations

from typing import Final

from dynacheck.reasons import UNKNOWN_ATTRIBUTE
from dynacheck.sources import ABSENT, type_lookup
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.functions import BoundMethodVariable, UserFunctionVariable

_KEY: Final = "class writes"


def record(tx: Tracer, cls: type, attrs: dict[str, VariableTracker | None]) -> None:
    """Have lookups see what was stored in a class (None: deleted).

    Args:
        tx: the tracer.
        cls: the class.
        attrs: what the frame stored, as it grows.
    """
    tx.state.setdefault(_KEY, {})[cls] = attrs


def written(tx: Tracer, cls: type) -> bool:
    """Whether the frame stored something in a class."""
    return cls in tx.state.get(_KEY, {})


def stored_in(tx: Tracer, cls: type, name: str) -> VariableTracker | None:
    """What the frame stored under a name in one class, or None.

    A deleted name, and one that was a descriptor's before, break.
    """
    written: dict[str, VariableTracker | None] = tx.state.get(_KEY, {}).get(cls, {})
    if name not in written:
        return None
    value = written[name]
    raw = cls.__dict__.get(name, ABSENT)
    if value is None or (raw is not ABSENT and type_lookup(type(raw), "__set__") is not ABSENT):
        tx.break_(UNKNOWN_ATTRIBUTE, name=name, what=cls.__qualname__)
    return value


def stored(tx: Tracer, cls: type, name: str) -> VariableTracker | None:
    """What the frame stored under a name, where a lookup on the class ends at that; None where it ends elsewhere."""
    if _KEY not in tx.state:
        return None
    for owner in cls.__mro__:
        value = stored_in(tx, owner, name)
        if value is not None or name in owner.__dict__:
            return value
    return None


def bound(tx: Tracer, value: VariableTracker, owner: VariableTracker | None, name: str) -> VariableTracker:
    """What a stored class attribute gives through an instance, or through the class (None)."""
    real = value.realize(tx)
    if isinstance(real, UserFunctionVariable):
        return real if owner is None else BoundMethodVariable(real, owner)
    if type_lookup(real.get_type(), "__get__") is not ABSENT:
        tx.break_(UNKNOWN_ATTRIBUTE, name=name, what=real.describe())
    return value
