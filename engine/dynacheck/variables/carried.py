"""Iterators whose place is read where a frame begins: what goes on there puts them further on.

Those over tuples and ranges and those that count are assumed to be where they are, wherever they were made: as with
torch, each place has an entry. Others are only if a break before the frame has carried them over.
"""

from __future__ import annotations

import ast
import gc
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import torch

from dynacheck.guards import TypeIs
from dynacheck.guards.objects import ValueIs
from dynacheck.sources import Converted, Item, Node
from dynacheck.variables import abstract
from dynacheck.variables.base import Rebuilder, Tracer, VariableTracker
from dynacheck.variables.iterators import EnumerateIterator, IndexIterator
from dynacheck.variables.itertools_iterators import CountIterator, take
from dynacheck.variables.walk import reachable

CARRIED: Final = "iterators carried over the break before the frame"
"""Key of a tracer's state: the names that lead to them."""

_SAMPLES: Final[tuple[Any, ...]] = ([], (), "", "\u1234", b"", range(0))
FORWARD: Final = tuple({type(iter(sample)): None for sample in _SAMPLES})
BACKWARD: Final[type] = type(reversed([]))
_RANGE: Final[type] = type(iter(range(0)))
_ANYWHERE: Final = (type(iter(())), _RANGE)
_LEAVES: Final = (int, float, str, bytes, bool, complex, type(None), torch.Tensor, torch.nn.Parameter)


def _name(node: Node) -> str:
    """The name in the frame that leads to a value."""
    while node.parent is not None:
        node = node.parent
    return getattr(node.accessor, "name", "")


def _came_over(tx: Tracer, node: Node) -> bool:
    return _name(node) in tx.state.get(CARRIED, ())


def holds_carried(tx: Tracer, values: Iterable[VariableTracker]) -> bool:
    """Whether values are, or hold, iterators whose place can be read behind a break."""
    for value in reachable(values):
        if isinstance(value, IndexIterator) and value.kind in (*FORWARD, BACKWARD):
            return True
        if isinstance(value, EnumerateIterator) and value.rest() is not None:
            return True
        if value.node is not None and value.get_type() not in _LEAVES and _came_over(tx, value.node):
            return True
    return False


def names_written(tx: Tracer, effects: Iterable[Any]) -> Iterator[str]:
    """The names that lead to objects from before in which iterators were put."""
    for item in effects:
        if holds_carried(tx, item.children()):
            if isinstance(item, VariableTracker):
                if item.node is not None:
                    yield _name(item.node)
            else:
                yield from getattr(item, "names", ())


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
    if type(iterator) is _RANGE:
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
        """The tracker of an iterator whose place is read; None for any other."""
        if type(value) not in _ANYWHERE and not _came_over(tx, node):
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


def enumerated_at(iterator: Any) -> tuple[Any, int, int] | None:
    """Where an enumerate is that rewritten code made over a tuple, and its count; None for others (used by guards)."""
    inner, count = iterator.__reduce__()[1]
    return (*place_of(inner), count) if type(inner) in _ANYWHERE else None


class CarriedEnumerate(EnumerateIterator):
    """An enumerate that a break before the frame has carried over."""

    __slots__ = ("taken",)

    def __init__(self, node: Node, source: VariableTracker, count: VariableTracker) -> None:
        super().__init__(source, count)
        self.node = node
        self.taken = 0

    @staticmethod
    def wrap(tx: Tracer, node: Node, value: Any) -> VariableTracker | None:
        """The tracker of one; None for any other enumerate."""
        place = node.child(Converted(enumerated_at, "___enumerated_at"))
        found = enumerated_at(value)
        if found is None or not _came_over(tx, node):
            return None
        tx.guard(node, TypeIs(enumerate))
        for i in (1, 2):
            tx.guard(place.child(Item(i)), ValueIs(found[i]))
        items = tx.wrap(place.child(Item(0))).realize(tx)
        rest = tx.tuple_of([] if abstract.is_none(tx, items) else abstract.iterate(tx, items)[found[1] :])
        return CarriedEnumerate(node, IndexIterator(rest, type(iter(()))), tx.constant(found[2]))

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        tx.mutated(self)
        item = super().tp_iternext(tx)
        self.taken += 1
        return item

    def write_back(self, to: Rebuilder) -> None:
        to.call_helper(take, lambda: to.load(self), lambda: to.load_const(self.taken))
        to.pop()


def count_at(counting: Any) -> tuple[Any, ...] | None:
    """The next number of an `itertools.count` and its step; None if they aren't plain numbers (used by guards)."""
    if not all(type(held) in (int, float) for held in gc.get_referents(counting)):
        return None
    try:
        found = ast.literal_eval(repr(counting)[len("count") :])
    except ValueError:  # nan, inf
        return None
    return found if isinstance(found, tuple) else (found, 1)


def wrap_count(tx: Tracer, node: Node, value: itertools.count[Any]) -> VariableTracker | None:
    """The tracker of one that counts with plain numbers; None for any other."""
    place = node.child(Converted(count_at, "___count_at"))
    found = count_at(value)
    if found is None:
        return None
    tx.guard(node, TypeIs(itertools.count))
    for i, number in enumerate(found):
        tx.guard(place.child(Item(i)), ValueIs(number))
    start, step = map(tx.constant, found)
    return CountIterator(start, step, node)
