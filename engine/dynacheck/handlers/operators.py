"""The operator module."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable
from typing import Any, Final

from dynacheck.handlers.registry import handles, replaces
from dynacheck.reasons import UNKNOWN_CALL
from dynacheck.variables import abstract
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.callables import GetterVariable
from dynacheck.variables.coerce import integer
from dynacheck.variables.symbolic import SymNumberVariable
from dynacheck.versions import torch_since

Arg = VariableTracker

_BINARY: Final[dict[Callable[..., Any], str]] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
    operator.matmul: "@",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
}
_INPLACE: Final[dict[Callable[..., Any], str]] = {
    operator.iadd: "+",
    operator.isub: "-",
    operator.imul: "*",
    operator.itruediv: "/",
    operator.ifloordiv: "//",
    operator.imod: "%",
    operator.ipow: "**",
    operator.imatmul: "@",
    operator.ilshift: "<<",
    operator.irshift: ">>",
    operator.iand: "&",
    operator.ior: "|",
    operator.ixor: "^",
}
_COMPARE: Final[dict[Callable[..., Any], str]] = {
    operator.lt: "<",
    operator.le: "<=",
    operator.eq: "==",
    operator.ne: "!=",
    operator.gt: ">",
    operator.ge: ">=",
}
_UNARY: Final[dict[Callable[..., Any], str]] = {
    operator.neg: "-",
    operator.pos: "+",
    operator.invert: "~",
    operator.abs: "abs",
}


def _binary_form(function: Callable[..., Any], op: str, rule: Callable[..., VariableTracker]) -> None:
    @handles(function)
    def call(tx: Tracer, a: Arg, b: Arg, /) -> VariableTracker:
        return rule(tx, op, a, b)


def _unary_form(function: Callable[..., Any], op: str) -> None:
    @handles(function)
    def call(tx: Tracer, a: Arg, /) -> VariableTracker:
        return abstract.unary(tx, op, a)


for _table, _rule in (
    (_BINARY, abstract.binary),
    (_INPLACE, abstract.inplace),
    (_COMPARE, abstract.richcompare),
):
    for _function, _op in _table.items():
        _binary_form(_function, _op, _rule)
for _function, _op in _UNARY.items():
    _unary_form(_function, _op)


@handles(operator.index)
def index(tx: Tracer, a: Arg, /) -> VariableTracker:
    found = abstract.unary(tx, "index", a)
    unbacked = isinstance(found, SymNumberVariable) and found.is_unbacked()
    return found if unbacked else tx.constant(integer(tx, found))


@handles(operator.not_)
def negated(tx: Tracer, a: Arg, /) -> VariableTracker:
    return abstract.not_(tx, a)


@handles(operator.truth)
def truth(tx: Tracer, a: Arg, /) -> VariableTracker:
    return tx.constant(abstract.is_true(tx, a))


@handles(operator.is_)
def is_same(tx: Tracer, a: Arg, b: Arg, /) -> VariableTracker:
    return tx.constant(abstract.is_(tx, a, b))


@handles(operator.is_not)
def is_other(tx: Tracer, a: Arg, b: Arg, /) -> VariableTracker:
    return tx.constant(not abstract.is_(tx, a, b))


@handles(operator.concat)
def concatenated(tx: Tracer, a: Arg, b: Arg, /) -> VariableTracker:
    return abstract.binary(tx, "+", a, b)


@handles(operator.iconcat)
def concatenated_in_place(tx: Tracer, a: Arg, b: Arg, /) -> VariableTracker:
    return abstract.inplace(tx, "+", a, b)


@handles(operator.contains)
def contains(tx: Tracer, a: Arg, b: Arg, /) -> VariableTracker:
    return abstract.contains(tx, a, b)


@handles(operator.getitem)
def getitem(tx: Tracer, a: Arg, b: Arg, /) -> VariableTracker:
    return abstract.getitem(tx, a, b)


@handles(operator.setitem)
def setitem(tx: Tracer, a: Arg, b: Arg, c: Arg, /) -> VariableTracker:
    if not torch_since(2, 14):
        tx.break_(UNKNOWN_CALL, what="operator.setitem()")
    abstract.setitem(tx, a, b, c)
    return tx.constant(None)


@handles(operator.delitem)
def delitem(tx: Tracer, a: Arg, b: Arg, /) -> VariableTracker:
    if not torch_since(2, 14):
        tx.break_(UNKNOWN_CALL, what="operator.delitem()")
    abstract.delitem(tx, a, b)
    return tx.constant(None)


@handles(operator.countOf)
def count(tx: Tracer, a: Arg, b: Arg, /) -> VariableTracker:
    return tx.constant(sum(abstract.equal(tx, item, b) for item in abstract.iterate(tx, a)))


@replaces(operator.length_hint)
def length_hint(obj: Any, default: int = 0, /) -> int:
    if not isinstance(default, int):
        raise TypeError(f"'{type(default).__name__}' object cannot be interpreted as an integer")
    with contextlib.suppress(TypeError):
        return len(obj)
    hint = getattr(type(obj), "__length_hint__", None)
    found = NotImplemented
    with contextlib.suppress(TypeError):
        found = NotImplemented if hint is None else hint(obj)
    if found is NotImplemented:
        return default
    if not isinstance(found, int):
        raise TypeError(f"__length_hint__ must be an integer, not {type(found).__name__}")
    if found < 0:
        raise ValueError("__length_hint__() should return >= 0")
    return found


@handles(operator.itemgetter)
def itemgetter(tx: Tracer, item: Arg, /, *items: Arg) -> VariableTracker:
    return GetterVariable(operator.itemgetter, [item, *items])


@handles(operator.attrgetter)
def attrgetter(tx: Tracer, attr: Arg, /, *attrs: Arg) -> VariableTracker:
    for name in (attr, *attrs):
        if not issubclass(name.get_type(), str):
            tx.raise_(TypeError, "attribute name must be a string")
    return GetterVariable(operator.attrgetter, [attr, *attrs])


@handles(operator.methodcaller)
def methodcaller(tx: Tracer, name: Arg, /, *args: Arg, **kwargs: Arg) -> VariableTracker:
    if not issubclass(name.get_type(), str):
        tx.raise_(TypeError, "method name must be a string")
    return GetterVariable(operator.methodcaller, [name, *args], kwargs)
