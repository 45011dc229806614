"""set and frozenset."""

from __future__ import annotations

import enum
import operator
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, ClassVar, Final

from dynacheck.guards import Is
from dynacheck.guards.held import is_constant as is_plain
from dynacheck.guards.objects import SetIs, elements_of
from dynacheck.sources import Node
from dynacheck.variables import abstract
from dynacheck.variables.base import NOT_IMPLEMENTED, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.coerce import data, natively, text
from dynacheck.variables.iterators import NativeIterator
from dynacheck.variables.methods import BuiltinObject, key_of, unhashable
from dynacheck.variables.replay import replace_elements
from dynacheck.variables.results import python_value
from dynacheck.variables.weak_references import WeakReferenceVariable

_ALGEBRA: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "&": operator.and_,
    "|": operator.or_,
    "-": operator.sub,
    "^": operator.xor,
}
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
_IN_PLACE: Final[dict[str, str]] = {
    "&": "intersection_update",
    "|": "update",
    "-": "difference_update",
    "^": "symmetric_difference_update",
}
_HASHING: Final = ("intersection", "intersection_update", "issubset")
"""Methods whose error for an unhashable element is that of `hash()`."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a set's method.

    Args:
        keys: hash keys, as a set or in order.
        elements: trackers by hash key.
    """

    keys: Any
    elements: dict[Any, VariableTracker]


def merged(tx: Tracer, values: VariableTracker | None) -> Iterable[VariableTracker]:
    """What goes into a set: another set's elements as they are, anything else by iteration."""
    if values is None:
        return ()
    other = data(tx, values)
    return other.items(tx) if isinstance(other, AbstractSetVariable) else abstract.iterate(tx, values)


class AbstractSetVariable(BuiltinObject):
    """A set of trackers.

    Invariant: `keys` is a Python set of the elements' hash keys, which gives the order; `elements` maps them
    to trackers. A sourced one is guarded by its elements (`SetIs`) once read.
    """

    __slots__ = ("_elements", "_keys", "_order")
    python_type: ClassVar[type] = set

    def __init__(
        self,
        keys: set[Any] | frozenset[Any] | None,
        elements: dict[Any, VariableTracker],
        node: Node | None = None,
    ) -> None:
        super().__init__(node)
        self._keys: Any = keys
        self._elements = elements
        self._order: list[Any] | None = None
        """The keys as the set from before the frame has them, where they hash otherwise than its elements."""

    @classmethod
    def of(cls, tx: Tracer, items: Iterable[VariableTracker]) -> Any:
        """A new set of these items; of equal ones the first stays."""
        elements: dict[Any, VariableTracker] = {}
        keys: set[Any] = set()
        for item in items:
            found = key_of(tx, item, "set element")
            keys.add(found)
            elements.setdefault(found, item.realize(tx))
        return cls(cls.python_type(keys), elements)

    def read(self, tx: Tracer) -> None:
        """Read a set that existed before the frame."""
        if self._keys is not None:
            return
        assert self.node is not None
        value = self.node.peek()
        keys: list[Any] = []
        for element in elements_of(value):
            if is_plain(element) or isinstance(element, enum.Enum):
                tracker = tx.constant(element)
            elif type(element) is weakref.ReferenceType and element() is not None:
                tracker = WeakReferenceVariable(tx.object(element()))
            elif type(element).__weakrefoffset__:
                tracker = tx.object(element)
            else:
                self.unmodelled(tx, f"an element of type {type(element).__qualname__}")
            found = tracker.hash_key(tx)
            self._elements[found] = tracker
            keys.append(found)
        tx.guard(self.node, SetIs(value))
        plain = all(map(operator.is_, keys, elements_of(value)))
        self._keys = self.python_type(value if plain else keys)  # a copy of a set has its order
        self._order = None if plain else keys

    def members(self, tx: Tracer) -> Any:
        """The Python set of hash keys, for what doesn't depend on its order."""
        self.read(tx)
        return self._keys

    def keys(self, tx: Tracer) -> Any:
        """The Python set of hash keys, whose order is that of the set."""
        self.read(tx)
        if self.node is not None and len(elements_of(self.node.peek())) > 1:
            tx.guard(self.node, SetIs(self.node.peek(), ordered=True))
        return self._keys

    def in_order(self, tx: Tracer) -> Iterable[Any]:
        """The hash keys in the order of the set's elements."""
        keys: Iterable[Any] = self.keys(tx)
        return keys if self._order is None else self._order

    def _walk(self, order: list[Any]) -> Iterator[Any]:
        """Iterates over them as a set's iterator does, which notices a change."""
        for key in order:
            yield key
            if self._order is not order:
                raise RuntimeError("Set changed size during iteration")

    def items(self, tx: Tracer) -> list[VariableTracker]:
        """The elements in the set's order."""
        return [self._elements[k] for k in self.in_order(tx)]

    def children(self) -> Sequence[VariableTracker]:
        return tuple(self._elements.values())

    def sq_length(self, tx: Tracer) -> VariableTracker:
        return tx.constant(len(self.members(tx)))

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker:
        item = data(tx, item)
        keys = self.members(tx)
        if isinstance(item, SetVariable):  # CPython looks for an equal frozenset
            return tx.constant(frozenset(item.members(tx)) in keys)
        key = key_of(tx, item, "set element")
        by_identity = key is item or isinstance(key, FunctionType)
        if self.node is not None and by_identity and item.node is not None:  # what is in it is guarded
            if not type(item.node.peek()).__weakrefoffset__:
                self.unmodelled(tx, f"`in` with {item.describe()}")
            tx.guard(item.node, Is(item.node.peek()))
        return tx.constant(key in keys)

    def tp_iter(self, tx: Tracer) -> VariableTracker:
        kind: type = type(iter(set()))
        find = self._elements.__getitem__
        found = self.keys(tx)
        keys = iter(found) if self._order is None else self._walk(self._order)
        return NativeIterator(self, keys, find, kind, order=lambda: list(self.in_order(tx)))

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        one, other = data(tx, left), data(tx, right)
        if op not in _ALGEBRA or not isinstance(one, AbstractSetVariable):
            return NOT_IMPLEMENTED
        if not isinstance(other, AbstractSetVariable):
            return NOT_IMPLEMENTED
        keys = _ALGEBRA[op](one.keys(tx), other.keys(tx))
        return type(one)(keys, _known(keys, one._elements, other._elements))

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        other = data(tx, other)
        if not isinstance(other, AbstractSetVariable):
            return NOT_IMPLEMENTED
        return tx.constant(_COMPARE[op](self.members(tx), other.members(tx)))

    def arguments(self, tx: Tracer, method: str, values: Sequence[VariableTracker]) -> list[Argument]:
        """Arguments of a method, which takes any iterables."""
        return [argument(tx, method, v) for v in values]

    def _combined(self, tx: Tracer, method: str, values: Sequence[VariableTracker]) -> VariableTracker:
        """Call set's own method on hash keys, which gives the result's order too."""
        keys = self.keys(tx)
        found = self.arguments(tx, method, values)
        combined = getattr(keys, method)(*[f.keys for f in found])
        return type(self)(combined, _known(combined, self._elements, *[f.elements for f in found]))

    def m_union(self, tx: Tracer, *others: VariableTracker) -> VariableTracker:
        return self._combined(tx, "union", others)

    def m_intersection(self, tx: Tracer, *others: VariableTracker) -> VariableTracker:
        return self._combined(tx, "intersection", others)

    def m_difference(self, tx: Tracer, *others: VariableTracker) -> VariableTracker:
        return self._combined(tx, "difference", others)

    def m_symmetric_difference(self, tx: Tracer, other: VariableTracker, /) -> VariableTracker:
        return self._combined(tx, "symmetric_difference", [other])

    def m_isdisjoint(self, tx: Tracer, other: VariableTracker, /) -> VariableTracker:
        return tx.constant(self.members(tx).isdisjoint(argument(tx, "isdisjoint", other).keys))

    def m_issubset(self, tx: Tracer, other: VariableTracker, /) -> VariableTracker:
        return tx.constant(self.members(tx).issubset(argument(tx, "issubset", other).keys))

    def m_issuperset(self, tx: Tracer, other: VariableTracker, /) -> VariableTracker:
        return tx.constant(self.members(tx).issuperset(argument(tx, "issuperset", other).keys))

    def m_copy(self, tx: Tracer) -> VariableTracker:
        return type(self)(self.keys(tx).copy(), dict(self._elements))

    def snapshot(self, tx: Tracer) -> Any:
        """A Python copy, when all elements are constants."""
        keys = self.in_order(tx)
        return self.python_type(python_value(tx, self._elements[k]) for k in keys)

    def as_proxy(self, tx: Tracer) -> Any:
        keys = self.in_order(tx)
        return self.python_type(self._elements[k].as_proxy(tx) for k in keys)

    as_meta = as_proxy

    def listing(self, tx: Tracer) -> str:
        """The elements between braces."""
        keys = self.in_order(tx)
        return "{" + ", ".join(text(tx, self._elements[k]) for k in keys) + "}"

    def push_elements(self, to: Rebuilder) -> None:
        """Push a set of the elements, added in this set's order."""
        keys = () if self._keys is None else self._keys
        for key in keys:
            to.load(self._elements[key])
        to.build_set(len(keys))


class SetVariable(AbstractSetVariable):
    """A set."""

    __slots__ = ()
    python_type = set

    def change(self, tx: Tracer, ordered: bool = True) -> Any:
        """The Python set of hash keys, about to be changed; `ordered` where the change depends on its order."""
        keys = self.keys(tx) if ordered else self.members(tx)
        self.changing(tx)
        self._order = None
        return keys

    def _add(self, tx: Tracer, item: VariableTracker) -> None:
        item = item.realize(tx)
        found = key_of(tx, item, "set element")
        keys = self.change(tx, ordered=False)
        if found not in keys:
            keys.add(found)
            self._elements[found] = item

    def _update_by(self, tx: Tracer, method: str, found: Sequence[Argument]) -> None:
        """Call set's own in-place method on hash keys."""
        mine = self.change(tx)
        getattr(mine, method)(*[f.keys for f in found])
        self._elements.update(_known(mine, self._elements, *[f.elements for f in found]))

    def nb_inplace(self, tx: Tracer, op: str, right: VariableTracker) -> VariableTracker | object:
        other = data(tx, right)
        if op not in _ALGEBRA or not isinstance(other, AbstractSetVariable):
            return NOT_IMPLEMENTED
        other.read(tx)
        self._update_by(tx, _IN_PLACE[op], [Argument(other.keys(tx), other._elements)])
        return self

    def m_add(self, tx: Tracer, item: VariableTracker, /) -> None:
        self._add(tx, item)

    def m_discard(self, tx: Tracer, item: VariableTracker, /) -> None:
        self.change(tx, ordered=False).discard(self._key(tx, item))

    def m_remove(self, tx: Tracer, item: VariableTracker, /) -> None:
        found = self._key(tx, item)
        if found not in self.members(tx):
            tx.raise_(KeyError, item.realize(tx))
        self.change(tx, ordered=False).remove(found)

    def _key(self, tx: Tracer, item: VariableTracker) -> Any:
        item = data(tx, item)
        return (
            frozenset(item.members(tx)) if isinstance(item, SetVariable) else key_of(tx, item, "set element")
        )

    def m_pop(self, tx: Tracer) -> VariableTracker:
        self.keys(tx)
        first = self._order
        found = natively(tx, self.change(tx).pop)
        if first is not None and found is not first[0]:
            self._keys.add(found)
            self._keys.remove(first[0])
        return self._elements[found if first is None else first[0]]

    def m_clear(self, tx: Tracer) -> None:
        self.change(tx, ordered=False).clear()

    def m_update(self, tx: Tracer, *others: VariableTracker) -> None:
        self.change(tx, ordered=False)
        for other in others:
            for item in merged(tx, other):
                self._add(tx, item)

    def m___init__(self, tx: Tracer, items: VariableTracker | None = None, /) -> None:
        self.change(tx, ordered=False).clear()
        if items is not None:
            self.m_update(tx, items)

    def m_intersection_update(self, tx: Tracer, *others: VariableTracker) -> None:
        self._update_by(tx, "intersection_update", self.arguments(tx, "intersection_update", others))

    def m_difference_update(self, tx: Tracer, *others: VariableTracker) -> None:
        self._update_by(tx, "difference_update", self.arguments(tx, "difference_update", others))

    def m_symmetric_difference_update(self, tx: Tracer, other: VariableTracker, /) -> None:
        self._update_by(tx, "symmetric_difference_update", [argument(tx, "update", other)])

    def hash_key(self, tx: Tracer) -> Any:
        unhashable(tx, self)

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        return tx.constant(self.listing(tx) if self.members(tx) else "set()")

    def reconstruct(self, to: Rebuilder) -> None:
        self.push_elements(to)
        to.remember(self)

    def fill(self, to: Rebuilder, owner: VariableTracker) -> None:
        """Emit code that gives `owner`, a set or an object of a subclass, these elements."""
        to.call_helper(replace_elements, lambda: to.load(owner), lambda: self.push_elements(to))
        to.pop()

    def write_back(self, to: Rebuilder) -> None:
        self.fill(to, self)


class FrozenSetVariable(AbstractSetVariable):
    """A frozenset."""

    __slots__ = ()
    python_type = frozenset

    def is_constant(self) -> bool:
        return self._keys is not None and all(e.is_constant() for e in self._elements.values())

    def as_constant(self, tx: Tracer) -> Any:
        return self.snapshot(tx)

    def m_copy(self, tx: Tracer) -> VariableTracker:
        exact = self.node is None or type(self.node.peek()) is frozenset
        return self if exact else super().m_copy(tx)  # of an object of a subclass

    def hash_key(self, tx: Tracer) -> Any:
        return frozenset(self.members(tx))

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        return tx.constant(f"frozenset({self.listing(tx)})" if self.keys(tx) else "frozenset()")

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(frozenset, lambda: self.push_elements(to))
        to.remember(self)


def _known(keys: Any, *sources: dict[Any, VariableTracker]) -> dict[Any, VariableTracker]:
    """The trackers of keys, of the first source that has each."""
    known: dict[Any, VariableTracker] = {}
    for source in reversed(sources):
        known.update(source)
    return {k: known[k] for k in keys}


def argument(tx: Tracer, method: str, value: VariableTracker) -> Argument:
    """An iterable as a set's method takes it: a set as a set, anything else in its order."""
    found = data(tx, value)
    if isinstance(found, AbstractSetVariable):
        found.read(tx)
        return Argument(found.keys(tx), found._elements)
    elements: dict[Any, VariableTracker] = {}
    for item in abstract.iterate(tx, value):
        key = item.realize(tx).hash_key(tx) if method in _HASHING else key_of(tx, item, "set element")
        elements.setdefault(key, item.realize(tx))
    return Argument(list(elements), elements)
