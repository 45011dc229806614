"""Small parts of the standard library that depend on their arguments alone."""

from __future__ import annotations

import collections
import collections.abc
import inspect
import operator
import os
import re
import struct
import types
import weakref
from typing import Any, Final

from dynacheck.handlers.folding import folds
from dynacheck.handlers.registry import handles, replaces
from dynacheck.sources import ABSENT
from dynacheck.variables import abstract
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.frozen import WeakReferenceVariable
from dynacheck.variables.functions import TypeExpressionVariable
from dynacheck.variables.sequences import TupleVariable

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
    return WeakReferenceVariable(target)


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
