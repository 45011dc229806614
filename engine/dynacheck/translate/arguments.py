"""Binding a call's arguments to a function's parameters, with CPython's rules and messages (`Python/ceval.c`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.functions import VARARGS, VARKEYWORDS, UserFunctionVariable
from dynacheck.variables.mappings import DictVariable
from dynacheck.variables.sequences import TupleVariable


def bind_arguments(
    tx: Tracer, fn: UserFunctionVariable, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
) -> dict[str, VariableTracker]:
    """The initial locals of a call.

    Args:
        tx: the translator, in whose program a TypeError is raised.
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
        _too_many(tx, fn, len(args), bound)
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
    positional_only = names[: code.co_posonlyargcount]
    by_name = names[code.co_posonlyargcount : total]
    for name, value in kwargs.items():
        if name in by_name:
            if name in bound:
                tx.raise_(TypeError, f"{fn.qualname}() got multiple values for argument {name!r}")
            bound[name] = value
        elif code.co_flags & VARKEYWORDS:
            rest[name] = value
        elif name in positional_only:
            wrong = ", ".join(k for k in kwargs if k in positional_only)
            tx.raise_(
                TypeError,
                f"{fn.qualname}() got some positional-only arguments passed as keyword arguments: '{wrong}'",
            )
        else:
            tx.raise_(TypeError, f"{fn.qualname}() got an unexpected keyword argument {name!r}")


def _fill_defaults(tx: Tracer, fn: UserFunctionVariable, bound: dict[str, Any]) -> None:
    code = fn.code
    npos = code.co_argcount
    names = code.co_varnames
    defaults = fn.positional_defaults(tx)
    first_default = npos - len(defaults)
    missing = [n for i, n in enumerate(names[:npos]) if n not in bound and i < first_default]
    if missing:
        _missing(tx, fn, missing, "positional")
    for i in range(max(first_default, 0), npos):
        bound.setdefault(names[i], defaults[i - first_default])
    keyword_only = names[npos : npos + code.co_kwonlyargcount]
    if keyword_only:
        given = fn.keyword_defaults(tx)
        missing = [n for n in keyword_only if n not in bound and n not in given]
        if missing:
            _missing(tx, fn, missing, "keyword-only")
        for name in keyword_only:
            if name not in bound:
                bound[name] = given[name]


def _missing(tx: Tracer, fn: UserFunctionVariable, names: list[str], kind: str) -> None:
    quoted = [repr(n) for n in names]
    if len(quoted) == 1:
        text = quoted[0]
    elif len(quoted) == 2:
        text = f"{quoted[0]} and {quoted[1]}"
    else:
        text = f"{', '.join(quoted[:-1])}, and {quoted[-1]}"
    plural = "" if len(names) == 1 else "s"
    tx.raise_(TypeError, f"{fn.qualname}() missing {len(names)} required {kind} argument{plural}: {text}")


def _too_many(tx: Tracer, fn: UserFunctionVariable, given: int, bound: dict[str, Any]) -> None:
    code = fn.code
    npos = code.co_argcount
    ndefaults = len(fn.positional_defaults(tx))
    keyword_only = sum(1 for n in code.co_varnames[npos : npos + code.co_kwonlyargcount] if n in bound)
    if ndefaults:
        takes, plural = f"from {npos - ndefaults} to {npos}", True
    else:
        takes, plural = str(npos), npos != 1
    extra = ""
    if keyword_only:
        one, two = ("", "s")[given != 1], ("", "s")[keyword_only != 1]
        extra = f" positional argument{one} (and {keyword_only} keyword-only argument{two})"
    was = "was" if given == 1 and not keyword_only else "were"
    tx.raise_(
        TypeError,
        f"{fn.qualname}() takes {takes} positional argument{'s' if plural else ''} but {given}{extra} {was} given",
    )
