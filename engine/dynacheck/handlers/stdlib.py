"""Small parts of the standard library that depend on their arguments alone."""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import enum
import inspect
import operator
import os
import platform
import re
import struct
import types
import typing
import weakref
from typing import Any, Final

from dynacheck.guards import Is
from dynacheck.handlers.folding import folds
from dynacheck.handlers.registry import handles, refuses, replaces
from dynacheck.sources import ABSENT, type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.contexts import ContextVariable
from dynacheck.variables.finalizers import note_reference
from dynacheck.variables.functions import BoundMethodVariable, TypeExpressionVariable, is_written_type
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.sequences import ListVariable, TupleVariable
from dynacheck.variables.weak_references import WeakReferenceVariable
from dynacheck.versions import torch_since

Arg = VariableTracker

folds(re.match, re.search, re.fullmatch, re.split, re.findall, re.escape, re.compile)
folds(struct.pack, struct.unpack, struct.calcsize)
folds(os.fspath)
folds(platform.system, platform.machine, platform.release, platform.version, platform.processor)


def _substitutes(name: str) -> None:
    @handles(getattr(re, name))
    def call(
        tx: Tracer, pattern: Arg, repl: Arg, string: Arg, count: Arg | None = None, flags: Arg | None = None
    ) -> VariableTracker:
        compiled = tx.call(tx.object(re.compile), [pattern, *([] if flags is None else [flags])])
        method = abstract.getattr_(tx, compiled, name)
        return tx.call(method, [repl, string, *([] if count is None else [count])])


for _name in ("sub", "subn"):
    _substitutes(_name)


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
    if type.__dict__["__weakrefoffset__"].__get__(target.get_type()) == 0:
        tx.raise_(TypeError, f"cannot create weak reference to '{abstract.name_of(target)}' object")
    asked = None if callback is None or abstract.is_none(tx, callback) else callback.realize(tx)
    reference = WeakReferenceVariable(target, None, asked)
    note_reference(tx, reference)
    return reference


refuses("what is called at the end of an object is kept for the interpreter's end", weakref.finalize)
refuses("it changes state around the block", contextlib.closing, contextlib.AsyncExitStack)
refuses("it counts what is made", enum.auto)
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
_OF_TYPING: Final = {k for k in vars(typing).values() if isinstance(k, type) and is_written_type(k)}


def _written(tx: Tracer, item: VariableTracker) -> Any:
    """The object that part of a type is, or ABSENT."""
    item = item.realize(tx)
    if not isinstance(item, (TupleVariable, ListVariable)):
        return abstract.python_object(item)
    parts = [_written(tx, part) for part in item.items(tx)]
    return ABSENT if any(part is ABSENT for part in parts) else item.get_type()(parts)


def _subscripted(tx: Tracer, of: Any, owner: Arg, item: Arg) -> VariableTracker | None:
    part = _written(tx, item)
    return None if part is ABSENT else TypeExpressionVariable(of[part], operator.getitem, (owner, item))


@handles(*{vars(kind)["__getitem__"] for kind in _OF_TYPING if "__getitem__" in vars(kind)})
def subscript_of_typing(tx: Tracer, owner: VariableTracker, item: VariableTracker) -> VariableTracker | None:
    """`Optional[int]`, `Callable[[int], int]`: typing's own code makes it."""
    if owner.node is None or type(kind := owner.node.peek()) not in _OF_TYPING:
        return None
    tx.guard(owner.node, Is(kind))
    return _subscripted(tx, kind, owner, item)


def _alias(cls: Any) -> None:
    @handles(cls.__class_getitem__)
    def subscript(tx: Tracer, item: VariableTracker, /) -> VariableTracker | None:
        return _subscripted(tx, cls, tx.object(cls), item)


for _cls in _SUBSCRIPTABLE:
    _alias(_cls)
