"""Operators that a class of the program's inherits from the builtin type it derives from."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, Final

from dynacheck.guards import TypeIs
from dynacheck.sources import ABSENT, HEAP_TYPE, Node, TypeAttr, type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.base import NOT_IMPLEMENTED, Rebuilder, Tracer, VariableTracker

OF_THE_CLASS: Final[dict[Any, Callable[..., Any]]] = {}
"""C functions of operators whose result is of the operand's own class, and what they do, in Python."""


def new_object(cls: type, base: Any, *contents: Any) -> object:
    """An instance made by a base of its class: empty, or with what an immutable one holds (used by rewritten code)."""
    made: object = base.__new__(cls, *contents)
    return made


def emit_new(to: Rebuilder, value: Any) -> bool:
    """Push a new object of a class. Returns whether it has its contents already."""
    fixed = value.base is not None and (
        value.base.is_constant() or value.base.get_type() in (tuple, frozenset)
    )
    contents = [lambda: value.base.reconstruct(to)] if fixed else []
    base = value.base_type()
    to.call_helper(new_object, lambda: to.load_class(value.cls), lambda: to.load_const_type(base), *contents)
    return fixed


def binary(
    tx: Tracer, value: Any, op: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker | object:
    """An operator with an object whose class leaves it to the builtin type."""
    base: Any = value.base
    if base is None:
        return NOT_IMPLEMENTED
    other = right if left is value else left
    kind = _OTHER.get(op)
    if kind is None or issubclass(other.get_type(), kind):
        in_python = OF_THE_CLASS.get(type_lookup(value.cls, _SLOTS.get(op, "")))
        if in_python is not None:
            return tx.call_python(in_python, left, right)
        if op == "|" and left is value and base.get_type() is dict:
            merged: Any = tx.call(tx.object(dict.copy), [value]).realize(tx)
            merged.m_update(tx, right)
            done: VariableTracker = merged
            return done
    found: VariableTracker | object = base.nb_binary(
        tx, op, base if left is value else left, base if right is value else right
    )
    return found


def inplace(tx: Tracer, value: Any, op: str, right: VariableTracker) -> VariableTracker | object:
    """An operator in place: the object stays, what it holds changes."""
    if value.base is None:
        return NOT_IMPLEMENTED
    in_python = OF_THE_CLASS.get(type_lookup(value.cls, "__ior__")) if op == "|" else None
    if in_python is not None:
        return tx.call_python(in_python, value, right)
    done: VariableTracker | object = value.base.nb_inplace(tx, op, right)
    return value if done is value.base else done


def item(tx: Tracer, value: Any, name: str) -> VariableTracker | None:
    """An attribute of an object that is its own `__dict__`; None if it has none of that name."""
    key = tx.constant(name)
    if not abstract.is_true(tx, value.base.sq_contains(tx, key)):
        return None
    found: VariableTracker = value.base.mp_subscript(tx, key)
    return found


def set_item(tx: Tracer, value: Any, name: str, attribute: VariableTracker | None) -> None:
    """Store or delete one."""
    value.base.mp_ass_subscript(tx, tx.constant(name), attribute)


_OTHER: Final[dict[str, type]] = {"|": dict, "+": collections.deque}
_SLOTS: Final = {"|": "__or__", "+": "__add__", "*": "__mul__"}


def stays_behind(tx: Tracer, raw: object, node: Node) -> None:
    """Assume that a class attribute doesn't become a data descriptor, which would come before the object's own."""
    cls = type(raw)
    tx.guard(node, TypeIs(cls))
    asked = ("__get__",) if type_lookup(cls, "__get__") is ABSENT else ("__set__", "__delete__")
    for hook in asked if cls.__flags__ & HEAP_TYPE else ():
        tx.guard_absent(tx.class_node(cls).child(TypeAttr(hook)))
