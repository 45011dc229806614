"""The itertools module."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

from dynacheck.handlers.registry import handles
from dynacheck.variables import abstract
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.coerce import integer, natively
from dynacheck.variables.iterators import FilterIterator, NativeIterator, StepsIterator
from dynacheck.variables.sequences import ListVariable

Arg = VariableTracker
Steps = Iterator[VariableTracker]


def _items(tx: Tracer, iterator: Arg) -> Steps:
    while (item := abstract.iternext(tx, iterator)) is not None:
        yield item


# -- finite combinations: they read their arguments when they are made


def _combine(function: Any, make: Callable[..., Any]) -> None:
    @handles(function)
    @functools.wraps(make)
    def call(tx: Tracer, *args: Arg, **kwargs: Arg) -> VariableTracker:
        native = make(tx, *args, **kwargs)
        pool = ListVariable([])
        return NativeIterator(pool, native, lambda found: tx.tuple_of(list(found)), function)


def _product(tx: Tracer, *iterables: Arg, repeat: Arg | None = None) -> Any:
    times = 1 if repeat is None else integer(tx, repeat)
    return natively(tx, _repeated_product, [abstract.iterate(tx, i) for i in iterables], times)


def _repeated_product(pools: list[Any], times: int) -> Any:
    return itertools.product(*pools, repeat=times)


def _permutations(tx: Tracer, iterable: Arg, r: Arg | None = None) -> Any:
    size = None if r is None or abstract.is_none(tx, r) else integer(tx, r)
    return natively(tx, itertools.permutations, abstract.iterate(tx, iterable), size)


def _combinations(tx: Tracer, iterable: Arg, r: Arg) -> Any:
    return natively(tx, itertools.combinations, abstract.iterate(tx, iterable), integer(tx, r))


_combine(itertools.product, _product)
_combine(itertools.permutations, _permutations)
_combine(itertools.combinations, _combinations)


# -- lazy iterators


@handles(itertools.chain)
def chain(tx: Tracer, *iterables: Arg) -> VariableTracker:
    return StepsIterator(itertools.chain, _chain(tx, iter(iterables)), iterables)


@handles(itertools.chain.from_iterable)
def chain_from_iterable(tx: Tracer, iterable: Arg, /) -> VariableTracker:
    source = abstract.get_iter(tx, iterable)
    return StepsIterator(itertools.chain, _chain(tx, _items(tx, source)), [])


def _chain(tx: Tracer, iterables: Iterator[Arg]) -> Steps:
    for iterable in iterables:
        yield from _items(tx, abstract.get_iter(tx, iterable))


@handles(itertools.islice)
def islice(tx: Tracer, iterable: Arg, *bounds: Arg) -> VariableTracker:
    if not 1 <= len(bounds) <= 3:
        expected = "at least 2 arguments" if not bounds else "at most 4 arguments"
        tx.raise_(TypeError, f"islice expected {expected}, got {len(bounds) + 1}")
    numbers = [None if abstract.is_none(tx, b) else integer(tx, b) for b in bounds]
    start, stop, step = (None, numbers[0], None) if len(numbers) == 1 else (*numbers, None)[:3]
    if stop is not None and stop < 0:
        what = "Stop argument" if len(numbers) == 1 else "Indices"
        rest = "must be None or an integer: 0 <= x <= sys.maxsize."
        tx.raise_(ValueError, f"{what} for islice() {rest}")
    if start is not None and start < 0:
        tx.raise_(ValueError, "Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    if step is not None and step < 1:
        tx.raise_(ValueError, "Step for islice() must be a positive integer or None.")
    source = abstract.get_iter(tx, iterable)
    steps = _islice(tx, source, start or 0, stop, step or 1)
    return StepsIterator(itertools.islice, steps, [source, *bounds])


def _islice(tx: Tracer, source: Arg, start: int, stop: int | None, step: int) -> Steps:
    position = 0
    wanted = start
    while stop is None or wanted < stop:
        item = None
        while position <= wanted:
            item = abstract.iternext(tx, source)
            if item is None:
                return
            position += 1
        assert item is not None
        yield item
        wanted += step
    while stop is not None and position < stop:  # CPython draws up to stop
        if abstract.iternext(tx, source) is None:
            return
        position += 1


@handles(itertools.count)
def count(tx: Tracer, start: Arg | None = None, step: Arg | None = None) -> VariableTracker:
    first = tx.constant(0) if start is None else start
    by = tx.constant(1) if step is None else step
    for number in (first, by):
        if not any(abstract.has(tx, number, name) for name in ("__index__", "__int__", "__float__")):
            if number.get_type() is not complex:
                tx.raise_(TypeError, "a number is required")
    counts = by.is_constant() and isinstance(by.as_constant(tx), int) and by.as_constant(tx) == 1
    if counts and first.get_type() is bool:  # counted in C, as the int it is
        first = tx.constant(integer(tx, first) + 0)
    return StepsIterator(itertools.count, _count(tx, first, by), [first, by])


def _count(tx: Tracer, value: Arg, step: Arg) -> Steps:
    while True:
        yield value
        value = abstract.binary(tx, "+", value, step)


@handles(itertools.repeat)
def repeat(tx: Tracer, object: Arg, times: Arg | None = None) -> VariableTracker:
    if times is None:
        return StepsIterator(itertools.repeat, itertools.repeat(object), [object])
    number = max(0, integer(tx, times))
    return StepsIterator(itertools.repeat, itertools.repeat(object, number), [object, times])


@handles(itertools.cycle)
def cycle(tx: Tracer, iterable: Arg, /) -> VariableTracker:
    source = abstract.get_iter(tx, iterable)
    return StepsIterator(itertools.cycle, itertools.cycle(_items(tx, source)), [source])


@handles(itertools.zip_longest)
def zip_longest(tx: Tracer, *iterables: Arg, fillvalue: Arg | None = None) -> VariableTracker:
    filler = tx.constant(None) if fillvalue is None else fillvalue
    sources = [abstract.get_iter(tx, i) for i in iterables]
    native = itertools.zip_longest(*[_items(tx, s) for s in sources], fillvalue=filler)
    steps = (tx.tuple_of(list(found)) for found in native)
    if fillvalue is None:
        return StepsIterator(itertools.zip_longest, steps, sources)
    return StepsIterator(itertools.zip_longest, steps, [filler, *sources], _zip_longest_filled)


def _zip_longest_filled(filler: Any, *iterables: Any) -> Any:
    return itertools.zip_longest(*iterables, fillvalue=filler)


@handles(itertools.accumulate)
def accumulate(
    tx: Tracer, iterable: Arg, func: Arg | None = None, *, initial: Arg | None = None
) -> VariableTracker:
    source = abstract.get_iter(tx, iterable)
    first = None if initial is None or abstract.is_none(tx, initial) else initial
    step = None if func is None or abstract.is_none(tx, func) else func
    rebuilt = [source] if first is None and step is None else [source, step or tx.constant(None)]
    return StepsIterator(itertools.accumulate, _accumulate(tx, source, step, first), rebuilt)


def _accumulate(tx: Tracer, source: Arg, func: Arg | None, total: Arg | None) -> Steps:
    if total is None:
        total = abstract.iternext(tx, source)
        if total is None:
            return
    result = total
    yield result
    for item in _items(tx, source):
        result = abstract.binary(tx, "+", result, item) if func is None else tx.call(func, [result, item])
        yield result


@handles(itertools.starmap)
def starmap(tx: Tracer, function: Arg, iterable: Arg, /) -> VariableTracker:
    source = abstract.get_iter(tx, iterable)
    steps = (tx.call(function, abstract.iterate(tx, args)) for args in _items(tx, source))
    return StepsIterator(itertools.starmap, steps, [function, source])


def _while(kind: type[itertools.takewhile[Any]] | type[itertools.dropwhile[Any]]) -> None:
    @handles(kind)
    def steps_while(tx: Tracer, predicate: Arg, iterable: Arg, /) -> VariableTracker:
        source = abstract.get_iter(tx, iterable)

        def holds(item: Arg) -> bool:
            return abstract.is_true(tx, tx.call(predicate, [item]))

        return StepsIterator(kind, kind(holds, _items(tx, source)), [predicate, source])


_while(itertools.takewhile)
_while(itertools.dropwhile)


@handles(itertools.filterfalse)
def filterfalse(tx: Tracer, function: Arg, iterable: Arg, /) -> VariableTracker:
    return FilterIterator(function, abstract.get_iter(tx, iterable), wanted=False)


@handles(itertools.compress)
def compress(tx: Tracer, data: Arg, selectors: Arg) -> VariableTracker:
    sources = [abstract.get_iter(tx, data), abstract.get_iter(tx, selectors)]
    steps = (d for d, s in zip(*[_items(tx, s) for s in sources]) if abstract.is_true(tx, s))
    return StepsIterator(itertools.compress, steps, sources)


@handles(itertools.pairwise)
def pairwise(tx: Tracer, iterable: Arg, /) -> VariableTracker:
    source = abstract.get_iter(tx, iterable)
    steps = (tx.tuple_of(list(pair)) for pair in itertools.pairwise(_items(tx, source)))
    return StepsIterator(itertools.pairwise, steps, [source])


@handles(itertools.tee)
def tee(tx: Tracer, iterable: Arg, n: Arg | None = None, /) -> VariableTracker:
    source = abstract.get_iter(tx, iterable)
    copies = natively(tx, itertools.tee, _items(tx, source), 2 if n is None else integer(tx, n))
    return tx.tuple_of([StepsIterator(_TEE, c, [source]) for c in copies])


_TEE: Final[type] = type(itertools.tee([])[0])


@handles(itertools.groupby)
def groupby(tx: Tracer, iterable: Arg, *by_position: Arg, key: Arg | None = None) -> VariableTracker | None:
    if by_position:
        return None  # as torch, which takes the key by keyword
    source = abstract.get_iter(tx, iterable)
    function = None if key is None or abstract.is_none(tx, key) else key

    def key_of(item: Arg) -> _Key:
        return _Key(tx, item if function is None else tx.call(function, [item]))

    steps = (
        tx.tuple_of([found.value, StepsIterator(_GROUPER, group, [])])
        for found, group in itertools.groupby(_items(tx, source), key_of)
    )
    return StepsIterator(itertools.groupby, steps, [source] if function is None else [source, function])


_GROUPER: Final[type] = type(next(itertools.groupby([0]))[1])


class _Key:
    """A key that compares as the traced program's would."""

    __slots__ = ("tx", "value")

    def __init__(self, tx: Tracer, value: Arg) -> None:
        self.tx = tx
        self.value = value.realize(tx)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and abstract.equal(self.tx, self.value, other.value)

    __hash__ = None  # type: ignore[assignment]


_BATCHED: Final[Any] = getattr(itertools, "batched", None)
if _BATCHED is not None:

    @handles(_BATCHED)
    def batched(tx: Tracer, iterable: Arg, n: Arg, *, strict: Arg | None = None) -> VariableTracker:
        size = integer(tx, n)
        if size < 1:
            tx.raise_(ValueError, "n must be at least one")
        source = abstract.get_iter(tx, iterable)
        exact = strict is not None and abstract.is_true(tx, strict)
        return StepsIterator(_BATCHED, _batched(tx, source, size, exact), [source, n])


def _batched(tx: Tracer, source: Arg, size: int, exact: bool) -> Steps:
    while batch := list(itertools.islice(_items(tx, source), size)):
        if exact and len(batch) < size:
            tx.raise_(ValueError, "batched(): incomplete batch")
        yield tx.tuple_of(batch)
