"""What happened, counted: a Report made from events, and `observe()`, which collects them."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import CodeType, MappingProxyType
from typing import Any

from dynacheck import events as ev
from dynacheck import hints, places
from dynacheck.counting import Builder
from dynacheck.records import (
    CacheEntry,
    Call,
    EagerRun,
    Graph,
    GraphBreak,
    Recompile,
    Records,
    Skipped,
    break_json,
    eager_json,
    graph_json,
    place,
    recompile_json,
)


class Report:
    """What an engine did between two moments. It grows while observed; `frozen()` gives a copy that stays.

    Args:
        events: the engine's events, in order.
        root: folder that file names are relative to.
        setup: what had been counted before, shown and not counted.
        unknown: names of counts that the engine can't know; they are None.

    Example:
        >>> report = Report(())
        >>> report.counts["graphs"], report.causes
        (0, {})
    """

    def __init__(
        self,
        events: Sequence[ev.Event],
        *,
        root: str | None = None,
        setup: Mapping[str, int | None] = MappingProxyType({}),
        unknown: Collection[str] = (),
    ) -> None:
        self._events = events
        self._unknown = frozenset(unknown)
        self._root = os.path.abspath(root or os.getcwd())
        self.setup: Mapping[str, int | None] = MappingProxyType(dict(setup))
        self._built: tuple[int, Records] | None = None

    def _records(self) -> Records:
        events = tuple(self._events)
        if self._built is None or self._built[0] != len(events):
            self._built = (len(events), Builder(events, self._root).finish())
        return self._built[1]

    @property
    def events(self) -> tuple[ev.Event, ...]:
        """The events it is made from."""
        return tuple(self._events)

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return self._records().graphs

    @property
    def graph_breaks(self) -> tuple[GraphBreak, ...]:
        """Distinct places, in the order they were met."""
        return self._records().graph_breaks

    @property
    def recompiles(self) -> tuple[Recompile, ...]:
        return self._records().recompiles

    @property
    def cache_entries(self) -> tuple[CacheEntry, ...]:
        """All entries added; `counts["cache_entries"]` is the most of any one code object."""
        return self._records().cache_entries

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return self._records().skipped

    @property
    def left_alone(self) -> tuple[Skipped, ...]:
        """Frames of files that are never translated, and of disabled functions, once per code object, with why."""
        return self._records().left_alone

    @property
    def cautions(self) -> tuple[str, ...]:
        """Sentences on what was translated and isn't quite what plain Python does: a cache that is passed over."""
        return tuple(dict.fromkeys(e.message for e in self._events if isinstance(e, ev.Cautioned)))

    @property
    def eager_runs(self) -> tuple[EagerRun, ...]:
        return self._records().eager_runs

    @property
    def calls(self) -> tuple[Call, ...]:
        return self._records().calls

    @property
    def failures(self) -> tuple[ev.Event, ...]:
        """Backends that raised and faults of the engine."""
        return self._records().failures

    @property
    def counts(self) -> Mapping[str, int | None]:
        """The numbers budgets are about, by name (an engine that can't know one gives None)."""
        built = self._records()
        found = {
            "graphs": len(built.graphs),
            "graph_breaks": len(built.graph_breaks),
            "recompiles": len(built.recompiles),
            "cache_entries": built.most_entries,
            "skipped": len(built.skipped),
            "eager_runs": len(built.eager_runs),
            "calls": len(built.calls),
        }
        return MappingProxyType({k: None if k in self._unknown else n for k, n in found.items()})

    @property
    def causes(self) -> dict[str, int]:
        """How often each cause was met: breaks by place, recompiles and eager runs each time."""
        built = self._records()
        found: Counter[str] = Counter()
        for records in (built.graph_breaks, built.recompiles, built.eager_runs):
            found.update(record.cause for record in records)
        return dict(found)

    def _of(self, events: tuple[ev.Event, ...], setup: Mapping[str, int | None]) -> Report:
        return Report(events, root=self._root, setup=setup, unknown=self._unknown)

    def frozen(self) -> Report:
        """A copy that no longer grows."""
        return self._of(tuple(self._events), self.setup)

    def since(self, start: int, setup: Mapping[str, int | None] = MappingProxyType({})) -> Report:
        """What happened after the first `start` events; `setup` is what had been counted before."""
        return self._of(tuple(self._events)[start:], setup)

    def until(self, end: int) -> Report:
        """What the first `end` events tell."""
        return self._of(tuple(self._events)[:end], {})

    def of(self, obj: Any) -> Report:
        """What happened in calls of a compiled function or module, and to its own code anywhere.

        Args:
            obj: a function, method or module, compiled or not. All instances of a class share its code.
        """
        codes = {id(code) for code in codes_of(obj)}
        events = tuple(self._events)
        calls = {
            e.call
            for e in events
            if isinstance(e, ev.CallStarted) and e.target is not None and id(e.target.code) in codes
        }

        def belongs(event: ev.Event) -> bool:
            code = getattr(event, "code", None)
            if isinstance(event, ev.WasReset):
                return True
            return event.call in calls or (code is not None and id(code.code) in codes)

        return self._of(tuple(e for e in events if belongs(e)), self.setup)

    def display_name(self, file: str) -> str:
        """A file as this report names it."""
        return places.display_name(file, self._root)

    @staticmethod
    def is_library(file: str) -> bool:
        """True for files of torch and of the standard library."""
        return places.is_library(file)

    @staticmethod
    def history(recompiles: Sequence[Recompile]) -> hints.History:
        """How the value that decided these recompiles changed; they have one cause and come in order."""
        return hints.history_of([record.changes[0] for record in recompiles if record.changes])

    def to_json(self, *, longest_code: int = 0) -> dict[str, Any]:
        """The report as plain data: what JSON files, xdist and the HTML page carry.

        Args:
            longest_code: how many lines of each graph's source to give; 0 for none.
        """
        return {
            "counts": dict(self.counts),
            "graphs": [graph_json(g, longest_code) for g in self.graphs],
            "graph_breaks": [break_json(b, self._root) for b in self.graph_breaks],
            "recompiles": [recompile_json(r, self._root) for r in self.recompiles],
            "eager_runs": [eager_json(r) for r in self.eager_runs],
            "skipped": [
                {"function": s.function, "file": s.file, "line": s.line, "reason": s.reason,
                 "message": s.message}
                for s in self.skipped
            ],
            "calls": [
                {"function": c.function, "outcome": c.outcome, "eager": list(c.eager), "raised": c.raised,
                 "at": place(c.where, self._root)}
                for c in self.calls
            ],
            "causes": dict(sorted(self.causes.items())),
            "setup": dict(self.setup),
        }  # fmt: skip

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}={value}" for name, value in self.counts.items())
        return f"<Report {counts}>"


def codes_of(obj: Any) -> tuple[CodeType, ...]:
    """The code objects that a compiled or plain callable stands for, wrappers included.

    Args:
        obj: a function, method, module or what `compile` made of one.
    """
    found: dict[int, CodeType] = {}
    seen: set[int] = set()
    while obj is not None and id(obj) not in seen:
        seen.add(id(obj))
        code = getattr(obj, "__code__", None)
        if not isinstance(code, CodeType) and not isinstance(obj, type):
            method = getattr(type(obj), "forward", None) or vars(type(obj)).get("__call__")
            code = getattr(method, "__code__", None)
        if isinstance(code, CodeType):
            found[id(code)] = code
        obj = _unwrapped(obj)
    return tuple(found.values())


def _unwrapped(obj: Any) -> Any:
    namespace = getattr(obj, "__dict__", {})
    for name in ("_orig_mod", "__wrapped__"):
        if name in namespace:
            return namespace[name]
    modules = namespace.get("_modules")
    if isinstance(modules, dict) and "_orig_mod" in modules:
        return modules["_orig_mod"]
    return getattr(obj, "__func__", None)


@contextlib.contextmanager
def observe(root: str | None = None) -> Iterator[Report]:
    """Collects what the engine does in this process, in all threads, while the block runs.

    Args:
        root: folder that file names are relative to; the current one if None.

    Yields:
        A Report that grows while the block runs and stays as it is afterwards.

    Raises:
        TypeError: `root` isn't a path.

    Example:
        >>> with observe() as report:
        ...     pass
        >>> report.counts["recompiles"]
        0
    """
    if root is not None and not isinstance(root, (str, os.PathLike)):
        raise TypeError(f"observe: root must be a folder's path, not {root!r}")
    seen: list[ev.Event] = []
    ev.observers.add(seen.append)
    try:
        yield Report(seen, root=root)
    finally:
        ev.observers.remove(seen.append)
