"""copy.copy and copy.deepcopy of plain structures."""

from __future__ import annotations

import copy
import copyreg
from collections.abc import Callable
from types import FunctionType
from typing import NoReturn

from dynacheck.handlers.registry import handles
from dynacheck.reasons import SKIPPED_CALL, UNKNOWN_CALL
from dynacheck.sources import HEAP_TYPE, type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.defaultdicts import DefaultDictVariable
from dynacheck.variables.deques import DequeVariable
from dynacheck.variables.finalizers import note_instance
from dynacheck.variables.functions import BoundMethodVariable, CallableVariable, ObjectMethodVariable
from dynacheck.variables.mappings import DictVariable, OrderedDictVariable
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.sequences import ListVariable, NamedTupleVariable, SequenceVariable, TupleVariable
from dynacheck.variables.sets import AbstractSetVariable, FrozenSetVariable
from dynacheck.variables.slices import RangeVariable, SliceVariable
from dynacheck.variables.symbolic import SymNumberVariable

_ATOMS = (CallableVariable, RangeVariable, SymNumberVariable)


@handles(copy.copy)
def shallow(tx: Tracer, x: VariableTracker) -> VariableTracker:
    if isinstance(x, (NamedTupleVariable, OrderedDictVariable)):
        _give_up(tx, "copy.copy", x)
    if x.is_constant() or isinstance(x, (*_ATOMS, SliceVariable, TupleVariable, FrozenSetVariable)):
        return x
    if isinstance(x, (ListVariable, DequeVariable, DictVariable, AbstractSetVariable)):
        tx.break_(SKIPPED_CALL, call=f"copy.copy() of {x.describe()}", why="C code of copy")  # as torch
    method = _method(tx, x, "__copy__")
    if method is not None:
        return tx.call(method, [])
    made = _reduced(tx, x, lambda value: value) or _twin(tx, x, lambda value: value)
    return _refuse(tx, "copy.copy", x) if made is None else made


@handles(copy.deepcopy)
def deep(tx: Tracer, x: VariableTracker, memo: VariableTracker | None = None) -> VariableTracker:
    if isinstance(memo, MemoVariable):
        return _deep(tx, x, memo.copies)
    if memo is not None and not (memo.is_constant() and memo.as_constant(tx) is None):
        return _refuse(tx, "copy.deepcopy", x)  # the program may look at what is written there
    return _deep(tx, x, {})


class MemoVariable(DictVariable):
    """The memo that a `__deepcopy__` is given, to be handed on.

    Args:
        copies: the copies made so far, by what they are of.
    """

    __slots__ = ("copies",)

    def __init__(self, copies: dict[VariableTracker, VariableTracker]) -> None:
        super().__init__({})
        self.copies = copies


def _deep(tx: Tracer, x: VariableTracker, memo: dict[VariableTracker, VariableTracker]) -> VariableTracker:
    x = x.realize(tx)
    if x in memo:
        return memo[x]
    if isinstance(x, (NamedTupleVariable, DefaultDictVariable)):
        _give_up(tx, "copy.deepcopy", x)
    if isinstance(x, (SliceVariable, DequeVariable)):
        return _refuse(tx, "copy.deepcopy", x)
    if isinstance(x, BoundMethodVariable):
        return BoundMethodVariable(x.function, _deep(tx, x.owner, memo))
    if x.is_constant() or isinstance(x, _ATOMS):
        return x
    if isinstance(x, ListVariable):
        made = x.like([])
        memo[x] = made
        assert isinstance(made, SequenceVariable)
        made.items(tx).extend(_deep(tx, i, memo) for i in x.items(tx))
        return made
    if isinstance(x, TupleVariable):
        return _deep_tuple(tx, x, memo)
    if isinstance(x, DictVariable):
        copied = x.same_kind(tx, {})
        memo[x] = copied
        for key, value in list(x.content(tx).values()):
            copied.store(tx, _deep(tx, key, memo), _deep(tx, value, memo))
        return copied
    if isinstance(x, AbstractSetVariable):
        elements: VariableTracker = type(x).of(tx, [_deep(tx, e, memo) for e in x.items(tx)])
        return elements
    method = _method(tx, x, "__deepcopy__")
    if method is not None and isinstance(x, UserObjectVariable):
        return tx.call(method, [MemoVariable(memo)])
    reduced = _reduced(tx, x, lambda value: _deep(tx, value, memo))
    if reduced is not None:
        memo[x] = reduced
        return reduced
    twin = _twin(tx, x, lambda value: _deep(tx, value, memo), memo)
    return _refuse(tx, "copy.deepcopy", x) if twin is None else twin


_PROTOCOL = (
    "__reduce__",
    "__reduce_ex__",
    "__getstate__",
    "__setstate__",
    "__getnewargs__",
    "__getnewargs_ex__",
    "__new__",
)


def _reduced(
    tx: Tracer, x: VariableTracker, copy_of: Callable[[VariableTracker], VariableTracker]
) -> VariableTracker | None:
    """What the function and arguments that a `__reduce__` written in Python gives make; None for other objects."""
    kind = x.get_type()
    if not isinstance(type_lookup(kind, "__reduce__"), FunctionType):
        return None
    if type_lookup(kind, "__reduce_ex__") is not object.__reduce_ex__:
        return None
    parts = tx.call(x.tp_getattro(tx, "__reduce__"), []).realize(tx)
    if not isinstance(parts, TupleVariable) or len(parts.items(tx)) != 2:
        return None
    function, args = parts.items(tx)
    return tx.call(function, [copy_of(a) for a in abstract.iterate(tx, args)])


def _twin(
    tx: Tracer,
    x: VariableTracker,
    copy_of: Callable[[VariableTracker], VariableTracker],
    memo: dict[VariableTracker, VariableTracker] | None = None,
) -> VariableTracker | None:
    """Another object of the same class whose attributes are copies; None where the class has a protocol of its own."""
    if type(x) is not UserObjectVariable or x.base is not None or not x.cls.__flags__ & HEAP_TYPE:
        return None
    if any(type_lookup(x.cls, name) is not type_lookup(object, name) for name in _PROTOCOL):
        return None
    if any("__slots__" in c.__dict__ for c in x.cls.__mro__) or x.cls in copyreg.dispatch_table:
        return None
    attributes = tx.instance_dict(x).realize(tx)
    if not isinstance(attributes, DictVariable) or not _answers_as_object(tx, x, attributes):
        return None
    twin = UserObjectVariable(x.cls)
    note_instance(tx, twin)
    if memo is not None:
        memo[x] = twin
    for name, value in list(attributes.content(tx).values()):
        twin.attrs[name.as_constant(tx)] = copy_of(value)
    return twin


def _answers_as_object(tx: Tracer, x: UserObjectVariable, attributes: DictVariable) -> bool:
    """Whether a `__getattribute__` of the program's, asked for what copying needs, gives what object's gives."""
    if type_lookup(x.cls, "__getattribute__") is type_lookup(object, "__getattribute__"):
        return True
    reduce = abstract.getattr_default(tx, x, "__reduce_ex__", tx.constant(None)).realize(tx)
    if not isinstance(reduce, ObjectMethodVariable) or (reduce.owner, reduce.name) != (x, "__reduce_ex__"):
        return False
    return x.tp_getattro(tx, "__dict__").realize(tx) is attributes


def _deep_tuple(
    tx: Tracer, x: TupleVariable, memo: dict[VariableTracker, VariableTracker]
) -> VariableTracker:
    items = [i.realize(tx) for i in x.items(tx)]
    copies = [_deep(tx, i, memo) for i in items]
    if all(a is b for a, b in zip(items, copies)):
        return x
    return x.like(copies)


def _method(tx: Tracer, x: VariableTracker, name: str) -> VariableTracker | None:
    if not hasattr(x.get_type(), name):
        return None
    return x.tp_getattro(tx, name)


def _give_up(tx: Tracer, function: str, x: VariableTracker) -> NoReturn:
    """Copying by `__reduce_ex__` of C code: torch raises there, so that the frame is left alone."""
    tx.give_up(UNKNOWN_CALL, what=f"{function}() of {x.describe()}")


def _refuse(tx: Tracer, function: str, x: VariableTracker) -> VariableTracker:
    return tx.break_(UNKNOWN_CALL, what=f"{function}() of {x.describe()}")
