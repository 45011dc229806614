"""collections.deque."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from dynacheck.guards.objects import LengthIs, ValueIs
from dynacheck.sources import CAttr, Node
from dynacheck.variables import abstract
from dynacheck.variables.base import NOT_IMPLEMENTED, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.coerce import integer, is_integer, natively, text
from dynacheck.variables.iterators import NativeIterator
from dynacheck.variables.replay import refill, replace_deque
from dynacheck.variables.sequences import ListVariable, SequenceVariable


class DequeVariable(SequenceVariable):
    """A deque, as a Python deque of trackers. Invariant: a sourced one is length-guarded before it is read."""

    __slots__ = ("limit",)
    python_type = deque

    def __init__(
        self, items: Iterable[VariableTracker] | None, limit: int | None = None, node: Node | None = None
    ) -> None:
        super().__init__(None, node)
        self.limit = limit
        if items is not None:
            self._items = deque(items, limit)

    def items(self, tx: Tracer) -> Any:
        if self._items is None:
            assert self.node is not None
            node, size = self.node, deque.__len__(self.node.peek())
            tx.guard(node, LengthIs(size))
            tx.guard(node.child(CAttr("maxlen")), ValueIs(self.limit))
            self._items = deque((tx.wrap(node.item(i)) for i in range(size)), self.limit)
        return self._items

    def comparable(self, other: VariableTracker) -> bool:
        return isinstance(other, DequeVariable)

    def like(self, items: Iterable[VariableTracker]) -> VariableTracker:
        return DequeVariable(items, self.limit)

    def change(self, tx: Tracer) -> Any:
        """The items, about to be changed."""
        items = self.items(tx)
        self.changing(tx)
        return items

    def nb_inplace(self, tx: Tracer, op: str, right: VariableTracker) -> VariableTracker | object:
        if op == "+":
            self.m_extend(tx, right)
            return self
        if op == "*" and is_integer(tx, right):
            items = self.change(tx)
            items *= integer(tx, right)
            return self
        return NOT_IMPLEMENTED

    def mp_subscript(self, tx: Tracer, key: VariableTracker) -> VariableTracker:
        return self.items(tx)[self.checked(tx, key)]  # type: ignore[no-any-return]

    def checked(self, tx: Tracer, key: VariableTracker) -> int:
        """A key as an index in range."""
        key = key.realize(tx)
        if not is_integer(tx, key):
            tx.raise_(TypeError, f"sequence index must be integer, not '{abstract.name_of(key)}'")
        index = integer(tx, key)
        if not -len(self.items(tx)) <= index < len(self.items(tx)):
            tx.raise_(IndexError, "deque index out of range")
        return index

    def mp_ass_subscript(self, tx: Tracer, key: VariableTracker, value: VariableTracker | None) -> None:
        index = self.checked(tx, key)
        items = self.change(tx)
        if value is None:
            del items[index]
        else:
            items[index] = value

    def tp_iter(self, tx: Tracer) -> VariableTracker:
        kind: type = type(iter(deque()))
        return NativeIterator(
            self, iter(self.items(tx)), _same, kind, deque.__iter__, lambda: list(self.items(tx))
        )

    def m___reversed__(self, tx: Tracer) -> VariableTracker:
        kind: type = type(reversed(deque()))
        items = self.items(tx)
        return NativeIterator(
            self, reversed(items), _same, kind, deque.__reversed__, lambda: list(self.items(tx))
        )

    def a_maxlen(self, tx: Tracer) -> VariableTracker:
        if self.node is not None:
            return tx.wrap(self.node.child(CAttr("maxlen")))
        return tx.constant(self.limit)

    def m_append(self, tx: Tracer, item: VariableTracker, /) -> None:
        self.change(tx).append(item)

    def m_appendleft(self, tx: Tracer, item: VariableTracker, /) -> None:
        self.change(tx).appendleft(item)

    def m_clear(self, tx: Tracer) -> None:
        self.change(tx).clear()

    def m_copy(self, tx: Tracer) -> VariableTracker:
        return DequeVariable(self.items(tx), self.limit)

    m___copy__ = m_copy

    def m_extend(self, tx: Tracer, values: VariableTracker, /) -> None:
        new = abstract.iterate(tx, values)
        self.change(tx).extend(new)

    def m_extendleft(self, tx: Tracer, values: VariableTracker, /) -> None:
        new = abstract.iterate(tx, values)
        self.change(tx).extendleft(new)

    def m_insert(self, tx: Tracer, index: VariableTracker, item: VariableTracker, /) -> None:
        natively(tx, self.change(tx).insert, integer(tx, index), item)

    def m_pop(self, tx: Tracer) -> VariableTracker:
        item: VariableTracker = natively(tx, self.change(tx).pop)
        return item

    def m_popleft(self, tx: Tracer) -> VariableTracker:
        item: VariableTracker = natively(tx, self.change(tx).popleft)
        return item

    def _equal_to(self, tx: Tracer, item: VariableTracker, places: range | None = None) -> Iterator[int]:
        """Where equal items are; comparing must not change the deque."""
        items = self.items(tx)
        state = iter(items)
        for place in range(len(items)) if places is None else places:
            if abstract.equal(tx, items[place], item):
                yield place
            natively(tx, next, state, None)

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker:
        return tx.constant(next(self._equal_to(tx, item), None) is not None)

    def m_count(self, tx: Tracer, item: VariableTracker, /) -> VariableTracker:
        return tx.constant(sum(1 for _ in self._equal_to(tx, item)))

    def place_of(self, tx: Tracer, item: VariableTracker, places: range) -> int | None:
        return next(self._equal_to(tx, item, places), None)

    def m_remove(self, tx: Tracer, item: VariableTracker, /) -> None:
        items = self.items(tx)
        state = iter(items)
        for i, have in enumerate(list(items)):
            found = abstract.equal(tx, have, item)
            try:
                next(state)
            except RuntimeError:
                tx.raise_(IndexError, "deque mutated during iteration")
            if found:
                del self.change(tx)[i]
                return
        tx.raise_(ValueError, f"{text(tx, item)} is not in deque")

    def m_reverse(self, tx: Tracer) -> None:
        self.change(tx).reverse()

    def hash_key(self, tx: Tracer) -> Any:
        tx.raise_(TypeError, "unhashable type: 'collections.deque'")

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        shown = text(tx, ListVariable(self.items(tx)))
        return tx.constant(
            f"deque({shown})" if self.limit is None else f"deque({shown}, maxlen={self.limit})"
        )

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(deque, lambda: to.build_tuple(0), lambda: to.load_const(self.limit))
        to.remember(self)
        self.fill(to, self)

    def fill(self, to: Rebuilder, owner: VariableTracker) -> None:
        """Emit code that gives `owner` these items."""
        refill(to, replace_deque, owner, self._items or ())

    def write_back(self, to: Rebuilder) -> None:
        self.fill(to, self)


def _same(item: VariableTracker) -> VariableTracker:
    return item
