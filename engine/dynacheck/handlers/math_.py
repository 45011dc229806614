"""The math module."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from dynacheck.handlers.folding import fold_call
from dynacheck.handlers.registry import handles
from dynacheck.variables import abstract
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.symbolic import SYM_FORMS, SymNumberVariable

_SYMBOLIC: Final = frozenset(SYM_FORMS) - {max, min}
# What gives no float: of a number that varies torch makes a graph break, where it takes the number itself for a float's.
_COUNTING: Final = frozenset(
    getattr(math, name)
    for name in ("gcd", "lcm", "isqrt", "comb", "perm", "factorial", "isfinite", "isnan", "isinf", "isclose")
)
_ROUNDING: Final[dict[Callable[..., Any], str]] = {
    math.floor: "__floor__",
    math.ceil: "__ceil__",
    math.trunc: "__trunc__",
}
_FUNCTIONS: Final[tuple[Callable[..., Any], ...]] = tuple(
    f
    for n, f in vars(math).items()
    if callable(f) and not n.startswith("_") and f not in (math.prod, math.radians)
)


def _handle(function: Callable[..., Any]) -> None:
    @handles(function)
    def call(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker | None:
        symbol = next((a for a in args if isinstance(a, SymNumberVariable)), None)
        if symbol is not None and function in _SYMBOLIC and len(args) == 1:
            return symbol.call_math(tx, function, list(args))
        if symbol is not None and function in _COUNTING:
            symbol.needs_plain(tx, f"math.{function.__name__}()")
        found = fold_call(tx, function, args, kwargs)
        if found is not None:
            return found
        dunder = _ROUNDING.get(function)
        if dunder is not None and len(args) == 1:
            if abstract.has(tx, args[0], dunder):
                return tx.call(args[0].tp_getattro(tx, dunder), [])
            if dunder == "__trunc__":
                name = abstract.name_of(args[0])
                tx.raise_(TypeError, f"type {name} doesn't define __trunc__ method")
        return fold_call(tx, function, _numbers(tx, args), kwargs)


def _numbers(tx: Tracer, values: Sequence[VariableTracker]) -> list[VariableTracker]:
    """What C code makes of arguments, in order: floats, by `__float__`, up to the first that is no number."""
    found: list[VariableTracker] = []
    for value in values:
        if value.is_constant() and not abstract.has(tx, value, "__float__"):
            return [*found, value, *[tx.constant(1.0)] * (len(values) - len(found) - 1)]
        plain = value.is_constant() or hasattr(value, "snapshot") or not abstract.has(tx, value, "__float__")
        found.append(value if plain else value.nb_unary(tx, "float").realize(tx))
    return found


for _function in _FUNCTIONS:
    _handle(_function)


@handles(math.radians)
def radians(tx: Tracer, x: VariableTracker, /) -> VariableTracker | None:
    if isinstance(x, SymNumberVariable):
        return abstract.binary(tx, "*", x, tx.constant(math.pi / 180.0))
    return fold_call(tx, math.radians, _numbers(tx, [x]), {})


@handles(math.prod)
def product(
    tx: Tracer, iterable: VariableTracker, /, *, start: VariableTracker | None = None
) -> VariableTracker:
    result = tx.constant(1) if start is None else start
    for item in abstract.iterate(tx, iterable):
        result = abstract.binary(tx, "*", result, item)
    return result
