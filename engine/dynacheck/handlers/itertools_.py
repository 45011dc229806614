"""The itertools module."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from dynacheck.handlers.registry import handles
from dynacheck.variables import abstract
from dynacheck.variables.base import ObservedException, Tracer, VariableTracker
from dynacheck.variables.coerce import integer, natively
from dynacheck.variables.iterators import FilterIterator, NativeIterator
from dynacheck.variables.itertools_iterators import (
    CountIterator,
    RepeatIterator,
    StepsIterator,
    TeeIterator,
    TeeTrunk,
)
from dynacheck.variables.listing import listed

Arg = VariableTracker
Steps = Iterator[VariableTracker]


class _Items:
    """The items of a traced iterator. One that raised goes on when it is asked again, which a generator can't."""

    __slots__ = ("iterator", "tx")

    def __init__(self, tx: Tracer, iterator: Arg) -> None:
        self.tx = tx
        self.iterator = iterator

    def __iter__(self) -> _Items:
        return self

    def __next__(self) -> VariableTracker:
        item = abstract.iternext(self.tx, self.iterator)
        if item is None:
            raise StopIteration
        return item


def _each(step: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """What a step gives for each item. No generator, which would end for good once a step has raised."""
    return map(step, items)


def _tuples(tx: Tracer, found: Iterator[Any]) -> Steps:
    return _each(lambda items: tx.tuple_of(list(items)), found)


# -- finite combinations: they read their arguments when they are made


def _combine(
    function: Any, read: Callable[..., list[Any]], again: Callable[[Any], Any] | None = None
) -> None:
    """Handle one, whose arguments `read` gives: pools as lists, then a number. `again` makes it from those."""
    make = again or (lambda arguments: function(*arguments))

    @handles(function)
    @functools.wraps(read)
    def call(tx: Tracer, *args: Arg, **kwargs: Arg) -> VariableTracker:
        *pools, number = read(tx, *args, **kwargs)
        native = natively(tx, make, [*pools, number])
        arguments = tx.tuple_of([*map(tx.tuple_of, pools), tx.constant(number)])
        return NativeIterator(arguments, native, lambda found: tx.tuple_of(list(found)), function, make)


def _product(tx: Tracer, *iterables: Arg, repeat: Arg | None = None) -> list[Any]:
    times = 1 if repeat is None else integer(tx, repeat)
    return [*[listed(tx, i) for i in iterables], times]


def _permutations(tx: Tracer, iterable: Arg, r: Arg | None = None) -> list[Any]:
    size = None if r is None or abstract.is_none(tx, r) else integer(tx, r)
    return [listed(tx, iterable), size]


def _combinations(tx: Tracer, iterable: Arg, r: Arg) -> list[Any]:
    return [listed(tx, iterable), integer(tx, r)]


_combine(
    itertools.product, _product, lambda arguments: itertools.product(*arguments[:-1], repeat=arguments[-1])
)
_combine(itertools.permutations, _permutations)
_combine(itertools.combinations, _combinations)


# -- lazy iterators


@handles(itertools.chain)
def chain(tx: Tracer, *iterables: Arg) -> VariableTracker:
    return StepsIterator(itertools.chain, _chain(tx, iter(iterables)), iterables)


@handles(itertools.chain.from_iterable)
def chain_from_iterable(tx: Tracer, iterable: Arg, /) -> VariableTracker:
    source = abstract.get_iter(tx, iterable)
    return StepsIterator(itertools.chain, _chain(tx, _Items(tx, source)), [])


def _chain(tx: Tracer, iterables: Iterator[Arg]) -> Steps:
    return itertools.chain.from_iterable(_each(lambda i: _Items(tx, abstract.get_iter(tx, i)), iterables))


@handles(itertools.islice)
def islice(tx: Tracer, iterable: Arg, *bounds: Arg) -> VariableTracker:
    numbers = [_bound(tx, b) for b in bounds]
    natively(tx, itertools.islice, (), *numbers)
    source = abstract.get_iter(tx, iterable)
    steps = itertools.islice(_Items(tx, source), *numbers)
    return StepsIterator(itertools.islice, steps, [source, *bounds])


def _bound(tx: Tracer, value: Arg) -> Any:
    """A bound of islice; it asks for a number and forgets how that failed."""
    try:
        return None if abstract.is_none(tx, value) else integer(tx, value)
    except ObservedException:
        return value


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
    return CountIterator(first, by)


@handles(itertools.repeat)
def repeat(tx: Tracer, object: Arg, times: Arg | None = None) -> VariableTracker:
    return RepeatIterator(object, None if times is None else max(0, integer(tx, times)))


@handles(itertools.cycle)
def cycle(tx: Tracer, iterable: Arg, /) -> VariableTracker:
    source = abstract.get_iter(tx, iterable)
    return StepsIterator(itertools.cycle, itertools.cycle(_Items(tx, source)), [source])


@handles(itertools.zip_longest)
def zip_longest(tx: Tracer, *iterables: Arg, fillvalue: Arg | None = None) -> VariableTracker:
    filler = tx.constant(None) if fillvalue is None else fillvalue
    sources = [abstract.get_iter(tx, i) for i in iterables]
    native = itertools.zip_longest(*[_Items(tx, s) for s in sources], fillvalue=filler)
    return StepsIterator(itertools.zip_longest, _tuples(tx, native), [filler, *sources])


@handles(itertools.accumulate)
def accumulate(
    tx: Tracer, iterable: Arg, func: Arg | None = None, *, initial: Arg | None = None
) -> VariableTracker:
    source = abstract.get_iter(tx, iterable)
    first = None if initial is None or abstract.is_none(tx, initial) else initial
    step = None if func is None or abstract.is_none(tx, func) else func

    def combine(total: Arg, item: Arg) -> VariableTracker:
        return abstract.binary(tx, "+", total, item) if step is None else tx.call(step, [total, item])

    steps = itertools.accumulate(_Items(tx, source), combine, initial=first)
    return StepsIterator(itertools.accumulate, steps, [source, *(a for a in (step, first) if a is not None)])


@handles(itertools.starmap)
def starmap(tx: Tracer, function: Arg, iterable: Arg, /) -> VariableTracker:
    source = abstract.get_iter(tx, iterable)
    steps = _each(lambda args: tx.call(function, abstract.iterate(tx, args)), _Items(tx, source))
    return StepsIterator(itertools.starmap, steps, [function, source])


def _while(kind: type[itertools.takewhile[Any]] | type[itertools.dropwhile[Any]]) -> None:
    @handles(kind)
    def steps_while(tx: Tracer, predicate: Arg, iterable: Arg, /) -> VariableTracker:
        source = abstract.get_iter(tx, iterable)

        def holds(item: Arg) -> bool:
            return abstract.is_true(tx, tx.call(predicate, [item]))

        return StepsIterator(kind, kind(holds, _Items(tx, source)), [predicate, source])


_while(itertools.takewhile)
_while(itertools.dropwhile)


@handles(itertools.filterfalse)
def filterfalse(tx: Tracer, function: Arg, iterable: Arg, /) -> VariableTracker:
    return FilterIterator(function, abstract.get_iter(tx, iterable), wanted=False)


@handles(itertools.compress)
def compress(tx: Tracer, data: Arg, selectors: Arg) -> VariableTracker:
    sources = [abstract.get_iter(tx, data), abstract.get_iter(tx, selectors)]
    wanted = _each(lambda selector: abstract.is_true(tx, selector), _Items(tx, sources[1]))
    steps = itertools.compress(_Items(tx, sources[0]), wanted)
    return StepsIterator(itertools.compress, steps, sources)


@handles(itertools.pairwise)
def pairwise(tx: Tracer, iterable: Arg, /) -> VariableTracker:
    source = abstract.get_iter(tx, iterable)
    steps = _tuples(tx, itertools.pairwise(_Items(tx, source)))
    return StepsIterator(itertools.pairwise, steps, [source])


@handles(itertools.tee)
def tee(tx: Tracer, iterable: Arg, n: Arg | None = None, /) -> VariableTracker:
    count = 2 if n is None else integer(tx, n)
    if natively(tx, itertools.tee, (), count) == ():
        return tx.tuple_of([])
    first = abstract.get_iter(tx, iterable).realize(tx)
    if not abstract.has(tx, first, "__copy__"):
        first = TeeIterator(TeeTrunk(first))
    elif _TEE_IS_COPIED:
        first = _copy(tx, first)
    return tx.tuple_of([first, *[_copy(tx, first) for _ in range(count - 1)]])


def _copy(tx: Tracer, iterator: Arg) -> Arg:
    return tx.call(abstract.getattr_(tx, iterator, "__copy__"), [])


_TEE: Final[Any] = itertools.tee([])[0]
_TEE_IS_COPIED: Final = itertools.tee(_TEE)[0] is not _TEE


@handles(itertools.groupby)
def groupby(tx: Tracer, iterable: Arg, *by_position: Arg, key: Arg | None = None) -> VariableTracker | None:
    if by_position:
        return None  # as torch, which takes the key by keyword
    source = abstract.get_iter(tx, iterable)
    function = None if key is None or abstract.is_none(tx, key) else key

    def key_of(item: Arg) -> _Key:
        return _Key(tx, item if function is None else tx.call(function, [item]))

    def pair(found: tuple[_Key, Steps]) -> VariableTracker:
        return tx.tuple_of([found[0].value, StepsIterator(_GROUPER, found[1], [])])

    steps = _each(pair, itertools.groupby(_Items(tx, source), key_of))
    arguments = [source] if function is None else [source, function]
    return StepsIterator(itertools.groupby, steps, arguments, again=True)


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
    while batch := list(itertools.islice(_Items(tx, source), size)):
        if exact and len(batch) < size:
            tx.raise_(ValueError, "batched(): incomplete batch")
        yield tx.tuple_of(batch)
