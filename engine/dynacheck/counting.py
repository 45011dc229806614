"""From events to records, in one pass, by the counting rules that hold for every engine.

A graph is one handed to a backend and kept; a break is a distinct place (file, line, reason); a recompile is
an entry added to a code object that already had one; an eager run counts once per code, cause and call.
Every cause has a key without line numbers: `break:DC103@model.py:Net.forward`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dynacheck import events as ev
from dynacheck import hints, places, reasons
from dynacheck.records import (
    CacheEntry,
    Call,
    Change,
    EagerRun,
    Graph,
    GraphBreak,
    Recompile,
    Records,
    Skipped,
)


class Builder:
    """One pass over events."""

    def __init__(self, events: tuple[ev.Event, ...], root: str) -> None:
        self.events = events
        self.root = root
        self.graphs: list[tuple[tuple[int, str], Graph]] = []
        self.breaks: dict[tuple[str, int, str], GraphBreak] = {}
        self.recompiles: list[Recompile] = []
        self.entries: list[CacheEntry] = []
        self.skips: list[Skipped] = []
        self.left_alone: dict[tuple[Any, ...], Skipped] = {}
        self.eager: dict[tuple[Any, str, int], EagerRun] = {}
        self.calls: dict[int, Call] = {}
        self.failures: list[ev.Event] = []
        self.limits: dict[tuple[ev.CodeRef, int], str] = {}
        self.per_code: Counter[tuple[int, int]] = Counter()
        self.again: set[tuple[int, str]] = set()  # (epoch, compile id) of entries that were recompiles
        self.epoch = 0
        self.targets: dict[int, ev.CodeRef] = {}
        self.made_at: dict[tuple[Any, int, int], ev.StackLine] = {}  # the call that an entry was made in

    def finish(self) -> Records:
        for event in self.events:
            handler = _HANDLERS.get(type(event))
            if handler is not None:
                handler(self, event)
        eager = tuple(self.eager.values())
        by_call: dict[int, list[str]] = {}
        for run in eager:
            by_call.setdefault(run.call, []).append(run.cause)
        return Records(
            tuple(replace(g, recompile=key in self.again) for key, g in self.graphs),
            tuple(self.breaks.values()),
            tuple(self.recompiles),
            tuple(self.entries),
            tuple(self.skips),
            eager,
            tuple(replace(c, eager=tuple(by_call.get(c.number, ()))) for c in self.calls.values()),
            max(self.per_code.values(), default=0),
            tuple(self.failures),
            tuple(self.left_alone.values()),
        )

    def name(self, file: str) -> str:
        return places.display_name(file, self.root)

    def named(self, event: Any) -> ev.CodeRef:
        """The event's code; where that is a frame of the engine's around what has none, what was called."""
        code: ev.CodeRef = event.code
        return self.targets.get(event.call, code) if places.is_engine(code.file) else code

    def changes(self, miss: ev.EntryMiss, *, decided: bool, event: Any) -> tuple[Change, ...]:
        code = self.named(event) if places.is_engine(event.code.file) else None
        call = self.made_at.get(self._entry_key(event, miss.entry))
        guards = event.guards if type(event) is ev.EntryAdded else ()
        rows = [_in_users_code(through_wrapper(self._tidy(row), code), call) for row in _rows_of(miss)]
        return tuple(
            Change(
                row.source, row.kind, row.then, row.now, self.name(row.file) if row.file else "", row.line,
                row.text, row.detail, hints.hint_for(row, rows, guards), decided and i == 0, row.path, row.file,
                row.function, hints.varies_now(row, guards),
            )
            for i, row in enumerate(rows)
        )  # fmt: skip

    def _entry_key(self, event: Any, index: int) -> tuple[Any, int, int]:
        return (event.code, id(event.code.code)), self.epoch, index

    def _tidy(self, row: ev.ChangeRow) -> ev.ChangeRow:
        """Descriptions name files as the report does."""

        def tidy(value: Any) -> Any:
            if not isinstance(value, str) or row.kind not in ("code", "identity", "type", "value"):
                return value
            if row.kind == "value" and not isinstance(value, ev.Named):
                return value
            return ev.Named(_FILE.sub(lambda m: f"({self.name(m[1])}:{m[2]})", value))

        return replace(row, then=tidy(row.then), now=tidy(row.now))

    def call_started(self, event: ev.CallStarted) -> None:
        if event.target is not None:
            self.targets[event.call] = event.target
        function = event.target.qualname if event.target else ""
        self.calls[event.call] = Call(event.call, function, "running", event.where, False, ())

    def call_finished(self, event: ev.CallFinished) -> None:
        have = self.calls.get(event.call)
        if have is None:  # began before we looked
            have = Call(event.call, event.target.qualname if event.target else "", "running", None, False, ())
        self.calls[event.call] = replace(have, outcome=event.outcome, raised=event.raised)

    def graph(self, event: ev.GraphCaptured) -> None:
        code = self.named(event)
        source = event.graph if callable(event.graph) else lambda: str(event.graph)
        record = Graph(
            code.qualname, self.name(code.file), code.line, event.backend, event.nodes, event.inputs,
            str(event.compile_id), event.seconds, False, event.call, source,
        )  # fmt: skip
        self.graphs.append(((self.epoch, str(event.compile_id)), record))

    def entry(self, event: ev.EntryAdded) -> None:
        code = self.named(event)
        self.per_code[self.epoch, event.compile_id.frame] += 1
        file = self.name(code.file)
        self.entries.append(
            CacheEntry(
                code.qualname,
                file,
                code.line,
                code.resume_line,
                event.index,
                event.has_graph,
                event.guards,
                event.seconds,
                event.call,
            )
        )
        if event.trigger is not None:
            self.made_at[self._entry_key(event, event.index)] = event.trigger
        if not event.recompile:
            return
        self.again.add((self.epoch, str(event.compile_id)))
        rows = tuple(self.changes(miss, decided=i == 0, event=event) for i, miss in enumerate(event.misses))
        nearest = rows[0] if rows else ()
        kind, source = (nearest[0].kind, _key_source(nearest[0])) if nearest else ("other", "unknown")
        self.recompiles.append(
            Recompile(
                f"recompile:{kind}:{source}@{file}:{code.qualname}",
                code.qualname,
                file,
                code.line,
                code.resume_line,
                event.index,
                event.seconds,
                event.trigger,
                nearest,
                rows[1:],
                event.call,
                code.branch,
            )
        )

    def broke(self, event: ev.GraphBroke) -> None:
        line = places.user_line(event.stack)
        path, number, function, text = (
            (line.file, line.line, line.function, line.text)
            if line is not None
            else (event.code.file, event.code.line, event.code.qualname, "")
        )
        file = self.name(path)
        place = (file, number, event.reason)
        have = self.breaks.get(place)
        code = self.named(event)
        gave_up = f"eager:skip@{self.name(code.file)}:{code.qualname}" if event.skipped else ""
        message, hint = event.message, event.hint
        inner = event.stack[-1] if event.stack else None
        if event.reason == reasons.EXPLICIT_BREAK.id and inner is not None and places.is_library(inner.file):
            message = (
                f"{self.name(inner.file)}:{inner.line} asks for a graph break."  # not the user's to remove
            )
            hint = reasons.SKIPPED_CALL.hint
        if have is not None:
            self.breaks[place] = replace(
                have,
                times=have.times + 1,
                skipped=have.skipped or event.skipped,
                eager_cause=have.eager_cause or gave_up,
            )
            return
        self.breaks[place] = GraphBreak(
            f"break:{event.reason}@{file}:{function}", event.reason, file, number, function,
            places.package_of(path).partition(".")[0], title_of(event.reason), message, hint,
            text, event.stack, 1, event.skipped, gave_up, path,
        )  # fmt: skip

    def leave_alone(self, event: ev.FrameLeftAlone) -> None:
        code = event.code
        file = self.name(code.file)
        self.left_alone.setdefault(
            (code, id(code.code), event.reason),
            Skipped(code.qualname, file, code.line, event.reason, event.message, False, event.call),
        )

    def skip(self, event: ev.FrameSkipped) -> None:
        code = self.named(event)
        self.skips.append(
            Skipped(
                code.qualname,
                self.name(code.file),
                code.line,
                event.reason,
                event.message,
                event.caused_by_break,
                event.call,
                self.changes(event.misses[0], decided=True, event=event) if event.misses else (),
            )
        )

    def ran_eagerly(self, event: ev.RanEagerly) -> None:
        rows = self.changes(event.misses[0], decided=True, event=event) if event.misses else ()
        message = self.limits.get((event.code, id(event.code.code)), "") if event.cause == "limit" else ""
        self._eager(
            event, self.named(event), event.cause, message or event.message or title_of(event.reason), rows
        )

    def limit_reached(self, event: ev.LimitReached) -> None:
        self.limits[event.code, id(event.code.code)] = f"{event.limit_name} ({event.limit}) is reached"

    def fault(self, event: ev.InternalFault) -> None:
        self.failures.append(event)
        self._eager(event, event.code, "fault", event.error, ())

    def _eager(
        self, event: ev.Event, code: ev.CodeRef, why: str, message: str, changes: tuple[Change, ...]
    ) -> None:
        file = self.name(code.file)
        cause = f"eager:{why}@{file}:{code.qualname}"
        key = ((code, id(code.code)), cause, event.call)
        self.eager.setdefault(
            key, EagerRun(cause, why, code.qualname, file, code.line, message, changes, event.call)
        )

    def backend_failed(self, event: ev.BackendFailed) -> None:
        self.failures.append(event)

    def was_reset(self, event: ev.WasReset) -> None:
        self.epoch += 1


def through_wrapper(row: ev.ChangeRow, ref: ev.CodeRef | None) -> ev.ChangeRow:
    """A failed guard of the frame that an engine puts around what has none of its own, in the words of what is called.

    Args:
        row: a guard on `fn`, `args` or `kwargs` of such a frame.
        ref: what is called; None if the guard is of the user's own frame.
    """
    if places.is_engine(row.file):
        row = replace(row, file="", line=0, text="", function="")
    if ref is None or ref.code is None:
        return row
    code = ref.code
    names = code.co_varnames[: code.co_argcount]
    method = names[:1] == ("self",)

    def name(match: re.Match[str]) -> str:
        if match["fn"]:
            return "self" if method else "fn"
        if match["key"]:
            return match["key"]
        place = int(match["place"]) + method
        return names[place] if place < len(names) else match[0]

    def named(value: Any) -> Any:
        """What was assumed or came, where that is a condition or the sizes in one."""
        if isinstance(value, dict):
            return {named(key): now for key, now in value.items()}
        return type(value)(_WRAPPED.sub(name, value)) if isinstance(value, str) else value

    if row.kind in ("size", "stride", "expression"):
        row = replace(row, then=named(row.then), now=named(row.now))
    return replace(row, source=_WRAPPED.sub(name, row.source), detail=_WRAPPED.sub(name, row.detail))


def _in_users_code(row: ev.ChangeRow, call: ev.StackLine | None) -> ev.ChangeRow:
    """A failed guard that no line of the user's needed (a line of torch did, or the inputs themselves): the call that
    the entry was made in assumed it."""
    if call is None or row.kind == "region" or (row.line and not places.is_library(row.file)):
        return row
    return replace(row, file=call.file, line=call.line, text=call.text, function="")


_WRAPPED = re.compile(r"(?<![\w.])(?:(?P<fn>fn)\b|args\[(?P<place>\d+)\]|kwargs\['(?P<key>\w+)'\])")


def _key_source(change: Change) -> str:
    """The source as cause keys have it: of a relation, its values in one order, whichever engine found it."""
    if change.kind not in ("expression", "aliasing"):
        return change.source
    return ", ".join(sorted(set(change.source.split(", "))))


def _rows_of(miss: ev.EntryMiss) -> tuple[ev.ChangeRow, ...]:
    """The failed guards of an entry; another compile region is a change too."""
    if miss.changes or not miss.region_differs:
        return miss.changes
    first, second = "the first compile of the function", "a compile with another backend, dynamic= or options"
    return (ev.ChangeRow("region", "compile", "compile", ev.Named(first), ev.Named(second)),)


_FILE = re.compile(r"\((/[^():]+):(\d+)\)")


def title_of(reason: str) -> str:
    """A reason's few words; the id itself if it isn't one of ours."""
    known = {r.id: r for r in reasons.all_reasons()}.get(reason)
    return known.title if known else reason


_HANDLERS: dict[type[ev.Event], Callable[[Builder, Any], None]] = {
    ev.CallStarted: Builder.call_started,
    ev.CallFinished: Builder.call_finished,
    ev.GraphCaptured: Builder.graph,
    ev.EntryAdded: Builder.entry,
    ev.GraphBroke: Builder.broke,
    ev.FrameSkipped: Builder.skip,
    ev.FrameLeftAlone: Builder.leave_alone,
    ev.RanEagerly: Builder.ran_eagerly,
    ev.LimitReached: Builder.limit_reached,
    ev.InternalFault: Builder.fault,
    ev.BackendFailed: Builder.backend_failed,
    ev.WasReset: Builder.was_reset,
}
