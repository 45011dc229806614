"""Iterators of builtin types: their state lives in the tracker.

An iterator that existed before the frame has hidden state and isn't modelled. Rebuilding one that was
made in the frame gives a new iterator that yields the rest.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dynacheck.sources import ABSENT, DictAttr, type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.base import CantRebuild, ObservedException, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.methods import BuiltinObject


class IteratorVariable(BuiltinObject):
    """An iterator made in the frame."""

    __slots__ = ()

    def sample(self) -> Any:
        return iter(())

    def tp_iter(self, tx: Tracer) -> VariableTracker:
        return self

    def nb_bool(self, tx: Tracer) -> bool:
        return True

    def hash_key(self, tx: Tracer) -> Any:
        return self

    def advance(self, tx: Tracer, iterator: VariableTracker) -> VariableTracker | None:
        """The next item of an iterator it draws from."""
        return abstract.iternext(tx, iterator)


class IndexIterator(IteratorVariable):
    """Iterates by position until one is out of range: lists, tuples, strings, ranges, both ways."""

    __slots__ = ("index", "kind", "sequence", "step")

    def __init__(self, sequence: VariableTracker, kind: type, start: int = 0, step: int = 1) -> None:
        super().__init__()
        self.sequence: VariableTracker | None = sequence
        self.index = start
        self.step = step
        self.kind = kind

    def get_type(self) -> type:
        return self.kind

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        sequence = self.sequence
        if sequence is None:
            return None
        if not 0 <= self.index < sequence.sq_length(tx).as_constant(tx):
            self.sequence = None
            return None
        item = sequence.mp_subscript(tx, tx.constant(self.index))
        self.index += self.step
        return item

    def m___length_hint__(self, tx: Tracer) -> VariableTracker:
        if self.sequence is None:
            return tx.constant(0)
        length = self.sequence.sq_length(tx).as_constant(tx)
        return tx.constant(max(0, length - self.index if self.step > 0 else self.index + 1))

    def reconstruct(self, to: Rebuilder) -> None:
        sequence = self.sequence
        if sequence is None:
            to.call_helper(spent, lambda: to.load_const(self.kind))
        else:
            helper = iterator_at if self.step > 0 else reversed_at
            to.settle(sequence)
            to.call_helper(helper, lambda: to.load(sequence), lambda: to.load_const(self.index))
        to.remember(self)

    def children(self) -> Sequence[VariableTracker]:
        return () if self.sequence is None else (self.sequence,)


def iterator_at(sequence: Any, index: int) -> Iterator[Any]:
    """An iterator over a sequence that is about to yield the item at `index` (used by rewritten code)."""
    iterator: Any = iter(sequence)
    if index:
        iterator.__setstate__(index)
    return iterator  # type: ignore[no-any-return]


def reversed_at(sequence: Any, index: int) -> Iterator[Any]:
    """A reversed iterator that is about to yield the item at `index` (used by rewritten code)."""
    iterator: Any = reversed(sequence)
    iterator.__setstate__(index)
    return iterator  # type: ignore[no-any-return]


class _Items:
    def __getitem__(self, index: int) -> int:
        raise IndexError

    def __len__(self) -> int:
        return 0


def spent(kind: type) -> Iterator[Any]:
    """An exhausted iterator of a builtin type (used by rewritten code)."""
    samples: tuple[Any, ...] = (
        [], (), "", "\u1234", b"", bytearray(), range(0), range(1 << 70, 1 << 70), _Items(),
    )  # fmt: skip
    made: list[Any] = [iter(s) for s in samples] + [iter(list, []), reversed([]), reversed(_Items())]
    found: Iterator[Any] = {type(iterator): iterator for iterator in made}[kind]
    next(found, None)
    return found


class SequenceProtocolIterator(IteratorVariable):
    """`iter()` of an object that has `__getitem__` only: asks for 0, 1, … until IndexError."""

    __slots__ = ("index", "owner")
    python_type = type(iter(type("_Sequence", (), {"__getitem__": lambda self, i: i})()))

    def __init__(self, owner: VariableTracker) -> None:
        super().__init__()
        self.owner: VariableTracker | None = owner
        self.index = 0

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        if self.owner is None:
            return None
        try:
            item = abstract.getitem(tx, self.owner, tx.constant(self.index))
        except ObservedException as observed:
            if not abstract.raised(observed, IndexError, StopIteration):
                raise
            self.owner = None
            return None
        self.index += 1
        return item

    def reconstruct(self, to: Rebuilder) -> None:
        owner = self.owner
        if owner is None:
            to.call_helper(spent, lambda: to.load_const(self.python_type))
        else:
            to.call_helper(iterator_at, lambda: to.load(owner), lambda: to.load_const(self.index))
        to.remember(self)

    def children(self) -> Sequence[VariableTracker]:
        return () if self.owner is None else (self.owner,)


class NativeIterator(IteratorVariable):
    """Iterates over a Python container of trackers that changes with the traced one (dict, set, deque).

    CPython's own iterator notices changes while iterating.

    Args:
        container: the traced container.
        iterator: a Python iterator that yields keys of `lookup`, or trackers when there is none.
        lookup: from what the iterator yields to the tracker.
        kind: the iterator's exact type.
        again: makes one from the rebuilt container, in rewritten code; without it none is rebuilt, as in torch.
        order: what is in the container now, in order: an iterator is rebuilt only if that didn't change under it.
    """

    __slots__ = ("again", "container", "ended", "iterator", "kind", "lookup", "order", "start", "taken")

    def __init__(
        self,
        container: VariableTracker,
        iterator: Iterator[Any],
        lookup: Callable[[Any], VariableTracker],
        kind: type,
        again: Callable[[Any], Iterator[Any]] | None = None,
        order: Callable[[], list[Any]] = list,
    ) -> None:
        super().__init__()
        self.container = container
        self.iterator = iterator
        self.lookup = lookup
        self.kind = kind
        self.again = again
        self.order = order
        self.start = order()
        self.taken = 0
        self.ended = False

    def get_type(self) -> type:
        return self.kind

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        self.order()  # a picture of another object's data is brought up to date
        try:
            found = next(self.iterator)
        except StopIteration:
            self.ended = True
            return None
        except RuntimeError as error:
            tx.raise_(RuntimeError, *error.args)
        self.taken += 1
        return self.lookup(found)

    def reconstruct(self, to: Rebuilder) -> None:
        if self.again is None:
            raise CantRebuild(f"a {self.kind.__name__}")
        if not self.ended and self.order() != self.start:
            raise CantRebuild(f"an iterator over a {self.container.describe()} that changed")
        to.settle(getattr(self.container, "keeper", self.container))
        taken = -1 if self.ended else self.taken
        loads = (
            lambda: to.load_const(self.again),
            lambda: to.load(self.container),
            lambda: to.load_const(taken),
        )
        to.call_helper(taken_from, *loads)
        to.remember(self)

    def children(self) -> Sequence[VariableTracker]:
        return (self.container,)


def taken_from(again: Callable[[Any], Iterator[Any]], container: Any, taken: int) -> Iterator[Any]:
    """An iterator that has yielded `taken` items, all of them for -1 (used by rewritten code)."""
    iterator = again(container)
    for _ in iterator if taken < 0 else range(taken):
        if taken > 0:
            next(iterator)
    return iterator


class CallableIterator(IteratorVariable):
    """`iter(callable, sentinel)`."""

    __slots__ = ("function", "sentinel")
    python_type = type(iter(int, 1))

    def __init__(self, function: VariableTracker, sentinel: VariableTracker) -> None:
        super().__init__()
        self.function: VariableTracker | None = function
        self.sentinel = sentinel

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        if self.function is None:
            return None
        item = tx.call(self.function, [])
        if abstract.equal(tx, item, self.sentinel):
            self.function = None
            return None
        return item

    def reconstruct(self, to: Rebuilder) -> None:
        function = self.function
        if function is None:
            to.call_helper(spent, lambda: to.load_const(self.python_type))
        else:
            to.call_helper(iter, lambda: to.load(function), lambda: to.load(self.sentinel))
        to.remember(self)

    def children(self) -> Sequence[VariableTracker]:
        return (self.sentinel,) if self.function is None else (self.function, self.sentinel)


class DrawingIterator(IteratorVariable):
    """An iterator that draws from others: rebuilt by calling its type on them again.

    Invariant: `sources` are iterators (already passed through `iter()`).
    """

    __slots__ = ("sources",)

    def __init__(self, sources: Sequence[VariableTracker]) -> None:
        super().__init__()
        self.sources = list(sources)

    def children(self) -> Sequence[VariableTracker]:
        return self.sources

    def load_arguments(self, to: Rebuilder) -> list[Callable[[], None]]:
        """What pushes the arguments of the type."""
        return [loader(to, s) for s in self.sources]

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(self.get_type(), *self.load_arguments(to))
        to.remember(self)


def loader(to: Rebuilder, value: VariableTracker) -> Callable[[], None]:
    return lambda: to.load(value)


class ZipIterator(DrawingIterator):
    """`zip(*iterables, strict=...)`."""

    __slots__ = ("strict",)
    python_type = zip

    def __init__(self, sources: Sequence[VariableTracker], strict: bool = False) -> None:
        super().__init__(sources)
        self.strict = strict

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        items: list[VariableTracker] = []
        for i, source in enumerate(self.sources):
            item = self.advance(tx, source)
            if item is None:
                if self.strict:
                    self._check(tx, i)
                return None
            items.append(item)
        return tx.tuple_of(items) if items else None

    def _check(self, tx: Tracer, spent: int) -> None:
        """The source at this place is exhausted: so must be the others."""
        if spent:
            before = "1" if spent == 1 else f"1-{spent}"
            tx.raise_(
                ValueError, f"zip() argument {spent + 1} is shorter than argument{'s'[: spent > 1]} {before}"
            )
        for i, source in enumerate(self.sources[1:], 1):
            if self.advance(tx, source) is not None:
                before = "1" if i == 1 else f"1-{i}"
                tx.raise_(
                    ValueError, f"zip() argument {i + 1} is longer than argument{'s'[: i > 1]} {before}"
                )

    def reconstruct(self, to: Rebuilder) -> None:
        if not self.strict:
            super().reconstruct(to)
            return
        to.call_helper(_zip_strict, *self.load_arguments(to))
        to.remember(self)


def _zip_strict(*iterables: Any) -> Iterator[Any]:
    return zip(*iterables, strict=True)


class EnumerateIterator(DrawingIterator):
    """`enumerate(iterable, start)`."""

    __slots__ = ("count",)
    python_type = enumerate

    def __init__(self, source: VariableTracker, count: VariableTracker) -> None:
        super().__init__([source])
        self.count = count

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        item = self.advance(tx, self.sources[0])
        if item is None:
            return None
        pair = tx.tuple_of([self.count, item])
        self.count = abstract.binary(tx, "+", self.count, tx.constant(1))
        return pair

    def reconstruct(self, to: Rebuilder) -> None:
        rest = self.rest()
        if rest is None:
            raise CantRebuild("an enumerate")

        def items() -> None:
            for item in rest:
                to.load(item)
            to.build_tuple(len(rest))

        to.call_helper(enumerate, items, lambda: to.load(self.count))
        to.remember(self)

    def rest(self) -> list[VariableTracker] | None:
        """What is left of a module's children, which torch reads to their end too; None for others: they may change."""
        source = self.sources[0]
        node = source.container.node if isinstance(source, NativeIterator) else None
        if not isinstance(source, NativeIterator) or node is None or node.accessor != DictAttr("_modules"):
            return None
        return [source.lookup(found) for found in copy.copy(source.iterator)]

    def children(self) -> Sequence[VariableTracker]:
        return (*self.sources, self.count)


class MapIterator(DrawingIterator):
    """`map(function, *iterables)`."""

    __slots__ = ("function",)
    python_type = map

    def __init__(self, function: VariableTracker, sources: Sequence[VariableTracker]) -> None:
        super().__init__(sources)
        self.function = function

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        args: list[VariableTracker] = []
        for source in self.sources:
            item = self.advance(tx, source)
            if item is None:
                return None
            args.append(item)
        return tx.call(self.function, args)

    def load_arguments(self, to: Rebuilder) -> list[Callable[[], None]]:
        return [lambda: to.load(self.function), *super().load_arguments(to)]

    def children(self) -> Sequence[VariableTracker]:
        return (self.function, *self.sources)


class FilterIterator(DrawingIterator):
    """`filter(function, iterable)` and `itertools.filterfalse`."""

    __slots__ = ("function", "wanted")

    def __init__(self, function: VariableTracker, source: VariableTracker, wanted: bool = True) -> None:
        super().__init__([source])
        self.function = function
        self.wanted = wanted

    def get_type(self) -> type:
        return filter if self.wanted else itertools.filterfalse

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        function = self.function.realize(tx)
        plain = abstract.is_none(tx, function) or abstract.python_object(function) is bool
        while (item := self.advance(tx, self.sources[0])) is not None:
            verdict = item if plain else tx.call(function, [item])
            if abstract.is_true(tx, verdict) is self.wanted:
                return item
        return None

    def load_arguments(self, to: Rebuilder) -> list[Callable[[], None]]:
        return [lambda: to.load(self.function), *super().load_arguments(to)]

    def children(self) -> Sequence[VariableTracker]:
        return (self.function, *self.sources)


class ReversedIterator(IndexIterator):
    """`reversed()` of an object with `__len__` and `__getitem__`."""

    __slots__ = ()

    def __init__(self, sequence: VariableTracker, length: int) -> None:
        super().__init__(sequence, reversed, length - 1, -1)

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        if self.sequence is None or self.index < 0:
            self.sequence = None
            return None
        try:
            item = abstract.getitem(tx, self.sequence, tx.constant(self.index))
        except ObservedException as observed:
            if not abstract.raised(observed, IndexError, StopIteration):
                raise
            self.sequence = None
            return None
        self.index -= 1
        return item


def is_iterator(value: VariableTracker) -> bool:
    """Whether a value's type has `__next__`."""
    return type_lookup(value.get_type(), "__next__") is not ABSENT
