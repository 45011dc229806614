"""The functools module."""

from __future__ import annotations

import functools

from dynacheck.handlers.registry import handles
from dynacheck.reasons import UNKNOWN_OPERATION
from dynacheck.variables import abstract
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.callables import PartialVariable
from dynacheck.variables.functions import UserFunctionVariable
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.results import python_value

Arg = VariableTracker


@handles(functools.partial, lazy=True)
def partial(tx: Tracer, func: Arg, /, *args: Arg, **keywords: Arg) -> VariableTracker:
    if not abstract.has(tx, func.realize(tx), "__call__"):
        tx.raise_(TypeError, "the first argument must be callable")
    return PartialVariable.made(tx, func, args, keywords)


@handles(functools.partialmethod.__get__)
def partial_method(tx: Tracer, self: Arg, obj: Arg, cls: Arg | None = None) -> VariableTracker | None:
    """Through an object it ends the frame, as with torch."""
    if not abstract.is_none(tx, obj):
        tx.give_up(UNKNOWN_OPERATION, operation="reading a partial method", what=obj.describe())
    return None


@handles(functools.reduce)
def reduce(tx: Tracer, function: Arg, iterable: Arg, initial: Arg | None = None, /) -> VariableTracker:
    iterator = abstract.get_iter(tx, iterable)
    value = abstract.iternext(tx, iterator) if initial is None else initial
    if value is None:
        tx.raise_(TypeError, "reduce() of empty iterable with no initial value")
    while (item := abstract.iternext(tx, iterator)) is not None:
        value = tx.call(function, [value, item])
    return value


def _is(tx: Tracer, value: Arg | None, default: tuple[str, ...]) -> bool:
    return value is None or python_value(tx, value) == default


@handles(functools.update_wrapper)
def update_wrapper(
    tx: Tracer, wrapper: Arg, wrapped: Arg, assigned: Arg | None = None, updated: Arg | None = None
) -> VariableTracker | None:
    usual = _is(tx, assigned, functools.WRAPPER_ASSIGNMENTS) and _is(tx, updated, functools.WRAPPER_UPDATES)
    if not usual or not isinstance(wrapper, UserFunctionVariable):
        return None
    for name in functools.WRAPPER_ASSIGNMENTS:
        missing = tx.constant(None)
        value = abstract.getattr_default(tx, wrapped, name, missing)
        if value is not missing:
            abstract.setattr_(tx, wrapper, name, value)
    if isinstance(wrapped, UserFunctionVariable):
        names = [] if wrapped.value is None else list(wrapped.value.__dict__)
        for own in dict.fromkeys((*names, *wrapped.attributes)):
            if own not in functools.WRAPPER_ASSIGNMENTS:
                abstract.setattr_(tx, wrapper, own, abstract.getattr_(tx, wrapped, own))
    abstract.setattr_(tx, wrapper, "__wrapped__", wrapped)
    return wrapper


@handles(functools.cached_property.__get__)
def cached_property(tx: Tracer, prop: Arg, instance: Arg, owner: Arg | None = None) -> VariableTracker | None:
    """The value of an instance that has none yet: computed and stored, without the lock of older versions."""
    if not isinstance(instance, UserObjectVariable):
        return None
    name = abstract.getattr_(tx, prop, "attrname").realize(tx)
    if not name.is_constant() or name.as_constant(tx) is None:
        return None
    value = tx.call(abstract.getattr_(tx, prop, "func"), [instance])
    instance.attrs[name.as_constant(tx)] = value
    tx.mutated(instance)
    return value
