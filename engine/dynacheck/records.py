"""The records a Report is made of: graphs, breaks, recompiles, entries, skipped frames, eager runs, calls."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dynacheck import places
from dynacheck.events import SIGNATURE, ChangeRow, Event, StackLine


@dataclass(frozen=True, slots=True)
class Change:
    """One value that differed from what an entry assumed.

    Args:
        source: the user's spelling (`self.scale`).
        kind: what about it (see the table of guard kinds).
        then: the assumed value.
        now: the value that came.
        file: file of the line that needed it, as reports show it.
        line: that line, 0 if unknown.
        text: the line's text.
        detail: which part of the value, or "".
        hint: what to do, or "".
        decided: this guard decided the cause; the others only differ.
        path: the logs' spelling (`L['self'].scale`).
        origin: absolute file name of the line that needed it.
        function: that line's function.
        varies: a number that the new entry takes as it comes.
    """

    source: str
    kind: str
    then: Any
    now: Any
    file: str = ""
    line: int = 0
    text: str = ""
    detail: str = ""
    hint: str = ""
    decided: bool = False
    path: str = ""
    origin: str = ""
    function: str = ""
    varies: bool = False

    @property
    def subject(self) -> str:
        """What changed, in the user's words: `self.scale`, `x (size of dim 0)`, `len(batch)`, `x.dtype`."""
        source = self.source
        if self.kind == "expression":
            return str(self.then)
        if self.detail == SIGNATURE:
            return "the call's arguments"
        if self.kind in ("length", "hooks"):
            return f"len({source})"
        if self.kind == "rank":
            return f"{source}.dim()"
        if self.kind in ("keys", "type"):
            return f"{self.kind} of {source}"
        if self.kind in ("dtype", "device", "requires_grad", "layout"):
            return f"{source}.{self.kind}"
        extra = self.detail if self.kind != "aliasing" and self.detail != source else ""
        return f"{source} ({extra})" if extra else source

    @property
    def was(self) -> str:
        """The assumed value as reports print it."""
        if self.kind == "expression":
            return f"holds: {self.detail}" if self.detail else "holds"
        if self.detail == SIGNATURE:
            return str(self.then)
        if is_condition(self):
            exactly = ONE_NUMBER.fullmatch(self.then)
            return exactly[1] if exactly else str(self.then)
        return _shown(self.kind, self.then)

    @property
    def became(self) -> str:
        """The value that came, as reports print it."""
        if self.detail == SIGNATURE:
            return str(self.now)
        return _shown(self.kind, self.now)


@dataclass(frozen=True, slots=True)
class Graph:
    """One graph handed to the backend and kept. `recompile`: made for an entry that was a recompile."""

    function: str
    file: str
    line: int
    backend: str
    nodes: int
    inputs: tuple[str, ...]
    compile_id: str
    seconds: float
    recompile: bool
    call: int
    source: Callable[[], str]

    @property
    def code(self) -> str:
        """The graph's Python source."""
        return self.source()


@dataclass(frozen=True, slots=True)
class GraphBreak:
    """One place where translation stopped.

    `times`: in how many compiles; `skipped`: the frame was given up there; `eager_cause`: that run's key.
    """

    cause: str
    reason: str
    file: str
    line: int
    function: str
    owner: str
    title: str
    message: str
    hint: str
    text: str
    stack: tuple[StackLine, ...]
    times: int
    skipped: bool
    eager_cause: str
    path: str

    def owned_by(self, package: str) -> bool:
        """True if the user's innermost line is in that package."""
        return places.belongs_to(self.path, package)


@dataclass(frozen=True, slots=True)
class Recompile:
    """An entry added to a code object that had one.

    Args:
        cause: its key.
        function: the function that was compiled again.
        file: its file.
        line: its first line.
        resume_line: where it goes on, for the rest of a function after a break.
        entry: how many entries there were before.
        seconds: what the translation took, backend included.
        trigger: the user's line that called it.
        changes: failed guards of the nearest entry, the deciding one first.
        others: failed guards of the other entries.
        call: number of the compiled call.
        branch: whether the condition at `resume_line` was true, for what is behind a branch on a tensor.
    """

    cause: str
    function: str
    file: str
    line: int
    resume_line: int | None
    entry: int
    seconds: float
    trigger: StackLine | None
    changes: tuple[Change, ...]
    others: tuple[tuple[Change, ...], ...]
    call: int
    branch: bool | None = None

    @property
    def rest(self) -> str:
        """Which part of the function it is: "" for the whole, else e.g. ` after line 10, true`."""
        if self.resume_line is None:
            return ""
        return f" after line {self.resume_line}" + (
            "" if self.branch is None else f", {str(self.branch).lower()}"
        )


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One guarded piece of rewritten code."""

    function: str
    file: str
    line: int
    resume_line: int | None
    entry: int
    has_graph: bool
    guards: tuple[str, ...]
    seconds: float
    call: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A frame that was looked at and not translated.

    `changes`: of one that turned out to have no tensor operation, failed guards of the nearest entry.
    """

    function: str
    file: str
    line: int
    reason: str
    message: str
    caused_by_break: bool
    call: int
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class EagerRun:
    """A frame that ran as it is, once per code, cause and call. `why` is limit, skip, stance, raised or fault."""

    cause: str
    why: str
    function: str
    file: str
    line: int
    message: str
    changes: tuple[Change, ...]
    call: int


@dataclass(frozen=True, slots=True)
class Call:
    """One outermost call of a compiled callable: `outcome` is hit, miss, eager or, while it runs, running."""

    number: int
    function: str
    outcome: str
    where: StackLine | None
    raised: bool
    eager: tuple[str, ...]


@dataclass(frozen=True)
class Records:
    """All records of a report, by kind."""

    graphs: tuple[Graph, ...]
    graph_breaks: tuple[GraphBreak, ...]
    recompiles: tuple[Recompile, ...]
    cache_entries: tuple[CacheEntry, ...]
    skipped: tuple[Skipped, ...]
    eager_runs: tuple[EagerRun, ...]
    calls: tuple[Call, ...]
    most_entries: int
    failures: tuple[Event, ...]
    left_alone: tuple[Skipped, ...] = ()


ONE_NUMBER = re.compile(r"\S+ == (-?[\d.]+)")
"""A condition that one number meets."""


def is_condition(change: Change | ChangeRow) -> bool:
    """Whether what was assumed is a condition on a number (`2 <= x.size()[0]`), not the number itself."""
    return (
        change.kind in ("value", "size", "stride")
        and isinstance(change.then, str)
        and isinstance(change.now, int | float)
    )


def show(value: Any) -> str:
    """A value as reports print it: its repr, cut at 200 characters."""
    return _cut(repr(value))


# kinds whose values are descriptions rather than values
_DESCRIBED = (
    "type",
    "identity",
    "presence",
    "code",
    "aliasing",
    "layout",
    "dispatch_keys",
    "device",
    "region",
)


def _shown(kind: str, value: Any) -> str:
    if isinstance(value, str) and kind in _DESCRIBED:
        return value
    if kind == "expression" and isinstance(value, dict):
        return ", ".join(f"{name} is {now}" for name, now in value.items())
    if kind in ("keys", "hooks") and isinstance(value, list | tuple):
        return f"[{', '.join(map(str, value))}]"
    if kind == "value" and isinstance(value, list):  # the items of a set, as text
        return f"{{{', '.join(map(str, value))}}}"
    return show(value)


def _cut(text: str) -> str:
    return text if len(text) <= 200 else text[:197] + "..."


def place(line: StackLine | None, root: str) -> list[Any] | None:
    return None if line is None else [places.display_name(line.file, root), line.line]


def break_json(record: GraphBreak, root: str) -> dict[str, Any]:
    return {
        "cause": record.cause, "reason": record.title, "message": record.message, "file": record.file,
        "line": record.line, "text": record.text, "function": record.function, "owner": record.owner,
        "times": record.times, "skipped": record.skipped, "hint": record.hint,
        "eager_cause": record.eager_cause,
        "stack": [[places.display_name(s.file, root), s.line, s.function] for s in record.stack],
    }  # fmt: skip


def change_json(change: Change) -> dict[str, Any]:
    return {
        "source": change.source, "kind": change.kind, "subject": change.subject,
        "then": _cut(change.was), "now": _cut(change.became),
        "detail": change.detail, "file": change.file, "line": change.line, "text": change.text,
        "hint": change.hint, "decided": change.decided,
    }  # fmt: skip


def recompile_json(record: Recompile, root: str) -> dict[str, Any]:
    return {
        "cause": record.cause, "code": record.function, "file": record.file, "line": record.line,
        "entry": record.entry, "seconds": round(record.seconds, 6),
        "resume_line": record.resume_line,
        "branch": record.branch,
        "triggered_at": place(record.trigger, root), "changes": [change_json(c) for c in record.changes],
    }  # fmt: skip


def eager_json(record: EagerRun) -> dict[str, Any]:
    return {
        "cause": record.cause, "why": record.why, "function": record.function, "file": record.file,
        "line": record.line, "message": record.message,
        "changes": [change_json(c) for c in record.changes], "call": record.call,
    }  # fmt: skip


def graph_json(record: Graph, longest_code: int) -> dict[str, Any]:
    """A graph as plain data, with that many lines of its source; without if there are to be none."""
    found = {
        "function": record.function, "file": record.file, "line": record.line, "nodes": record.nodes,
        "inputs": list(record.inputs), "backend": record.backend, "recompile": record.recompile,
        "seconds": round(record.seconds, 6),
    }  # fmt: skip
    if longest_code:
        lines = record.code.strip().splitlines()
        cut = [f"# ... and {len(lines) - longest_code} more lines"] if len(lines) > longest_code else []
        found["code"] = "\n".join(lines[:longest_code] + cut)
    return found
