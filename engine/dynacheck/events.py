"""What the engine did, as typed records, and who is told.

Events are the only seam between the engine and its consumers (Report, logs, the plugin, JSON). They are emitted when
an attempt is committed, never by an attempt that is thrown away. Observers are process-wide: worker threads compile too.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

SIGNATURE = "arguments of the call"
"""The detail of a change of `*args` or `**kwargs` of the frame itself: then and now are the arguments, in words."""


class Named(str):
    """A value told by a name or a description instead of its repr: prints without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class CompileId:
    """`frame` counts code objects, `attempt` the entries of one: printed as torch prints it, `0/1`."""

    frame: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.frame}/{self.attempt}"


@dataclass(frozen=True, slots=True)
class CodeRef:
    """A code object by name; of a resume function: the function it continues.

    Args:
        file: absolute file name.
        line: first line.
        name: the function's name.
        qualname: its qualified name (a resume function has that of its origin).
        resume_line: where a resume function continues, or None.
        code: the code object itself (of the origin, for a resume function), for identity.
        branch: for a resume function behind a branch at `resume_line`: whether the condition was true there.
    """

    file: str
    line: int
    name: str
    qualname: str
    resume_line: int | None = None
    code: CodeType | None = field(default=None, compare=False, repr=False)
    branch: bool | None = None

    @property
    def rest(self) -> str:
        """For logs: which part of the function a resume function is; "" for a whole one."""
        if self.branch is not None:
            return f" (after line {self.resume_line}, {str(self.branch).lower()})"
        return f" (from line {self.resume_line} on)" if self.resume_line else ""


@dataclass(frozen=True, slots=True)
class StackLine:
    """One user line of a stack, outermost first in tuples; `function` is the qualified name."""

    file: str
    line: int
    function: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One failed guard: what was assumed, what is there now.

    Args:
        kind: one of `guards.base.KINDS`.
        source: the user's spelling (`self.scale`).
        path: the logs' spelling (`L['self'].scale`).
        then: the assumed value, plain data.
        now: the current value, plain data.
        detail: which part of the value, or "".
        file: file of the line that needed it.
        line: that line, or 0 if unknown.
        text: the line's text.
        guard: the guard as logs spell it.
        hint: what to do, or "".
        function: the line's function.
        trait: of a tensor whose size differs: "grown" (the entry's own graph made it, longer than what it was given),
            "owned" (a parameter or buffer), "marked static", or "fixed" (nothing becomes dynamic: `dynamic=False`); of
            a number that differs "fixed"; of a value of `self` that differs "of another module" if the entry was made
            for another instance; or "".
    """

    kind: str
    source: str
    path: str
    then: Any
    now: Any
    detail: str = ""
    file: str = ""
    line: int = 0
    text: str = ""
    guard: str = ""
    hint: str = ""
    function: str = ""
    trait: str = ""


@dataclass(frozen=True, slots=True)
class EntryMiss:
    """All failed guards of one existing entry (nearest entry first in tuples)."""

    entry: int
    changes: tuple[ChangeRow, ...]
    region_differs: bool = False


def failed_guards(changes: Sequence[ChangeRow], named: Callable[[str], str] = str) -> list[str]:
    """Failed guards as logs spell them, one a line, with all that is there now and the user's line beside each.

    Args:
        changes: the failed guards.
        named: how to name a file.

    Example:
        >>> failed_guards([ChangeRow("value", "n", "L['n']", 2, 3, file="model.py", line=5, text="x * n", function="f")])
        ["L['n'] == 2  # now 3  # x * n  # model.py:5 in f"]
    """
    parts: dict[str, list[ChangeRow]] = {}
    for change in changes:
        parts.setdefault(change.guard or f"{change.path} == {change.then!r}", []).append(change)
    return [
        f"{guard}  # now {', '.join(_now(row, len(rows) > 1) for row in rows)}{_needed(rows[0], named)}"
        for guard, rows in parts.items()
    ]


def _needed(change: ChangeRow, named: Callable[[str], str]) -> str:
    if not change.line:
        return ""
    where = f"{named(change.file)}:{change.line}{f' in {change.function}' if change.function else ''}"
    return f"  # {change.text.strip()}  # {where}"


def _now(change: ChangeRow, several: bool) -> str:
    part = change.detail or (change.kind if several else "")
    text = repr(change.now)
    return (text if len(text) <= 120 else text[:117] + "...") + (f" ({part})" if part else "")


@dataclass(frozen=True, slots=True)
class Event:
    """Base. `call` is the number of the compiled call (of any thread) during which it happened, 0 outside."""

    time: float = field(default_factory=time.monotonic, kw_only=True)
    thread: int = field(default_factory=threading.get_ident, kw_only=True)
    call: int = field(default=0, kw_only=True)


@dataclass(frozen=True, slots=True)
class CallStarted(Event):
    """A compiled callable was called. `where` is the caller's line."""

    target: CodeRef | None
    where: StackLine | None


@dataclass(frozen=True, slots=True)
class CallFinished(Event):
    """The call returned or raised; `outcome` is hit, miss or eager."""

    target: CodeRef | None
    outcome: str
    hits: int
    raised: bool


@dataclass(frozen=True, slots=True)
class GraphCaptured(Event):
    """A graph was handed to the backend and kept."""

    compile_id: CompileId
    code: CodeRef
    backend: str
    nodes: int
    inputs: tuple[str, ...]
    graph: Any = field(compare=False, repr=False)  # a function that gives the graph's Python source
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class EntryAdded(Event):
    """An entry was added to a code object's cache.

    Args:
        index: how many entries of this code object were there before, in any region.
        has_graph: False for a frame that ends in a break before any operation.
        misses: for each earlier entry all guards that failed, nearest first: () for the first entry.
        recompile: the code object already had an entry in the same isolation scope.
        seconds: time of the whole translation, backend included.
        listing: a function that gives the rewritten bytecode as text, or None.
        tree: a function that gives the guards by value, with lines, as lines of text; or None.
    """

    compile_id: CompileId
    code: CodeRef
    index: int
    has_graph: bool
    recompile: bool
    misses: tuple[EntryMiss, ...]
    trigger: StackLine | None
    guards: tuple[str, ...] = ()
    seconds: float = 0.0
    values: tuple[tuple[str, Any], ...] = ()
    listing: Any = field(default=None, compare=False, repr=False)
    tree: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GraphBroke(Event):
    """Translation stopped at a place and goes on in a resume function, or gave the frame up (`skipped`)."""

    compile_id: CompileId
    code: CodeRef
    reason: str
    message: str
    hint: str
    stack: tuple[StackLine, ...]  # innermost last; library frames included
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class FrameSkipped(Event):
    """A frame was looked at and not translated; `caused_by_break` frames run eagerly because of a break.

    `misses`: of a frame that turned out to have no tensor operation, why no entry served it.
    """

    code: CodeRef
    reason: str
    message: str
    stack: tuple[StackLine, ...] = ()
    caused_by_break: bool = False
    misses: tuple[EntryMiss, ...] = ()


@dataclass(frozen=True, slots=True)
class FrameLeftAlone(Event):
    """A frame of code that is never translated, by rule or because it is disabled: told once per code object."""

    code: CodeRef
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Cautioned(Event):
    """What was translated does something else than plain Python, though rarely anything that can be seen."""

    code: CodeRef
    message: str
    stack: tuple[StackLine, ...] = ()


@dataclass(frozen=True, slots=True)
class LimitReached(Event):
    """A code object reached its recompile limit; `values` is how the value that kept changing did."""

    compile_id: CompileId
    code: CodeRef
    limit_name: str
    limit: int
    misses: tuple[EntryMiss, ...]
    trigger: StackLine | None = None


@dataclass(frozen=True, slots=True)
class RanEagerly(Event):
    """A frame was refused and ran as it is: `cause` is limit, stance, skip or raised; `message` says more, or ""."""

    code: CodeRef
    cause: str
    reason: str = ""
    misses: tuple[EntryMiss, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True)
class BackendFailed(Event):
    """A backend raised; nothing was added."""

    compile_id: CompileId
    code: CodeRef
    backend: str
    error: str


@dataclass(frozen=True, slots=True)
class InternalFault(Event):
    """The engine itself failed on a frame, which then ran eagerly."""

    code: CodeRef
    error: str
    traceback: str


@dataclass(frozen=True, slots=True)
class WasReset(Event):
    """`reset()` dropped all entries."""


Observer = Callable[[Event], None]


class Observers:
    """The process-wide list of observers. An observer that raises is an error of the observer and propagates."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._list: tuple[Observer, ...] = ()
        self.changed: list[Callable[[bool], None]] = []  # told when the list becomes empty or not

    @property
    def active(self) -> bool:
        return bool(self._list)

    def add(self, observer: Observer) -> None:
        with self._lock:
            self._list = (*self._list, observer)
            first = len(self._list) == 1
        if first:
            for fn in self.changed:
                fn(True)

    def when_changed(self, fn: Callable[[bool], None]) -> None:
        """Have a function told whether anybody observes: now if somebody does, and whenever that changes."""
        self.changed.append(fn)
        if self.active:
            fn(True)

    def remove(self, observer: Observer) -> None:
        with self._lock:
            kept = list(self._list)
            kept.remove(observer)
            self._list = tuple(kept)
            last = not kept
        if last:
            for fn in self.changed:
                fn(False)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Nobody observes, in any thread, until the block ends."""
        with self._lock:
            before, self._list = self._list, ()
        for fn in self.changed if before else ():
            fn(False)
        try:
            yield
        finally:
            with self._lock:
                self._list = (*before, *self._list)
            for fn in self.changed if before else ():
                fn(True)

    def emit(self, event: Event) -> None:
        for observer in self._list:
            observer(event)


observers = Observers()
