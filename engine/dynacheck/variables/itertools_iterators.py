"""Iterators of the itertools module made in the frame."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from dynacheck.sources import Node
from dynacheck.variables import abstract
from dynacheck.variables.base import CantRebuild, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.iterators import IteratorVariable, loader


class StepsIterator(IteratorVariable):
    """An iterator written as a Python generator of trackers: `itertools.islice`, `groupby`, ...

    Args:
        kind: its exact type.
        steps: yields the items; draws from other iterators through the tracer.
        arguments: what it draws from.
        again: it is made again by calling its type with the arguments, if it has not begun; others aren't, as in torch.
    """

    __slots__ = ("again", "arguments", "kind", "steps")

    def __init__(
        self,
        kind: Any,
        steps: Iterator[VariableTracker],
        arguments: Sequence[VariableTracker],
        again: bool = False,
    ) -> None:
        super().__init__()
        self.kind = kind
        self.steps = steps
        self.arguments = list(arguments)
        self.again = again

    def get_type(self) -> type:
        return self.kind  # type: ignore[no-any-return]

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        self.again = False
        return next(self.steps, None)

    def children(self) -> Sequence[VariableTracker]:
        return self.arguments

    def reconstruct(self, to: Rebuilder) -> None:
        if not self.again:
            raise CantRebuild(f"an itertools.{self.kind.__name__}")
        to.call_helper(self.kind, *[loader(to, a) for a in self.arguments])
        to.remember(self)


class CountIterator(IteratorVariable):
    """`itertools.count`."""

    __slots__ = ("step", "taken", "value")
    python_type = itertools.count

    def __init__(self, value: VariableTracker, step: VariableTracker, node: Node | None = None) -> None:
        super().__init__(node)
        self.value = value
        self.step = step
        self.taken = 0

    def tp_iternext(self, tx: Tracer) -> VariableTracker:
        if self.node is not None:
            tx.mutated(self)
        value = self.value
        self.value = abstract.binary(tx, "+", value, self.step)
        self.taken += 1
        return value

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(itertools.count, loader(to, self.value), loader(to, self.step))
        to.remember(self)

    def write_back(self, to: Rebuilder) -> None:
        to.call_helper(take, lambda: to.load(self), lambda: to.load_const(self.taken))
        to.pop()

    def children(self) -> Sequence[VariableTracker]:
        return (self.value, self.step)


def take(iterator: Iterator[Any], count: int) -> None:
    """Take items from an iterator (used by rewritten code)."""
    for _ in range(count):
        next(iterator, None)


class RepeatIterator(IteratorVariable):
    """`itertools.repeat`; endless without `left`."""

    __slots__ = ("item", "left")
    python_type = itertools.repeat

    def __init__(self, item: VariableTracker, left: int | None) -> None:
        super().__init__()
        self.item = item
        self.left = left

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        if self.left is not None:
            if not self.left:
                return None
            self.left -= 1
        return self.item

    def m___length_hint__(self, tx: Tracer) -> VariableTracker:
        if self.left is None:
            tx.raise_(TypeError, "len() of unsized object")
        return tx.constant(self.left)

    def reconstruct(self, to: Rebuilder) -> None:
        left = [] if self.left is None else [lambda: to.load_const(self.left)]
        to.call_helper(itertools.repeat, loader(to, self.item), *left)
        to.remember(self)

    def children(self) -> Sequence[VariableTracker]:
        return (self.item,)


class TeeTrunk(IteratorVariable):
    """What the iterators of one `itertools.tee` share: what they have drawn, and where from."""

    __slots__ = ("drawing", "items", "source")
    python_type: ClassVar[type] = type(itertools.tee([])[0])

    def __init__(self, source: VariableTracker) -> None:
        super().__init__()
        self.source = source
        self.items: list[VariableTracker] = []
        self.drawing = False

    def item(self, tx: Tracer, index: int) -> VariableTracker | None:
        """The item at an index, of those that were drawn or the next."""
        if index < len(self.items):
            return self.items[index]
        if self.drawing:
            tx.raise_(RuntimeError, "cannot re-enter the tee iterator")
        self.drawing = True
        try:
            item = abstract.iternext(tx, self.source)
        finally:
            self.drawing = False
        if item is not None:
            self.items.append(item)
        return item

    def children(self) -> Sequence[VariableTracker]:
        return (*self.items, self.source)


class TeeIterator(IteratorVariable):
    """One of the iterators of `itertools.tee`."""

    __slots__ = ("index", "trunk")
    python_type: ClassVar[type] = TeeTrunk.python_type

    def __init__(self, trunk: TeeTrunk, index: int = 0) -> None:
        super().__init__()
        self.trunk = trunk
        self.index = index

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        item = self.trunk.item(tx, self.index)
        self.index += item is not None
        return item

    def m___copy__(self, tx: Tracer) -> VariableTracker:
        return TeeIterator(self.trunk, self.index)

    def children(self) -> Sequence[VariableTracker]:
        return (self.trunk,)
