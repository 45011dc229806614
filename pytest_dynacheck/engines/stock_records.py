"""What was seen of a run under the installed torch.compile: records, torch's own figures, budget counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType
from typing import Any

from pytest_dynacheck.engines.stock_values import Change, Snapshot

__all__ = [
    "Attempt",
    "Break",
    "Call",
    "Entry",
    "Failure",
    "Frame",
    "Graph",
    "Place",
    "Recompile",
    "Recorder",
]

Place = tuple[str, int, str]
OTHER_THREAD = "another thread made it meanwhile"  # torch looks for entries before it waits for its turn
SKIPFILES = "frame is in the Dynamo skipfiles list"


@dataclass(frozen=True, slots=True)
class Graph:
    """One GraphModule handed to a backend. ``kept`` is False when no entry came out of that frame."""

    function: str
    ops: tuple[str, ...]
    inputs: tuple[str, ...]
    text: str
    kept: bool
    seconds: float = 0.0
    backend: str = ""


@dataclass(frozen=True, slots=True)
class Break:
    """One graph break as torch logs it: place, torch's type name, what it said, the user's stack.

    ``file`` and ``line`` are the innermost place, as torch logs it; ``user`` the innermost outside libraries.
    ``skipped`` tells that the whole frame was given up; ``builtin`` names the builtin function that can't be traced.
    """

    file: str
    line: int
    reason: str
    message: str
    function: str
    stack: tuple[tuple[str, int, str], ...]
    user: tuple[str, int, str]
    skipped: bool = False
    builtin: str | None = None

    @property
    def place(self) -> Place:
        """The user's file and line, and the reason: what budgets tell apart."""
        return (self.user[0], self.user[1], self.reason)


@dataclass(frozen=True, slots=True)
class Taken:
    """What an entry's guards are about: the values at that time, and torch's global state; what its graph makes."""

    values: tuple[Snapshot, ...]
    state: Any
    made: frozenset[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Failure:
    """The first failing guard of one earlier entry, as torch writes it; what else differs.

    ``scope`` holds what the names in guards stand for, while the attempt lasts; ``needed`` is what torch says about
    the user's line that needed the guard: its text, the end of its file's name, its number.
    """

    entry: str
    guard: str
    changes: tuple[Change, ...] = ()
    scope: Mapping[str, Any] = field(default_factory=dict, repr=False)
    taken: Taken | None = field(default=None, repr=False)
    other_region: bool = False
    needed: str = ""


@dataclass(frozen=True, slots=True)
class Recompile:
    """A code object that had entries was translated again. ``added`` is False when no entry came out."""

    code: CodeType
    failures: tuple[Failure, ...]
    added: bool

    @property
    def guards(self) -> tuple[str, ...]:
        """The first failing guard of every earlier entry."""
        return tuple(failure.guard for failure in self.failures)


@dataclass(frozen=True, slots=True)
class Entry:
    """One guarded piece of rewritten code added to a code object's cache."""

    code: CodeType
    compile_id: str
    has_graph: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that torch looked at. ``tried`` and ``translated`` are torch's own frame counters."""

    code: CodeType
    tried: bool
    translated: bool
    added: bool
    given_up: bool
    limit: bool
    skip_reason: str | None


@dataclass(slots=True)
class Call:
    """One outermost call of a compiled callable; ``outcome`` is hit, miss or eager.

    ``refused`` are frames that no entry served and that torch didn't look at again, by the line of their call;
    ``stance`` is set if it kept torch from compiling; ``given_up`` are codes that ran eagerly after a break.
    """

    number: int = 0
    target: Any = None
    hits: int = 0
    added: int = 0
    refused: list[tuple[CodeType, int]] = field(default_factory=list)
    stance: str = ""
    given_up: set[CodeType] = field(default_factory=set)

    @property
    def outcome(self) -> str:
        """Miss if an entry was added, else hit if any frame's guards passed, else eager."""
        return "miss" if self.added else "hit" if self.hits else "eager"


class Attempt:
    """A frame while torch works on it, and what came of it.

    ``output`` is torch's OutputGraph, once a backend was called; ``caller`` the frame that called;
    ``entries_before`` how many entries the code had.
    """

    def __init__(self, code: CodeType, caller: FrameType | None = None, entries_before: int = 0) -> None:
        self.code = code
        self.entries_before = entries_before
        self.caller = caller
        self.breaks: list[Break] = []
        self.graphs: list[Graph] = []
        self.guards: tuple[Snapshot, ...] = ()
        self.guard_texts: tuple[str, ...] = ()
        self.made: frozenset[tuple[int, ...]] = frozenset()
        self.recompile: tuple[Failure, ...] | None = None
        self.tried = self.translated = False
        self.unlogged: Any = None
        self.error: BaseException | None = None
        self.output: Any = None
        self.entry: Entry | None = None
        self.frame: Frame | None = None
        self.seconds = 0.0
        self.state: Any = None

    @property
    def gave_up(self) -> bool:
        """True if a break made torch leave the frame to plain Python."""
        return self.frame is not None and self.frame.given_up


@dataclass(slots=True)
class Recorder:
    """What one recording saw: records, torch's own figures (``raw``) and what budgets count (``counts``)."""

    silent: frozenset[str] = frozenset()
    backend_calls: list[Graph] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)
    all_recompiles: list[Recompile] = field(default_factory=list)
    added: list[Entry] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def opened(self, call: Call, caller: FrameType) -> None:
        """A compiled callable is called from a frame."""
        self.calls.append(call)

    def closed(self, call: Call, raised: bool) -> None:
        """The call returned or raised."""

    def gave_up(self, code: CodeType, call: Call | None) -> None:
        """A frame that torch gave up at a break in an earlier call runs eagerly again."""

    def add(self, attempt: Attempt, call: Call | None) -> None:
        """torch is done with a frame."""
        self.backend_calls += attempt.graphs
        self.breaks += attempt.breaks
        if attempt.recompile is not None:
            kept = tuple(replace(failure, scope={}, taken=None) for failure in attempt.recompile)
            self.all_recompiles.append(Recompile(attempt.code, kept, attempt.entry is not None))
        if attempt.entry is not None:
            self.added.append(attempt.entry)
        frame = attempt.frame
        if frame is not None and (attempt.tried or frame.skip_reason not in (None, SKIPFILES)):
            self.frames.append(frame)

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """Graphs that are served; those of a frame given up later are left out."""
        return tuple(graph for graph in self.backend_calls if graph.kept)

    @property
    def break_places(self) -> tuple[Place, ...]:
        """Distinct places in the order they were met."""
        return tuple(dict.fromkeys(found.place for found in self.breaks))

    @property
    def recompiles(self) -> tuple[Recompile, ...]:
        """Recompiles that added an entry; one refused at the limit or without a graph is not among them."""
        return tuple(found for found in self.all_recompiles if found.added)

    @property
    def entries_by_code(self) -> Counter[CodeType]:
        """How many entries each code object got."""
        return Counter(entry.code for entry in self.added)

    @property
    def entries(self) -> int:
        """Entries of all code objects together."""
        return len(self.added)

    @property
    def max_entries(self) -> int:
        """The most entries of any one code object."""
        return max(self.entries_by_code.values(), default=0)

    @property
    def limit_hits(self) -> tuple[Frame, ...]:
        """Frames refused at a recompile limit."""
        return tuple(frame for frame in self.frames if frame.limit)

    @property
    def given_up(self) -> tuple[Frame, ...]:
        """Frames left to plain Python because of a break that torch can't resume from."""
        return tuple(frame for frame in self.frames if frame.given_up)

    def _known(self, hook: str, number: int) -> int | None:
        return None if hook in self.silent else number

    @property
    def raw(self) -> dict[str, int | None]:
        """Torch's own figures: backend calls, records of its graph_breaks and recompiles logs, frames."""
        return {
            "graphs": self._known("graphs", len(self.backend_calls)),
            "breaks": self._known("breaks", len(self.breaks)),
            "recompiles": self._known("recompiles", len(self.all_recompiles)),
            "entries": self._known("frames", self.entries),
            "tried": self._known("translations", sum(frame.tried for frame in self.frames)),
            "translated": self._known("translations", sum(frame.translated for frame in self.frames)),
        }

    @property
    def counts(self) -> dict[str, int | None]:
        """The numbers budgets are about."""
        return {
            "graphs": self._known("graphs", len(self.graphs)),
            "graph_breaks": self._known("breaks", len(self.break_places)),
            "recompiles": self._known("recompiles", len(self.recompiles)),
            "cache_entries": self._known("frames", self.max_entries),
        }

    @property
    def outcomes(self) -> tuple[str, ...] | None:
        """Hit, miss or eager for every call in order; None if torch doesn't tell."""
        return (
            None if self.silent & {"calls", "hits", "frames"} else tuple(call.outcome for call in self.calls)
        )
