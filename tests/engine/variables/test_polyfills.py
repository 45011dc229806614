"""Polyfills do what their originals do, run as plain Python."""

import bisect
import heapq
import inspect
import random

import pytest
from dynacheck import handlers  # noqa: F401  (fills the registry)
from dynacheck.handlers.registry import polyfills

FOUND = {original: polyfill for original, polyfill in polyfills()}


def test_every_polyfill_is_plain_python_of_the_engine():
    assert len(FOUND) > 10
    for original, polyfill in FOUND.items():
        assert "handlers" in polyfill.__code__.co_filename
        try:
            wanted = inspect.signature(original)
        except ValueError:
            continue
        assert len(inspect.signature(polyfill).parameters) == len(wanted.parameters)


@pytest.mark.parametrize("seed", range(30))
def test_heaps(seed):
    rng = random.Random(seed)
    ours = [rng.randrange(20) for _ in range(rng.randrange(1, 15))]
    theirs = list(ours)
    FOUND[heapq.heapify](ours), heapq.heapify(theirs)
    assert ours == theirs
    for _ in range(20):
        name = rng.choice(["heappush", "heappop", "heapreplace", "heappushpop"])
        original = getattr(heapq, name)
        args = () if name == "heappop" else (rng.randrange(20),)
        results = []
        for fn, heap in ((FOUND[original], ours), (original, theirs)):
            try:
                results.append(fn(heap, *args))
            except IndexError as error:
                results.append(str(error))
        assert results[0] == results[1] and ours == theirs


@pytest.mark.parametrize("name", ["bisect_left", "bisect_right"])
def test_bisection(name):
    original = getattr(bisect, name)
    polyfill = FOUND[original]
    for a in ([], [1], [1, 2, 2, 2, 5], list(range(10))):
        for x in range(-1, 11):
            assert polyfill(a, x) == original(a, x)
            assert polyfill(a, x, 0, len(a) // 2) == original(a, x, 0, len(a) // 2)
            assert polyfill(a, -x, key=lambda v: -v) == original(a, -x, key=lambda v: -v)
    with pytest.raises(ValueError, match="lo must be non-negative"):
        polyfill([1], 1, -1)


@pytest.mark.parametrize("name", ["insort_left", "insort_right"])
def test_insertion(name):
    original = getattr(bisect, name)
    for x in range(6):
        ours, theirs = [1, 2, 2, 4], [1, 2, 2, 4]
        FOUND[original](ours, x), original(theirs, x)
        assert ours == theirs
