"""copy.copy and copy.deepcopy of plain structures."""

from __future__ import annotations

import copy

from dynacheck.handlers.registry import handles
from dynacheck.reasons import UNKNOWN_CALL
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.deques import DequeVariable
from dynacheck.variables.functions import CallableVariable
from dynacheck.variables.mappings import DictVariable
from dynacheck.variables.sequences import ListVariable, NamedTupleVariable, SequenceVariable, TupleVariable
from dynacheck.variables.sets import AbstractSetVariable, FrozenSetVariable
from dynacheck.variables.slices import RangeVariable, SliceVariable
from dynacheck.variables.symbolic import SymNumberVariable

_ATOMS = (CallableVariable, RangeVariable, SliceVariable, SymNumberVariable)
_COPIED = (ListVariable, DequeVariable, DictVariable, AbstractSetVariable)


@handles(copy.copy)
def shallow(tx: Tracer, x: VariableTracker) -> VariableTracker:
    if x.is_constant() or isinstance(x, (*_ATOMS, TupleVariable, FrozenSetVariable)):
        return x
    if isinstance(x, _COPIED):
        return x.call_method(tx, "copy", [], {})
    method = _method(tx, x, "__copy__")
    return tx.call(method, []) if method is not None else _refuse(tx, "copy.copy", x)


@handles(copy.deepcopy)
def deep(tx: Tracer, x: VariableTracker, memo: VariableTracker | None = None) -> VariableTracker:
    if memo is not None and not memo.is_constant() and not isinstance(memo, DictVariable):
        return _refuse(tx, "copy.deepcopy", x)
    return _deep(tx, x, {})


def _deep(tx: Tracer, x: VariableTracker, memo: dict[VariableTracker, VariableTracker]) -> VariableTracker:
    x = x.realize(tx)
    if x in memo:
        return memo[x]
    if x.is_constant() or isinstance(x, _ATOMS):
        return x
    if isinstance(x, (ListVariable, DequeVariable)):
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
    return _refuse(tx, "copy.deepcopy", x)


def _deep_tuple(
    tx: Tracer, x: TupleVariable, memo: dict[VariableTracker, VariableTracker]
) -> VariableTracker:
    items = [i.realize(tx) for i in x.items(tx)]
    copies = [_deep(tx, i, memo) for i in items]
    if all(a is b for a, b in zip(items, copies)):
        return x
    if isinstance(x, NamedTupleVariable):
        return NamedTupleVariable(x.cls, copies, x.class_variable)
    return x.like(copies)


def _method(tx: Tracer, x: VariableTracker, name: str) -> VariableTracker | None:
    if not hasattr(x.get_type(), name):
        return None
    return x.tp_getattro(tx, name)


def _refuse(tx: Tracer, function: str, x: VariableTracker) -> VariableTracker:
    return tx.break_(UNKNOWN_CALL, what=f"{function}() of {x.describe()}")
