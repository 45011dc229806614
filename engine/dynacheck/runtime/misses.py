"""Why no entry of a code object served a frame, as events carry it."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from dynacheck import _C
from dynacheck.events import ChangeRow, EntryMiss, failed_guards
from dynacheck.guards import Failure, explain_miss
from dynacheck.runtime.codes import EntryRecord
from dynacheck.sources import FrameView
from dynacheck.translate.spelling import spelled


def explain(
    entries: Sequence[_C.Entry],
    region: _C.Region,
    func: FunctionType,
    args: tuple[Any, ...],
    died: EntryRecord | None = None,
) -> tuple[EntryMiss, ...]:
    """All guards that failed, per entry; entries of this region first, the nearest first.

    Args:
        entries: counted entries of the code object, in any region.
        region: the compile's.
        func: the frame's function.
        args: values of its argument slots.
        died: an entry that went with an object it was guarded by.
    """
    mine = [e.owner for e in entries if e.region is region and isinstance(e.owner, EntryRecord)]
    if died is not None:
        mine.append(died)
    frame = FrameView(func, args)
    found = explain_miss([record.guards for record in mine], frame)
    misses = [
        EntryMiss(mine[entry.index].index, tuple(_row(failure, frame) for failure in entry.failures))
        for entry in found
    ]
    misses += [EntryMiss(_index(e), (), True) for e in entries if e.region is not region]
    return tuple(misses)


def _index(entry: _C.Entry) -> int:
    assert isinstance(entry.owner, EntryRecord)
    return entry.owner.index


def _row(failure: Failure, frame: FrameView) -> ChangeRow:
    change, where = failure.change, failure.where
    file, line, text = ("", 0, "") if where is None else (where.file, where.line, where.text)
    return ChangeRow(
        change.kind,
        spelled(failure, frame),
        failure.path,
        change.then,
        change.now,
        change.detail,
        file,
        line,
        text or (linecache.getline(file, line).strip() if line else ""),
        failure.text,
        function="" if where is None else where.function,
    )


def guard_lines(misses: Sequence[EntryMiss]) -> list[str]:
    """All that failed in words, for messages: a guard a line, after the entry if there are several."""
    lines = []
    for miss in misses:
        if miss.region_differs:
            lines.append(f"- entry {miss.entry} belongs to another compile of the function")
        entry = f"entry {miss.entry}: " if len(misses) > 1 else ""
        lines += [f"- {entry}{guard}" for guard in failed_guards(miss.changes)]
    return lines
