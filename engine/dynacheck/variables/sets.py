"""set and frozenset."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final

from dynacheck.guards.held import is_constant as is_plain
from dynacheck.guards.objects import SetIs
from dynacheck.sources import Node
from dynacheck.variables import abstract
from dynacheck.variables.base import NOT_IMPLEMENTED, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.coerce import data, natively, text
from dynacheck.variables.iterators import NativeIterator
from dynacheck.variables.methods import BuiltinObject, unhashable
from dynacheck.variables.results import python_value

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


class AbstractSetVariable(BuiltinObject):
    """A set of trackers.

    Invariant: `keys` is a Python set of the elements' hash keys, which gives the order; `elements` maps them
    to trackers. A sourced one is guarded by its elements (`SetIs`) once read.
    """

    __slots__ = ("_elements", "_keys")
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

    @classmethod
    def of(cls, tx: Tracer, items: Iterable[VariableTracker]) -> Any:
        """A new set of these items; of equal ones the first stays."""
        elements: dict[Any, VariableTracker] = {}
        keys: set[Any] = set()
        for item in items:
            found = item.realize(tx).hash_key(tx)
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
        for element in value:
            if is_plain(element) or isinstance(element, enum.Enum):
                tracker = tx.constant(element)
            else:
                tracker = tx.object(element)
            found = tracker.hash_key(tx)
            self._elements[found] = tracker
            keys.append(found)
        tx.guard(self.node, SetIs(value))
        self._keys = self.python_type(keys)

    def keys(self, tx: Tracer) -> Any:
        """The Python set of hash keys."""
        self.read(tx)
        return self._keys

    def items(self, tx: Tracer) -> list[VariableTracker]:
        """The elements in the set's order."""
        return [self._elements[k] for k in self.keys(tx)]

    def new(self, keys: Any, *others: AbstractSetVariable) -> VariableTracker:
        """A new set of this type with these keys, whose trackers this set or the others know."""
        elements: dict[Any, VariableTracker] = {}
        for one in (*reversed(others), self):
            elements.update(one._elements)
        return type(self)(self.python_type(keys), {k: elements[k] for k in keys})

    def other(self, tx: Tracer, value: VariableTracker) -> AbstractSetVariable:
        """An argument of a method (any iterable) as a set."""
        found = data(tx, value)
        if isinstance(found, AbstractSetVariable):
            found.read(tx)
            return found
        made: AbstractSetVariable = SetVariable.of(tx, abstract.iterate(tx, value))
        return made

    def children(self) -> Sequence[VariableTracker]:
        return tuple(self._elements.values())

    def sq_length(self, tx: Tracer) -> VariableTracker:
        return tx.constant(len(self.keys(tx)))

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker:
        item = data(tx, item)
        keys = self.keys(tx)
        if isinstance(item, SetVariable):  # CPython looks for an equal frozenset
            return tx.constant(frozenset(item.keys(tx)) in keys)
        return tx.constant(item.hash_key(tx) in keys)

    def tp_iter(self, tx: Tracer) -> VariableTracker:
        return NativeIterator(self, iter(self.keys(tx)), self._elements.__getitem__, type(iter(set())))

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        one, other = data(tx, left), data(tx, right)
        if op not in _ALGEBRA or not isinstance(one, AbstractSetVariable):
            return NOT_IMPLEMENTED
        if not isinstance(other, AbstractSetVariable):
            return NOT_IMPLEMENTED
        return one.new(_ALGEBRA[op](one.keys(tx), other.keys(tx)), other)

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        other = data(tx, other)
        if not isinstance(other, AbstractSetVariable):
            return NOT_IMPLEMENTED
        return tx.constant(_COMPARE[op](self.keys(tx), other.keys(tx)))

    def _combined(self, tx: Tracer, op: str, others: Sequence[VariableTracker]) -> VariableTracker:
        keys, sets = self.keys(tx), [self.other(tx, o) for o in others]
        found = set(keys)
        for one in sets:
            found = _ALGEBRA[op](found, one.keys(tx))
        return self.new(found, *sets)

    def m_union(self, tx: Tracer, *others: VariableTracker) -> VariableTracker:
        return self._combined(tx, "|", others)

    def m_intersection(self, tx: Tracer, *others: VariableTracker) -> VariableTracker:
        return self._combined(tx, "&", others)

    def m_difference(self, tx: Tracer, *others: VariableTracker) -> VariableTracker:
        return self._combined(tx, "-", others)

    def m_symmetric_difference(self, tx: Tracer, other: VariableTracker, /) -> VariableTracker:
        return self._combined(tx, "^", [other])

    def m_isdisjoint(self, tx: Tracer, other: VariableTracker, /) -> VariableTracker:
        return tx.constant(self.keys(tx).isdisjoint(self.other(tx, other).keys(tx)))

    def m_issubset(self, tx: Tracer, other: VariableTracker, /) -> VariableTracker:
        return tx.constant(self.keys(tx) <= self.other(tx, other).keys(tx))

    def m_issuperset(self, tx: Tracer, other: VariableTracker, /) -> VariableTracker:
        return tx.constant(self.keys(tx) >= self.other(tx, other).keys(tx))

    def m_copy(self, tx: Tracer) -> VariableTracker:
        return self.new(self.keys(tx).copy())

    def snapshot(self, tx: Tracer) -> Any:
        """A Python copy, when all elements are constants."""
        keys = self.keys(tx)
        return self.python_type(python_value(tx, self._elements[k]) for k in keys)

    def as_proxy(self, tx: Tracer) -> Any:
        keys = self.keys(tx)
        return self.python_type(self._elements[k].as_proxy(tx) for k in keys)

    as_meta = as_proxy

    def listing(self, tx: Tracer) -> str:
        """The elements between braces."""
        keys = self.keys(tx)
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

    def change(self, tx: Tracer) -> Any:
        """The Python set of hash keys, about to be changed."""
        keys = self.keys(tx)
        self.changing(tx)
        return keys

    def _add(self, tx: Tracer, item: VariableTracker) -> None:
        item = item.realize(tx)
        found = item.hash_key(tx)
        keys = self.change(tx)
        if found not in keys:
            keys.add(found)
            self._elements[found] = item

    def _become(self, tx: Tracer, keys: Any, *others: AbstractSetVariable) -> None:
        mine = self.change(tx)
        known: dict[Any, VariableTracker] = {}
        for one in (*others, self):
            known.update(one._elements)
        mine.intersection_update(keys)
        mine.update(keys)
        self._elements = {k: known[k] for k in mine}

    def nb_inplace(self, tx: Tracer, op: str, right: VariableTracker) -> VariableTracker | object:
        other = data(tx, right)
        if op not in _ALGEBRA or not isinstance(other, AbstractSetVariable):
            return NOT_IMPLEMENTED
        self._become(tx, _ALGEBRA[op](self.keys(tx), other.keys(tx)), other)
        return self

    def m_add(self, tx: Tracer, item: VariableTracker, /) -> None:
        self._add(tx, item)

    def m_discard(self, tx: Tracer, item: VariableTracker, /) -> None:
        self.change(tx).discard(self._key(tx, item))

    def m_remove(self, tx: Tracer, item: VariableTracker, /) -> None:
        found = self._key(tx, item)
        if found not in self.keys(tx):
            tx.raise_(KeyError, item.realize(tx))
        self.change(tx).remove(found)

    def _key(self, tx: Tracer, item: VariableTracker) -> Any:
        item = data(tx, item)
        return frozenset(item.keys(tx)) if isinstance(item, SetVariable) else item.hash_key(tx)

    def m_pop(self, tx: Tracer) -> VariableTracker:
        found = natively(tx, self.change(tx).pop)
        return self._elements[found]

    def m_clear(self, tx: Tracer) -> None:
        self.change(tx).clear()

    def m_update(self, tx: Tracer, *others: VariableTracker) -> None:
        self.change(tx)
        for other in others:
            for item in abstract.iterate(tx, other):
                self._add(tx, item)

    def m___init__(self, tx: Tracer, items: VariableTracker | None = None, /) -> None:
        self.change(tx).clear()
        if items is not None:
            self.m_update(tx, items)

    def m_intersection_update(self, tx: Tracer, *others: VariableTracker) -> None:
        self._update_by(tx, "&", others)

    def m_difference_update(self, tx: Tracer, *others: VariableTracker) -> None:
        self._update_by(tx, "-", others)

    def m_symmetric_difference_update(self, tx: Tracer, other: VariableTracker, /) -> None:
        self._update_by(tx, "^", [other])

    def _update_by(self, tx: Tracer, op: str, others: Sequence[VariableTracker]) -> None:
        for other in others:
            one = self.other(tx, other)
            self._become(tx, _ALGEBRA[op](self.keys(tx), one.keys(tx)), one)

    def hash_key(self, tx: Tracer) -> Any:
        unhashable(tx, self)

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        return tx.constant(self.listing(tx) if self.keys(tx) else "set()")

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
        return self

    def hash_key(self, tx: Tracer) -> Any:
        return frozenset(self.keys(tx))

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        return tx.constant(f"frozenset({self.listing(tx)})" if self.keys(tx) else "frozenset()")

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(frozenset, lambda: self.push_elements(to))
        to.remember(self)


def replace_elements(target: set[Any], elements: set[Any]) -> None:
    """Give a set new contents, by set's own rule (used by rewritten code)."""
    set.intersection_update(target, elements)
    set.update(target, elements)
