"""Compile regions: which compiles share entries, and who keeps their graphs alive.

An entry belongs to a region and holds it weakly; the region owns the callables that backends made, and
rewritten code reaches them through a call that does not own them. So nothing that hangs on a code object
keeps a user's model alive.

A named backend's region lives until `reset()`. One of a callable lives with it, as an attribute of it; where
it can't have attributes, with the compiled callables that use it.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from types import MethodType
from typing import Any

from dynacheck import _C
from dynacheck.backends.contract import Backend
from dynacheck.sources import own_dict

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


class _Kept:
    """Regions of a callable that is a backend, among its attributes; copies of it have none.

    Args:
        owner: whose attribute it is: decorators copy attributes from one function to another.
    """

    __slots__ = ("owner", "regions")

    def __init__(self, owner: Any = None) -> None:
        self.owner = id(owner)
        self.regions: dict[tuple[Any, ...], _C.Region] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Kept, ())


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

    def find(
        self,
        backend: Backend,
        dynamic: bool | None,
        isolation: int | None = None,
        settings: tuple[Any, ...] = (),
    ) -> _C.Region:
        """The region of a compile, made on first need.

        Args:
            backend: its backend.
            dynamic: its `dynamic`.
            isolation: its number if it is isolated.
            settings: values of the options that change translation.
        """
        key = (backend.identity, dynamic, isolation, settings)
        with self._lock:
            region = self._known.get(key)
            if region is None:
                region = self._known[key] = _C.Region(RegionInfo(backend, dynamic, isolation))
            if isolation is None:  # an isolated one is kept by what was compiled
                kept = self._named if backend.function is None else _kept_by(backend.function)
                if kept is not None:
                    kept[key] = region
            return region

    def reset(self) -> None:
        """Drop all graphs, and the regions that only their names keep."""
        with self._lock:
            regions = list(self._known.values())
            self._named.clear()
        for region in regions:
            info_of(region).graphs.clear()


def _kept_by(backend: Callable[..., Any]) -> dict[tuple[Any, ...], _C.Region] | None:
    """Where a callable keeps its regions: among its attributes, or those of the object that it is a method
    of."""
    owner = backend.__self__ if isinstance(backend, MethodType) else backend
    attributes = None if isinstance(owner, type) else own_dict(owner)
    if attributes is None:
        return None
    kept = attributes.get(_KEPT)
    if type(kept) is not _Kept or kept.owner != id(owner):
        kept = attributes[_KEPT] = _Kept(owner)
    return kept.regions
