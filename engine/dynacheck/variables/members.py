"""What a class written in Python gives its instances, for instances that have trackers of their own."""

from __future__ import annotations

import enum
from types import FunctionType

from dynacheck.sources import DictAttr, TypeAttr
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.functions import BoundMethodVariable


def bind_member(
    tx: Tracer, owner: VariableTracker, cls: type, name: str, raw: object
) -> VariableTracker | None:
    """Bind a raw attribute of a class to an instance.

    Args:
        tx: the tracer.
        owner: the instance.
        cls: its class.
        name: the attribute.
        raw: what the class has under that name.

    Returns:
        A bound method, a property's value, a plain class attribute; None for descriptors of C code.
    """
    node = tx.class_node(cls).child(TypeAttr(name))
    if isinstance(raw, FunctionType):
        return BoundMethodVariable(tx.wrap(node), owner)
    if isinstance(raw, property):
        return tx.call(tx.property_getter(node, raw), [owner])
    if isinstance(raw, enum.property) and isinstance(raw.fget, FunctionType):
        return tx.call(tx.wrap(node.child(DictAttr("fget"))), [owner])
    if isinstance(raw, staticmethod):
        return tx.unwrap_method(node, raw)
    if isinstance(raw, classmethod):
        return BoundMethodVariable(tx.unwrap_method(node, raw), tx.class_of(owner))
    if not hasattr(type(raw), "__get__"):
        return tx.wrap(node)
    return None
