"""The collections module: C helpers of its Python classes."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, Final

from dynacheck.handlers.registry import handles, replaces
from dynacheck.sources import type_lookup
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.inherited import OF_THE_CLASS
from dynacheck.variables.made_classes import make_namedtuple


@replaces(collections._count_elements, signature=False)  # type: ignore[attr-defined]
def count_elements(mapping: dict[Any, int], iterable: Iterable[Any], /) -> None:
    """Count the elements of an iterable in a mapping."""
    get = mapping.get
    for element in iterable:
        mapping[element] = get(element, 0) + 1


def _update(self: Any, other: Any = (), /, **named: Any) -> None:
    """`OrderedDict.update` and `__init__`: by way of what a class has for storing items."""
    if type(other) is dict:
        other = other.items()
    elif hasattr(other, "keys"):
        other = [(key, other[key]) for key in other.keys()]  # noqa: SIM118 (a mapping's own rule)
    for key, value in other:
        self[key] = value
    for key, value in named.items():
        self[key] = value


def _setdefault(self: Any, key: Any, default: Any = None) -> Any:
    if key in self:
        return self[key]
    self[key] = default
    return default


def _copy(self: Any) -> Any:
    made = type(self)()
    for key in collections.OrderedDict.__iter__(self):
        made[key] = self[key]
    return made


def _missing(self: Any, key: Any, /) -> Any:
    factory = self.default_factory
    if factory is None:
        raise KeyError(key)
    value = self[key] = factory()
    return value


def _merged(left: Any, right: Any) -> Any:
    made = (type(left) if isinstance(left, collections.OrderedDict) else type(right))(left)
    collections.OrderedDict.update(made, right)
    return made


def _merged_in_place(left: Any, right: Any) -> Any:
    collections.OrderedDict.update(left, right)
    return left


def _merged_with_default(left: Any, right: Any) -> Any:
    mine = left if isinstance(left, collections.defaultdict) else right
    made = type(mine)(mine.default_factory, left)
    dict.update(made, right)
    return made


def _copied(items: Any) -> Any:
    return type(items)(items) if items.maxlen is None else type(items)(items, items.maxlen)


def _joined(left: Any, right: Any) -> Any:
    made = _copied(left)
    collections.deque.extend(made, right)
    return made


def _repeated(left: Any, right: Any) -> Any:
    items, times = (left, right) if isinstance(left, collections.deque) else (right, left)
    return collections.deque.__imul__(_copied(items), times)


OF_THE_CLASS.update(
    {
        collections.OrderedDict.__or__: _merged,
        collections.OrderedDict.__ior__: _merged_in_place,
        collections.defaultdict.__or__: _merged_with_default,
        collections.deque.__add__: _joined,
        collections.deque.__mul__: _repeated,
    }
)


def _copied_with_default(items: Any) -> Any:
    return type(items)(items.default_factory, items)


def _copied_by_keys(items: Any) -> Any:
    """What `dict.copy` does with an object whose class iterates in its own way."""
    return {key: items[key] for key in list(items.keys())} if dict.__len__(items) else {}


_COPIES: Final[dict[Any, Callable[..., Any]]] = {
    collections.OrderedDict.copy: _copy,
    collections.deque.copy: _copied,
    collections.deque.__copy__: _copied,
    collections.defaultdict.copy: _copied_with_default,
    collections.defaultdict.__copy__: _copied_with_default,
}
"""C methods that make an object of the class of theirs."""
_OF_ITEMS: Final = ("__setitem__", "__getitem__", "__contains__")
_BY_ITEMS: Final[dict[Any, Callable[..., Any]]] = {
    collections.OrderedDict.__init__: _update,
    collections.OrderedDict.update: _update,
    collections.OrderedDict.setdefault: _setdefault,
    collections.defaultdict.__missing__: _missing,
}


def by_items(cls: type, method: Any) -> Callable[..., Any] | None:
    """What a C method does on a subclass, where that may have methods of its own for its items, or makes an object of the
    class, in Python; None for others."""
    if method in _COPIES:
        return _COPIES[method]
    if method is dict.copy:
        return _copied_by_keys if isinstance(type_lookup(cls, "__iter__"), FunctionType) else None
    found = _BY_ITEMS.get(method)
    own = found is not None and any(isinstance(type_lookup(cls, name), FunctionType) for name in _OF_ITEMS)
    return found if own else None


@handles(collections.namedtuple, lazy=True)
def made_namedtuple(
    tx: Tracer, /, *args: VariableTracker, **kwargs: VariableTracker
) -> VariableTracker | None:
    return make_namedtuple(tx, args, kwargs)
