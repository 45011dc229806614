"""Iterators that a graph break carries over: what goes on behind it reads where they are, and puts them further on.

Other iterators that existed before the frame aren't modelled, as with torch: to assume where they are would make an
entry for each place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from dynacheck.guards import TypeIs
from dynacheck.guards.objects import ValueIs
from dynacheck.sources import Converted, Item, Local, Node
from dynacheck.variables import abstract
from dynacheck.variables.base import LazyVariable, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.iterators import IndexIterator

CARRIED: Final = "iterators carried over the break before the frame"
"""Key of a tracer's state: names of the arguments that hold them."""

_SAMPLES: Final[tuple[Any, ...]] = ([], (), "", "\u1234", b"", range(0))
FORWARD: Final = tuple({type(iter(sample)): None for sample in _SAMPLES})
BACKWARD: Final[type] = type(reversed([]))


def _came_over(tx: Tracer, node: Node) -> bool:
    return isinstance(node.accessor, Local) and node.accessor.name in tx.state.get(CARRIED, ())


def is_carried(tx: Tracer, value: VariableTracker) -> bool:
    """Whether a value is an iterator whose place can be read behind a break."""
    if isinstance(value, LazyVariable):
        if value.real is None:
            return _came_over(tx, value.node)
        value = value.real
    return isinstance(value, IndexIterator) and value.kind in (*FORWARD, BACKWARD)


def place_of(iterator: Any) -> tuple[Any, int]:
    """What an iterator is over, and the index of its next item; None for what an exhausted one was over (used by
    guards)."""
    _, (sequence,), *index = iterator.__reduce__()
    if isinstance(sequence, range):  # releases differ in whether what is over is left out
        return sequence[index[0] or 0 :] if index else sequence, 0
    return (sequence, index[0]) if index else (None, 0)


def move(iterator: Iterator[Any], index: int, taken: int) -> None:
    """Put an iterator further on (used by rewritten code).

    Args:
        iterator: what to move.
        index: of its next item; -2 if it is exhausted.
        taken: how many items it has yielded in the frame.
    """
    plain: Any = iterator
    if type(iterator) is type(iter(range(0))):
        for _ in range(taken):
            next(iterator)
    elif index != -2:
        plain.__setstate__(index)
    else:
        plain.__setstate__(-1 if type(iterator) is BACKWARD else 1 << 62)
        next(iterator, None)


class CarriedIterator(IndexIterator):
    """An iterator over a list, tuple, string or range that existed before the frame, at a place that is guarded."""

    __slots__ = ("taken",)

    def __init__(self, node: Node, sequence: VariableTracker, start: int, kind: type, spent: bool) -> None:
        super().__init__(sequence, kind, start, -1 if kind is BACKWARD else 1)
        self.node = node
        self.taken = 0
        if spent:
            self.sequence = None

    @staticmethod
    def wrap(tx: Tracer, node: Node, value: Any) -> VariableTracker | None:
        """The tracker of an iterator that a break before the frame has carried over; None for any other."""
        if not _came_over(tx, node):
            return None
        tx.guard(node, TypeIs(type(value)))
        place = node.child(Converted(place_of, "___place_of"))
        index = place.child(Item(1))
        start = index.peek()
        tx.guard(index, ValueIs(start))
        sequence = tx.wrap(place.child(Item(0))).realize(tx)
        return CarriedIterator(node, sequence, start, type(value), abstract.is_none(tx, sequence))

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        if self.sequence is not None:
            tx.mutated(self)
        item = super().tp_iternext(tx)
        self.taken += item is not None
        return item

    def write_back(self, to: Rebuilder) -> None:
        index = -2
        if self.sequence is not None:
            to.settle(self.sequence)
            index = self.index
        loads = (lambda: to.load(self), lambda: to.load_const(index), lambda: to.load_const(self.taken))
        to.call_helper(move, *loads)
        to.pop()

    def children(self) -> Sequence[VariableTracker]:
        return ()
