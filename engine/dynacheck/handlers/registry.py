"""What calling a known function does: handlers by the function's identity, and polyfills.

A handler is a function `(tx, *args, **kwargs)` that returns the tracker of the result, or None when it leaves
the call to the general rules (inlining, a graph operator, a break). A polyfill is a plain Python function
that does what the original does and is interpreted in its place.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any, Final, NoReturn, Protocol, TypeVar

from dynacheck.reasons import SKIPPED_CALL, UNKNOWN_CALL
from dynacheck.variables.base import Tracer, VariableTracker

F = TypeVar("F", bound=Callable[..., Any])


class Handler(Protocol):
    """What `lookup` returns; arguments may be lazy."""

    def __call__(
        self, tx: Tracer, /, *args: VariableTracker, **kwargs: VariableTracker
    ) -> VariableTracker | None: ...


_handlers: Final[dict[int, tuple[Any, Handler]]] = {}
_by_equality: Final[dict[Any, Handler]] = {}
"""Bound C methods (`dict.fromkeys`), which are made anew by each attribute access but compare equal."""
_by_code: Final[dict[CodeType, Callable[..., VariableTracker | None]]] = {}
_polyfills: Final[dict[int, tuple[Any, FunctionType]]] = {}
refused: Final[list[Any]] = []
"""What has a handler only to break."""


def handles(*functions: Any, lazy: bool = False) -> Callable[[F], F]:
    """Register the handler of functions.

    Args:
        *functions: builtins, types, C functions, method descriptors or Python functions.
        lazy: hand arguments over without wrapping lazy ones.

    Raises:
        ValueError: a function has a handler already.
    """

    def add(handler: F) -> F:
        for function in functions:
            _register(function, _checked(function, handler, lazy))
        return handler

    return add


def refuses(why: str, *functions: Any) -> None:
    """Break where functions or classes are called that could be traced, since torch breaks there.

    Args:
        why: completes "never traced", for people.
        *functions: what is refused.
    """
    for function in functions:
        _register(function, _breaking(f"{function.__module__}.{function.__qualname__}", why))
        refused.append(function)


def _breaking(call: str, why: str) -> Handler:
    def breaks(tx: Tracer, /, *args: VariableTracker, **kwargs: VariableTracker) -> NoReturn:
        tx.break_(SKIPPED_CALL, call=call, why=why)

    return breaks


def _register(function: Any, handler: Handler) -> None:
    if lookup(function) is not None:
        raise ValueError(f"{function!r} has two handlers")
    if isinstance(function, BuiltinFunctionType) and function.__self__ is not None:
        _by_equality[function] = handler
    _handlers[id(function)] = (function, handler)


def _checked(function: Any, handler: Callable[..., Any], lazy: bool) -> Handler:
    """The handler behind a check of its arguments."""
    signature = inspect.signature(handler)
    kinds = [p.kind for p in signature.parameters.values()]
    takes_anything = kinds[1:] == [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]
    fewest, most = _positional(signature)

    def call(tx: Tracer, /, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker | None:
        if not takes_anything and (
            kwargs or not fewest <= len(args) <= most
        ):  # else they bind: binding is slow
            try:
                signature.bind(tx, *args, **kwargs)
            except TypeError:
                misuse(tx, function, args, kwargs)
        if not lazy:
            args = tuple(a.realize(tx) for a in args)
            kwargs = {k: v.realize(tx) for k, v in kwargs.items()}
        found: VariableTracker | None = handler(tx, *args, **kwargs)
        return found

    return call


def _positional(signature: inspect.Signature) -> tuple[int, float]:
    """How many arguments, besides the translator, a handler takes by position alone: at least and at most."""
    fewest, most = -1, -1.0
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            most = math.inf
        elif parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
            most += 1
            fewest += parameter.default is inspect.Parameter.empty
        elif (
            parameter.kind is inspect.Parameter.KEYWORD_ONLY and parameter.default is inspect.Parameter.empty
        ):
            return 0, -1  # never without names
    return fewest, most


def misuse(
    tx: Tracer, function: Any, args: Iterable[VariableTracker], kwargs: dict[str, VariableTracker]
) -> NoReturn:
    """Raise the TypeError of a call with arguments that the function doesn't take, or break."""
    nothing = [None] * len(list(args))
    names = dict.fromkeys(kwargs)
    try:
        inspect.signature(function).bind(*nothing, **names)
    except TypeError:
        try:  # binding fails, so the body doesn't run: only CPython's wording is asked for
            function(*nothing, **names)
        except TypeError as error:
            tx.raise_(TypeError, *error.args)
    except ValueError:
        pass
    tx.break_(UNKNOWN_CALL, what=f"{getattr(function, '__qualname__', function)} with these arguments")


def handles_code(code: CodeType) -> Callable[[F], F]:
    """Register a handler of every function with this code (of closures of the standard library).

    The handler gets the function after `tx`.
    """

    def add(handler: F) -> F:
        _by_code[code] = handler
        return handler

    return add


def lookup(function: Any) -> Handler | None:
    """The handler of a function, or None.

    >>> lookup(print) is lookup(print)
    True
    """
    found = _handlers.get(id(function))
    if found is not None and found[0] is function:
        return found[1]
    if isinstance(function, FunctionType):
        closure_handler = _by_code.get(function.__code__)
        return None if closure_handler is None else _bound(closure_handler, function)
    if isinstance(function, BuiltinFunctionType):
        try:
            return _by_equality.get(function)
        except TypeError:  # bound to something unhashable
            return None
    return None


def _bound(handler: Callable[..., VariableTracker | None], function: FunctionType) -> Handler:
    def call(tx: Tracer, /, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker | None:
        return handler(tx, function, *args, **kwargs)

    return call


def replaces(*originals: Any, signature: bool = True) -> Callable[[F], F]:
    """Register a polyfill: a plain Python function that is interpreted in place of the originals.

    Args:
        *originals: what it replaces.
        signature: check that it takes what the originals take.

    Raises:
        ValueError: its parameters differ from an original's.
    """

    def add(polyfill: F) -> F:
        assert isinstance(polyfill, FunctionType)
        for original in originals:
            if signature:
                _check_signature(original, polyfill)
            _polyfills[id(original)] = (original, polyfill)

            def call(tx: Tracer, /, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
                return tx.call_python(polyfill, *args, **kwargs)

            _register(original, call)
        return polyfill

    return add


def polyfills() -> list[tuple[Any, FunctionType]]:
    """Pairs of original and polyfill, for tests that run both."""
    return list(_polyfills.values())


def _check_signature(original: Any, polyfill: FunctionType) -> None:
    try:
        wanted = inspect.signature(original)
    except ValueError:
        return  # C code that doesn't tell
    have = inspect.signature(polyfill)
    if [_shape(p) for p in wanted.parameters.values()] != [_shape(p) for p in have.parameters.values()]:
        raise ValueError(f"{polyfill.__qualname__}{have} doesn't take what {original!r} takes: {wanted}")


def _shape(parameter: inspect.Parameter) -> tuple[Any, ...]:
    named = parameter.kind not in (
        parameter.POSITIONAL_ONLY,
        parameter.VAR_POSITIONAL,
        parameter.VAR_KEYWORD,
    )
    return (parameter.kind, parameter.name if named else "", parameter.default is parameter.empty)
