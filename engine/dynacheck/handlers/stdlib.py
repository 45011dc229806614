"""Small parts of the standard library that depend on their arguments alone."""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import inspect
import operator
import os
import re
import struct
import types
import weakref
from typing import Any, Final

from dynacheck.handlers.folding import folds
from dynacheck.handlers.registry import handles, refuses, replaces
from dynacheck.sources import ABSENT, type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.contexts import ContextVariable
from dynacheck.variables.finalizers import note_reference
from dynacheck.variables.frozen import WeakReferenceVariable
from dynacheck.variables.functions import BoundMethodVariable, TypeExpressionVariable
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.sequences import TupleVariable
from dynacheck.versions import torch_since

folds(re.match, re.search, re.fullmatch, re.sub, re.subn, re.split, re.findall, re.escape, re.compile)
folds(struct.pack, struct.unpack, struct.calcsize)
folds(os.fspath)


# -- inspect


@replaces(inspect.isfunction)
def is_function(object: Any) -> bool:
    return isinstance(object, types.FunctionType)


@replaces(inspect.isclass)
def is_class(object: Any) -> bool:
    return isinstance(object, type)


@replaces(inspect.ismethod)
def is_method(object: Any) -> bool:
    return isinstance(object, types.MethodType)


@replaces(inspect.ismodule)
def is_module(object: Any) -> bool:
    return isinstance(object, types.ModuleType)


@replaces(inspect.isbuiltin)
def is_builtin(object: Any) -> bool:
    return isinstance(object, types.BuiltinFunctionType)


@handles(types.MethodType)
def method(tx: Tracer, function: VariableTracker, instance: VariableTracker, /) -> VariableTracker | None:
    """The bound `__exit__` that an ExitStack makes of a manager; torch makes no other."""
    owner = instance.realize(tx)
    existing = owner.node is not None and not torch_since(2, 14)
    if existing or isinstance(owner, ContextVariable) or not isinstance(owner, UserObjectVariable):
        return None
    raw = type_lookup(owner.get_type(), "__exit__")
    if raw is ABSENT or abstract.python_object(function.realize(tx)) is not raw:
        return None
    return BoundMethodVariable(function, owner)


@replaces(inspect.isgenerator)
def is_generator(object: Any) -> bool:
    return isinstance(object, types.GeneratorType)


# -- weakref


@handles(weakref.ref)
def weak_reference(
    tx: Tracer, target: VariableTracker, callback: VariableTracker | None = None, /
) -> VariableTracker | None:
    if callback is not None and not abstract.is_none(tx, callback):
        return None
    if type.__dict__["__weakrefoffset__"].__get__(target.get_type()) == 0:
        tx.raise_(TypeError, f"cannot create weak reference to '{abstract.name_of(target)}' object")
    reference = WeakReferenceVariable(target)
    note_reference(tx, reference)
    return reference


refuses("it changes state around the block", contextlib.closing, contextlib.AsyncExitStack)
refuses("it changes where output goes", contextlib.redirect_stdout, contextlib.redirect_stderr)


# -- `list[int]`

_SUBSCRIPTABLE: Final[tuple[type, ...]] = (
    list,
    tuple,
    dict,
    set,
    frozenset,
    collections.deque,
    collections.defaultdict,
    collections.OrderedDict,
)


def _alias(cls: Any) -> None:
    @handles(cls.__class_getitem__)
    def subscript(tx: Tracer, item: VariableTracker, /) -> VariableTracker | None:
        items = item.items(tx) if isinstance(item, TupleVariable) else [item]
        values = [abstract.python_object(i.realize(tx)) for i in items]
        if any(v is ABSENT for v in values):
            return None
        alias = types.GenericAlias(cls, tuple(values))
        return TypeExpressionVariable(alias, operator.getitem, (tx.object(cls), item))


for _cls in _SUBSCRIPTABLE:
    _alias(_cls)
