"""Taking the items of an iterable: unpacking, and what `list()` and `tuple()` do, which ask for a length first."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from types import NoneType, WrapperDescriptorType

from dynacheck.sources import ABSENT, HEAP_TYPE
from dynacheck.variables import abstract
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.versions import PY314


def items_of(tx: Tracer, v: VariableTracker) -> Iterator[VariableTracker]:
    """The items of an iterable, as they are drawn; it is asked how many they may be (`PyObject_LengthHint`)."""
    value = v.realize(tx)
    iterator = abstract.get_iter(tx, value)
    if value.get_type().__flags__ & HEAP_TYPE:
        found = (abstract.special(tx, value, name) for name in ("__len__", "__length_hint__"))
        if any(raw is not ABSENT and not isinstance(raw, (WrapperDescriptorType, NoneType)) for raw in found):
            tx.call(tx.object(operator.length_hint), [value])
    while (item := abstract.iternext(tx, iterator)) is not None:
        yield item


def listed(tx: Tracer, v: VariableTracker) -> list[VariableTracker]:
    """The items of a new list or tuple."""
    return list(items_of(tx, v))


def _unpack_iter(tx: Tracer, v: VariableTracker) -> VariableTracker:
    value = v.realize(tx)
    if not abstract.is_iterable(tx, value):
        tx.raise_(TypeError, f"cannot unpack non-iterable {abstract.name_of(value)} object")
    return abstract.get_iter(tx, value)


def _take(tx: Tracer, iterator: VariableTracker, n: int, expected: str) -> list[VariableTracker]:
    items: list[VariableTracker] = []
    while len(items) < n:
        item = abstract.iternext(tx, iterator)
        if item is None:
            tx.raise_(ValueError, f"not enough values to unpack (expected {expected}, got {len(items)})")
        items.append(item)
    return items


def unpack(tx: Tracer, v: VariableTracker, n: int) -> list[VariableTracker]:
    """The n items of `a, b, … = v`; ValueError in the program when there are more or fewer."""
    iterator = _unpack_iter(tx, v)
    items = _take(tx, iterator, n, str(n))
    if abstract.iternext(tx, iterator) is not None:
        got = ""
        value = v.realize(tx)
        if PY314 and value.get_type() in (list, tuple, dict):
            got = f", got {abstract.constant_of(tx, abstract.length(tx, value), 'len()')}"
        tx.raise_(ValueError, f"too many values to unpack (expected {n}{got})")
    return items


def unpack_ex(
    tx: Tracer, v: VariableTracker, before: int, after: int
) -> tuple[list[VariableTracker], list[VariableTracker], list[VariableTracker]]:
    """The items of `a, …, *rest, z, … = v`: those before the star, the rest, those after."""
    iterator = _unpack_iter(tx, v)
    least = f"at least {before + after}"
    head = _take(tx, iterator, before, least if after or before else "0")
    rest = listed(tx, iterator)
    if len(rest) < after:
        got = before + len(rest)
        tx.raise_(ValueError, f"not enough values to unpack (expected {least}, got {got})")
    split = len(rest) - after
    return head, rest[:split], rest[split:]
