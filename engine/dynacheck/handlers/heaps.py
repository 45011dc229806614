"""heapq and bisect, whose C functions are said in Python here."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable
from typing import Any

from dynacheck.handlers.registry import replaces


def _sift_down(heap: list[Any], start: int, position: int, largest: bool = False) -> None:
    """Move the item at a position towards the root until its parent belongs there (no larger, or no smaller)."""
    item = heap[position]
    while position > start:
        above = (position - 1) >> 1
        if not (heap[above] < item if largest else item < heap[above]):
            break
        heap[position] = heap[above]
        position = above
    heap[position] = item


def _sift_up(heap: list[Any], position: int, largest: bool = False) -> None:
    """Move children that belong above it up to a leaf, then the item down to its place."""
    end, start, item = len(heap), position, heap[position]
    child = 2 * position + 1
    while child < end:
        right = child + 1
        if right < end and not (heap[right] < heap[child] if largest else heap[child] < heap[right]):
            child = right
        heap[position] = heap[child]
        position = child
        child = 2 * position + 1
    heap[position] = item
    _sift_down(heap, start, position, largest)


def _pop(heap: list[Any], largest: bool) -> Any:
    if not heap:
        raise IndexError("index out of range")
    last = heap.pop()
    return _replace(heap, last, largest) if heap else last


def _replace(heap: list[Any], item: Any, largest: bool) -> Any:
    if not heap:
        raise IndexError("index out of range")
    first = heap[0]
    heap[0] = item
    _sift_up(heap, 0, largest)
    return first


def _order(heap: list[Any], largest: bool) -> None:
    for position in reversed(range(len(heap) // 2)):
        _sift_up(heap, position, largest)


@replaces(heapq.heappush)
def heappush(heap: list[Any], item: Any, /) -> None:
    heap.append(item)
    _sift_down(heap, 0, len(heap) - 1)


@replaces(heapq.heappop)
def heappop(heap: list[Any], /) -> Any:
    return _pop(heap, False)


@replaces(heapq.heapreplace)
def heapreplace(heap: list[Any], item: Any, /) -> Any:
    return _replace(heap, item, False)


@replaces(heapq.heappushpop)
def heappushpop(heap: list[Any], item: Any, /) -> Any:
    if heap and heap[0] < item:
        item, heap[0] = heap[0], item
        _sift_up(heap, 0)
    return item


@replaces(heapq.heapify)
def heapify(heap: list[Any], /) -> None:
    _order(heap, False)


@replaces(bisect.bisect_left)
def bisect_left(
    a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Callable[[Any], Any] | None = None
) -> int:
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        middle = (lo + hi) // 2
        item = a[middle] if key is None else key(a[middle])
        if item < x:
            lo = middle + 1
        else:
            hi = middle
    return lo


@replaces(bisect.bisect_right)
def bisect_right(
    a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Callable[[Any], Any] | None = None
) -> int:
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        middle = (lo + hi) // 2
        item = a[middle] if key is None else key(a[middle])
        if x < item:
            hi = middle
        else:
            lo = middle + 1
    return lo


@replaces(bisect.insort_left)
def insort_left(
    a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Callable[[Any], Any] | None = None
) -> None:
    a.insert(bisect_left(a, x if key is None else key(x), lo, hi, key=key), x)


@replaces(bisect.insort_right)
def insort_right(
    a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Callable[[Any], Any] | None = None
) -> None:
    a.insert(bisect_right(a, x if key is None else key(x), lo, hi, key=key), x)


def _heapify_max(heap: list[Any], /) -> None:
    _order(heap, True)


def _heappop_max(heap: list[Any], /) -> Any:
    return _pop(heap, True)


def _heapreplace_max(heap: list[Any], item: Any, /) -> Any:
    return _replace(heap, item, True)


for _name, _polyfill in (
    ("_heapify_max", _heapify_max),
    ("_heappop_max", _heappop_max),
    ("_heapreplace_max", _heapreplace_max),
):
    _original = getattr(heapq, _name, None)
    if _original is not None:
        replaces(_original)(_polyfill)
