"""What builtin exception classes do with their arguments, and what their C attributes accept."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Final

from dynacheck.reasons import UNKNOWN_OPERATION
from dynacheck.variables import abstract
from dynacheck.variables.base import NotConstant, Tracer, VariableTracker
from dynacheck.variables.sequences import TupleVariable

_HEAP_TYPE: Final = 1 << 9
KEYWORDS: Final = (ImportError, AttributeError, NameError)
"""Builtin exceptions that take keyword arguments."""


def is_exception_class(cls: object) -> bool:
    """Whether an object is a class that can be raised."""
    return isinstance(cls, type) and BaseException in cls.__mro__


def builtin_class(cls: type) -> type[BaseException]:
    """The builtin exception class that a class derives from (its layout)."""
    return next(c for c in cls.__mro__ if not c.__flags__ & _HEAP_TYPE)


def is_builtin_part(raw: object) -> bool:
    """Whether a raw class attribute is a C attribute of an exception class."""
    descriptor = isinstance(raw, (types.GetSetDescriptorType, types.MemberDescriptorType))
    if not descriptor:
        return False
    owner: type = raw.__objclass__  # type: ignore[attr-defined]
    return BaseException in owner.__mro__ and not owner.__flags__ & _HEAP_TYPE


# -- checked stores


def _args(tx: Tracer, value: VariableTracker) -> VariableTracker:
    return TupleVariable(abstract.iterate(tx, value))


def as_traceback(tx: Tracer, value: VariableTracker) -> VariableTracker:
    if not abstract.is_none(tx, value) and value.get_type() is not types.TracebackType:
        tx.raise_(TypeError, "__traceback__ must be a traceback or None")
    return value


def _exception_or_none(what: str) -> Callable[[Tracer, VariableTracker], VariableTracker]:
    def check(tx: Tracer, value: VariableTracker) -> VariableTracker:
        if not abstract.is_none(tx, value) and BaseException not in value.get_type().__mro__:
            tx.raise_(TypeError, f"exception {what} must be None or derive from BaseException")
        return value

    return check


def _flag(tx: Tracer, value: VariableTracker) -> VariableTracker:
    if value.get_type() is not bool:
        tx.raise_(TypeError, "attribute value type must be bool")
    return value


PARTS: Final[dict[str, Callable[[Tracer, VariableTracker], VariableTracker]]] = {
    "args": _args,
    "__traceback__": as_traceback,
    "__cause__": _exception_or_none("cause"),
    "__context__": _exception_or_none("context"),
    "__suppress_context__": _flag,
}
"""What each attribute of BaseException accepts, and what it makes of it."""


# -- fields and texts of builtin classes


def _field_names(base: type[BaseException]) -> list[str]:
    """C attributes that a builtin class adds to BaseException's."""
    parts = (types.MemberDescriptorType, types.GetSetDescriptorType)
    classes = base.__mro__[: base.__mro__.index(BaseException)]
    names = [name for c in classes for name, raw in c.__dict__.items() if isinstance(raw, parts)]
    return [name for name in names if name not in ("characters_written", "print_file_and_line")]


def real_exception(
    tx: Tracer,
    base: type[BaseException],
    args: Sequence[VariableTracker],
    kwargs: dict[str, VariableTracker],
) -> BaseException:
    """The builtin exception with these arguments, made for real.

    Raises:
        NotConstant: an argument isn't a constant.
    """
    values = [a.realize(tx).as_constant(tx) for a in args]
    named = {k: v.realize(tx).as_constant(tx) for k, v in kwargs.items()}
    try:
        return base(*values, **named)
    except Exception as error:
        tx.raise_(type(error), *error.args)


def fields(
    tx: Tracer,
    base: type[BaseException],
    args: Sequence[VariableTracker],
    kwargs: dict[str, VariableTracker],
) -> dict[str, VariableTracker]:
    """The C attributes that a builtin `__init__` derives from its arguments."""
    names = _field_names(base)
    if not names and not kwargs:
        return {}
    none = tx.constant(None)
    if issubclass(base, StopIteration):
        return {"value": args[0] if args else none}
    if issubclass(base, SystemExit):
        return {"code": none if not args else args[0] if len(args) == 1 else TupleVariable(list(args))}
    try:
        real = real_exception(tx, base, args, kwargs)
        return {name: tx.constant(getattr(real, name)) for name in names}
    except NotConstant:
        pass
    named = issubclass(base, (AttributeError, NameError)) and not set(kwargs) - set(names)
    if not named and not (issubclass(base, OSError) and len(args) < 2):
        tx.break_(UNKNOWN_OPERATION, operation="making an exception", what=base.__name__)
    return {name: kwargs.get(name, none) for name in names}
