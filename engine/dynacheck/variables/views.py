"""Live views of dicts: keys, values, items."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from dynacheck.variables import abstract
from dynacheck.variables.base import NOT_IMPLEMENTED, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.coerce import data, text
from dynacheck.variables.mappings import VIEWS, DictVariable
from dynacheck.variables.methods import BuiltinObject, unhashable
from dynacheck.variables.sets import AbstractSetVariable, SetVariable


class ViewVariable(BuiltinObject):
    """A view of a dict, which it follows.

    Args:
        mapping: the dict's tracker.
        what: keys, values or items.
    """

    __slots__ = ("mapping", "what")

    def __init__(self, mapping: DictVariable, what: str) -> None:
        super().__init__()
        self.mapping = mapping
        self.what = what

    def sample(self) -> Any:
        return getattr(self.mapping.python_type(), self.what)()

    def get_type(self) -> type:
        return type(self.sample())

    def tp_iter(self, tx: Tracer) -> VariableTracker:
        return self.mapping.iterate(tx, self.what, False)

    def m___reversed__(self, tx: Tracer) -> VariableTracker:
        return self.mapping.iterate(tx, self.what, True)

    def sq_length(self, tx: Tracer) -> VariableTracker:
        return self.mapping.sq_length(tx)

    def a_mapping(self, tx: Tracer) -> VariableTracker:
        self.unmodelled(tx, "a mapping proxy")

    def hash_key(self, tx: Tracer) -> Any:
        if self.what != "values":
            unhashable(tx, self)
        return self

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        shown = ", ".join(text(tx, item) for item in abstract.iterate(tx, self))
        return tx.constant(f"{self.get_type().__name__}([{shown}])")

    def children(self) -> Sequence[VariableTracker]:
        return (self.mapping,)

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(_VIEW_OF[self.what], lambda: to.load(self.mapping))
        to.remember(self)

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker:
        return tx.constant(any(abstract.equal(tx, v, item) for v in abstract.iterate(tx, self)))

    def as_proxy(self, tx: Tracer) -> Any:
        return [v.realize(tx).as_proxy(tx) for v in abstract.iterate(tx, self)]

    def as_meta(self, tx: Tracer) -> Any:
        return [v.realize(tx).as_meta(tx) for v in abstract.iterate(tx, self)]


class SetLikeView(ViewVariable):
    """Keys and items: views that are sets too."""

    __slots__ = ()

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker:
        if self.what == "keys":
            return self.mapping.sq_contains(tx, item)
        item = item.realize(tx)
        if tuple not in item.get_type().__mro__ or len(pair := abstract.iterate(tx, item)) != 2:
            return tx.constant(False)
        found = self.mapping.lookup(tx, pair[0])
        return tx.constant(found is not None and abstract.equal(tx, found, pair[1]))

    def as_set(self, tx: Tracer) -> SetVariable:
        """A new set of the items."""
        made: SetVariable = SetVariable.of(tx, abstract.iterate(tx, self))
        return made

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        if op not in ("&", "|", "-", "^"):
            return NOT_IMPLEMENTED
        one, other = (SetVariable.of(tx, abstract.iterate(tx, v)) for v in (left, right))
        found: VariableTracker | object = one.nb_binary(tx, op, one, other)
        return found

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        """`dictview_richcompare`: sizes, then whether one has all items of the other."""
        other = data(tx, other)
        if not isinstance(other, (AbstractSetVariable, SetLikeView)):
            return NOT_IMPLEMENTED
        sizes = [v.sq_length(tx).as_constant(tx) for v in (self, other)]
        if op == "!=":
            return tx.constant(not (sizes[0] == sizes[1] and _all_in(tx, self, other)))
        if not SIZES[op](*sizes):
            return tx.constant(False)
        return tx.constant(_all_in(tx, other, self) if op in (">", ">=") else _all_in(tx, self, other))

    def m_isdisjoint(self, tx: Tracer, other: VariableTracker, /) -> VariableTracker:
        return self.as_set(tx).m_isdisjoint(tx, other)


SIZES: Final[dict[str, Callable[[int, int], bool]]] = {
    "==": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _all_in(tx: Tracer, items: VariableTracker, container: VariableTracker) -> bool:
    return all(
        abstract.is_true(tx, abstract.contains(tx, container, item)) for item in abstract.iterate(tx, items)
    )


def _keys(mapping: Any) -> Any:
    return dict.keys(mapping) if type(mapping) is dict else mapping.keys()


def _values(mapping: Any) -> Any:
    return dict.values(mapping) if type(mapping) is dict else mapping.values()


def _items(mapping: Any) -> Any:
    return dict.items(mapping) if type(mapping) is dict else mapping.items()


_VIEW_OF: Final[dict[str, Callable[[Any], Any]]] = {"keys": _keys, "values": _values, "items": _items}

VIEWS["keys"] = lambda mapping: SetLikeView(mapping, "keys")
VIEWS["items"] = lambda mapping: SetLikeView(mapping, "items")
VIEWS["values"] = lambda mapping: ViewVariable(mapping, "values")
