"""`super` and the parts of `object` and `type` that need the frame."""

from __future__ import annotations

from collections import deque
from typing import Any

from dynacheck.handlers.builtins import kept
from dynacheck.handlers.registry import handles
from dynacheck.sources import ABSENT, Converted
from dynacheck.variables import abstract
from dynacheck.variables.base import VariableTracker
from dynacheck.variables.classes import ClassVariable, SuperVariable, claimed_class
from dynacheck.variables.functions import ObjectVariable
from dynacheck.variables.sequences import ListVariable


@handles(super)
def super_(
    tx: Any, cls: VariableTracker | None = None, instance: VariableTracker | None = None
) -> VariableTracker | None:
    """`super()` reads `__class__` and the first argument of the calling frame."""
    if cls is None:
        if not tx.code.co_argcount:
            tx.raise_(RuntimeError, "super(): no arguments")
        name = tx.code.co_varnames[0]
        owner = tx.locals.get(name)
        if owner is None and name in tx.cells:
            owner = tx.cell(name).get(tx)
        if owner is None:
            tx.raise_(RuntimeError, "super(): arg[0] deleted")
        if "__class__" not in tx.code.co_freevars:
            tx.raise_(RuntimeError, "super(): __class__ cell not found")
        found = tx.cell("__class__").get(tx)
        if found is None:
            tx.raise_(RuntimeError, "super(): empty __class__ cell")
        cls = found.realize(tx)
        instance = owner.realize(tx)
    if not isinstance(cls, ObjectVariable) or instance is None:
        return None
    start: type = cls.value
    found = SuperVariable(start, instance)
    if not issubclass(found.kind, start):
        if claimed_class(tx, instance) is not None:
            return None  # a stand-in for an object
        tx.raise_(TypeError, "super(type, obj): obj must be an instance or subtype of type")
    return found


@handles(object.__new__)
def object_new(
    tx: Any, cls: VariableTracker, *args: VariableTracker, **kwargs: VariableTracker
) -> VariableTracker | None:
    """`object.__new__(cls)`."""
    if not isinstance(cls, ClassVariable):
        return None
    if args or kwargs:
        tx.refuse_excess(cls.value, "__new__", "__init__")
    made: VariableTracker = tx.new_instance(cls)
    return made


def _new_of(base: type) -> None:
    @handles(base.__new__)
    def new(
        tx: Any, cls: VariableTracker, *args: VariableTracker, **kwargs: VariableTracker
    ) -> VariableTracker | None:
        """An empty container, whatever it is given: `__init__` looks at that."""
        kind = abstract.python_class(cls)
        if kind is None or not issubclass(kind, base):
            return None
        made: VariableTracker = tx.new_instance(cls) if isinstance(cls, ClassVariable) else tx.call(cls, [])
        return made


for _container in (dict, list, set, deque):
    _new_of(_container)


@handles(object.__repr__)
def object_repr(tx: Any, obj: VariableTracker) -> VariableTracker | None:
    """`object.__repr__(obj)`, which has the object's address: of one from before the frame."""
    found = kept(tx, obj)
    made: VariableTracker | None = None if found is ABSENT else tx.constant(object.__repr__(found))
    return made


@handles(object.__hash__)
def object_hash(tx: Any, obj: VariableTracker) -> VariableTracker | None:
    """`object.__hash__(obj)`."""
    found = kept(tx, obj)
    made: VariableTracker | None = None if found is ABSENT else tx.constant(object.__hash__(found))
    return made


@handles(object.__eq__)
def object_eq(tx: Any, obj: VariableTracker, other: VariableTracker) -> VariableTracker:
    """`object.__eq__(obj, other)`."""
    same: VariableTracker = tx.constant(True if abstract.is_(tx, obj, other) else NotImplemented)
    return same


def _subclasses(cls: type) -> tuple[type, ...]:
    return tuple(type.__subclasses__(cls))


@handles(type.__subclasses__)
def subclasses(tx: Any, cls: VariableTracker) -> VariableTracker | None:
    """`cls.__subclasses__()`: those that the class has now."""
    if not isinstance(cls, ClassVariable):
        return None
    found = tx.class_node(cls.value).child(Converted(_subclasses, "___subclasses"))
    return ListVariable(abstract.iterate(tx, tx.wrap(found)))
