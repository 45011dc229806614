"""Text made of values that aren't constants: `%`, `str.format`, `str.join`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Final

import torch

from dynacheck.sources import type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.base import NotConstant, Tracer, VariableTracker
from dynacheck.variables.listing import listed
from dynacheck.variables.results import python_value, scalar
from dynacheck.variables.symbolic import SymNumberVariable, UnreadTextVariable


class _Shown:
    """A tracker inside a real formatting operation: its text is what the traced program would give."""

    __slots__ = ("_tracker", "_tx")

    def __init__(self, tx: Tracer, tracker: VariableTracker) -> None:
        self._tx = tx
        self._tracker = tracker

    def __str__(self) -> str:
        return _text(self._tx, abstract.str_(self._tx, self._tracker))

    def __repr__(self) -> str:
        return _text(self._tx, abstract.repr_(self._tx, self._tracker))

    def __format__(self, spec: str) -> str:
        return _text(self._tx, abstract.format_value(self._tx, self._tracker, None, self._tx.constant(spec)))

    def __getattr__(self, name: str) -> Any:
        return _shown(self._tx, abstract.getattr_(self._tx, self._tracker, name))

    def __getitem__(self, key: Any) -> Any:
        return _shown(self._tx, abstract.getitem(self._tx, self._tracker, self._tx.constant(key)))


class _ShownNumber(_Shown):
    """An object of a subclass of a number's type, with text of its own."""

    def __index__(self) -> int:
        return int(python_value(self._tx, self._tracker))

    def __float__(self) -> float:
        return float(python_value(self._tx, self._tracker))


_TEXTS: Final = ("__str__", "__repr__", "__format__")


def _text(tx: Tracer, value: VariableTracker) -> str:
    text: str = abstract.constant_of(tx, value, "formatting")
    return text


def _shown(tx: Tracer, value: VariableTracker) -> Any:
    """A constant as itself, anything else as something that formats like it."""
    value = value.realize(tx)
    try:
        known = python_value(tx, value)
    except NotConstant:
        return _Shown(tx, value)
    own = any(isinstance(type_lookup(value.get_type(), name), FunctionType) for name in _TEXTS)
    return _ShownNumber(tx, value) if own and scalar(value) is not value else known


def _run(tx: Tracer, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> VariableTracker:
    try:
        return tx.constant(fn(*args, **kwargs))
    except (
        TypeError,
        ValueError,
        KeyError,
        IndexError,
        AttributeError,
        OverflowError,
        UnicodeError,
    ) as error:
        tx.raise_(type(error), *error.args)


def shown_tuple(*items: Any) -> str:
    return str(items)


def shown_list(*items: Any) -> str:
    return str(list(items))


def shown_size(*items: Any) -> str:
    return str(torch.Size(items))


_SHOWN: Final[dict[Any, Callable[..., str]]] = {tuple: shown_tuple, list: shown_list, torch.Size: shown_size}


def of_sizes(tx: Tracer, value: VariableTracker) -> VariableTracker | None:
    """What `format` gives for a sequence of numbers some of which vary, made if it is looked at; None for others."""
    show = _SHOWN.get(value.get_type())
    if show is None:
        return None
    items = [item.realize(tx) for item in abstract.iterate(tx, value.realize(tx))]
    varying = [item for item in items if isinstance(item, SymNumberVariable)]
    others = all(item.is_constant() for item in items if item not in varying)
    return UnreadTextVariable.of(tx, show, items) if varying and others else None


def percent(tx: Tracer, template: str | bytes, value: VariableTracker) -> VariableTracker:
    """`template % value`."""
    value = value.realize(tx)
    kind = value.get_type()
    if tuple in kind.__mro__:
        return _run(tx, lambda: template % tuple(_shown(tx, i) for i in abstract.iterate(tx, value)))
    if dict in kind.__mro__:
        keys = [(python_value(tx, k), k) for k in abstract.iterate(tx, value)]
        items = {key: _shown(tx, abstract.getitem(tx, value, k)) for key, k in keys}
        return _run(tx, lambda: template % items)
    return _run(tx, lambda: template % (_shown(tx, value),))


def format_method(
    tx: Tracer, template: str, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """`template.format(*args, **kwargs)`."""
    operands = [tx.constant(template), *(of_sizes(tx, a) or a.realize(tx) for a in args)]
    if not kwargs and any(isinstance(o, (SymNumberVariable, UnreadTextVariable)) for o in operands):
        return UnreadTextVariable.of(tx, str.format, operands)
    named = {k: _shown(tx, v) for k, v in kwargs.items()}
    return _run(tx, template.format, *[_shown(tx, a) for a in args], **named)


def join(tx: Tracer, separator: str | bytes, iterable: VariableTracker) -> VariableTracker:
    """`separator.join(iterable)`."""
    if not abstract.is_iterable(tx, iterable.realize(tx)):
        tx.raise_(TypeError, "can only join an iterable")
    items = [i.realize(tx) for i in listed(tx, abstract.get_iter(tx, iterable))]
    strings = [scalar(i) for i in items]
    values = [i.as_constant(tx) if i.is_constant() else _Named.of(i) for i in strings]
    return _run(tx, lambda: separator.join(values))


class _Named:
    """Something that is no string, for the wording of the error."""

    @staticmethod
    def of(value: VariableTracker) -> Any:
        return type(value.get_type().__name__, (), {})()
