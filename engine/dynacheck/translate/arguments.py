"""Binding a call's arguments to a function's parameters, with CPython's rules (`Python/ceval.c`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from dynacheck.reasons import UNKNOWN_CALL
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.functions import VARARGS, VARKEYWORDS, UserFunctionVariable
from dynacheck.variables.mappings import DictVariable
from dynacheck.variables.sequences import TupleVariable


def bind_arguments(
    tx: Tracer, fn: UserFunctionVariable, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
) -> dict[str, VariableTracker]:
    """The initial locals of a call.

    Args:
        tx: the translator; arguments that the function doesn't take are a break, as with torch.
        fn: the function.
        args: positional arguments.
        kwargs: keyword arguments, in order.

    Returns:
        Values by parameter name.
    """
    code = fn.code
    names = code.co_varnames
    npos, nkw = code.co_argcount, code.co_kwonlyargcount
    bound: dict[str, VariableTracker] = dict(zip(names[:npos], args))
    extra = args[npos:]
    rest: dict[str, VariableTracker] = {}
    if kwargs:
        _bind_keywords(tx, fn, bound, kwargs, rest)
    slot = npos + nkw
    if code.co_flags & VARARGS:
        bound[names[slot]] = TupleVariable(list(extra))
        slot += 1
    elif extra:
        _refuse(tx, fn)
    if len(bound) < npos + nkw + bool(code.co_flags & VARARGS):
        _fill_defaults(tx, fn, bound)
    if code.co_flags & VARKEYWORDS:
        bound[names[slot]] = DictVariable.of(tx, [(tx.constant(k), v) for k, v in rest.items()])
    return bound


def _bind_keywords(
    tx: Tracer,
    fn: UserFunctionVariable,
    bound: dict[str, VariableTracker],
    kwargs: dict[str, VariableTracker],
    rest: dict[str, VariableTracker],
) -> None:
    code = fn.code
    names = code.co_varnames
    total = code.co_argcount + code.co_kwonlyargcount
    by_name = names[code.co_posonlyargcount : total]
    for name, value in kwargs.items():
        if name in by_name:
            if name in bound:
                _refuse(tx, fn)
            bound[name] = value
        elif code.co_flags & VARKEYWORDS:
            rest[name] = value
        else:
            _refuse(tx, fn)


def _refuse(tx: Tracer, fn: UserFunctionVariable) -> NoReturn:
    tx.break_(UNKNOWN_CALL, what=f"{fn.describe()} with arguments that it doesn't take")


def _fill_defaults(tx: Tracer, fn: UserFunctionVariable, bound: dict[str, Any]) -> None:
    code = fn.code
    npos = code.co_argcount
    names = code.co_varnames
    defaults = fn.positional_defaults(tx)
    first_default = npos - len(defaults)
    if any(name not in bound for name in names[: max(first_default, 0)]):
        _refuse(tx, fn)
    for i in range(max(first_default, 0), npos):
        bound.setdefault(names[i], defaults[i - first_default])
    keyword_only = names[npos : npos + code.co_kwonlyargcount]
    if keyword_only:
        given = fn.keyword_defaults(tx)
        for name in keyword_only:
            if name not in bound:
                bound[name] = given[name] if name in given else _refuse(tx, fn)
