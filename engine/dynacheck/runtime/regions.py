"""Compile regions: which compiles share entries, and who keeps their graphs alive.

An entry belongs to a region and holds it weakly; the region owns the callables that backends made, and
rewritten code reaches them through a call that does not own them. So nothing that hangs on a code object
keeps a user's model alive.

A named backend's region lives until `reset()`. One of a function lives with the function; one of any other
callable with the compiled callables that use it.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any

from dynacheck import _C
from dynacheck.backends.contract import Backend

_KEPT = "__dynacheck_regions__"


class RegionInfo:
    """What a native region stands for.

    Attributes:
        backend: its backend; held, so that its identity stays its own.
        dynamic: the `dynamic` of its compiles.
        isolation: number of its isolated compile, None for the scope that all others share.
        graphs: owners of the callables of its entries.
    """

    __slots__ = ("__weakref__", "backend", "dynamic", "graphs", "isolation")

    def __init__(self, backend: Backend, dynamic: bool | None, isolation: int | None) -> None:
        self.backend = backend
        self.dynamic = dynamic
        self.isolation = isolation
        self.graphs: set[_C.GraphOwner] = set()

    def keep(self, owner: _C.GraphOwner) -> Callable[[_C.Entry], None]:
        """Own the callable of an entry's graph.

        Args:
            owner: what holds it.

        Returns:
            What lets go of it when the entry dies; holds neither the region nor the owner.
        """
        self.graphs.add(owner)
        mine, its = weakref.ref(self), weakref.ref(owner)

        def let_go(entry: _C.Entry) -> None:
            info, held = mine(), its()
            if info is not None and held is not None:
                info.graphs.discard(held)

        return let_go


def info_of(region: _C.Region) -> RegionInfo:
    """What the region stands for."""
    key = region.key
    assert isinstance(key, RegionInfo)
    return key


class _KeptByFunction:
    """Regions of a function that is a backend, as an attribute of it (a decorator may copy that to another
    function)."""

    __slots__ = ("function", "regions")

    def __init__(self, function: FunctionType) -> None:
        self.function = weakref.ref(function)
        self.regions: dict[tuple[Any, ...], _C.Region] = {}


class Regions:
    """All regions of the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: weakref.WeakValueDictionary[tuple[Any, ...], _C.Region] = weakref.WeakValueDictionary()
        self._named: dict[tuple[Any, ...], _C.Region] = {}
        self._isolations = itertools.count(1)

    def isolation(self) -> int:
        """A number for an isolated compile."""
        return next(self._isolations)

    def find(self, backend: Backend, dynamic: bool | None, isolation: int | None = None) -> _C.Region:
        """The region of a compile, made on first need.

        Args:
            backend: its backend.
            dynamic: its `dynamic`.
            isolation: its number if it is isolated.
        """
        key = (backend.identity, dynamic, isolation)
        with self._lock:
            region = self._known.get(key)
            if region is None:
                region = self._known[key] = _C.Region(RegionInfo(backend, dynamic, isolation))
            function = backend.function
            if isolation is not None:
                pass  # its one wrapper keeps it
            elif function is None:
                self._named[key] = region
            elif isinstance(function, FunctionType):
                _kept_by(function)[key] = region
            return region

    def reset(self) -> None:
        """Drop all graphs, and the regions that only their names keep."""
        with self._lock:
            regions = list(self._known.values())
            self._named.clear()
        for region in regions:
            info_of(region).graphs.clear()


def _kept_by(function: FunctionType) -> dict[tuple[Any, ...], _C.Region]:
    kept = function.__dict__.get(_KEPT)
    if kept is None or kept.function() is not function:
        kept = function.__dict__[_KEPT] = _KeptByFunction(function)
    regions: dict[tuple[Any, ...], _C.Region] = kept.regions
    return regions
