"""Why no entry of a code object served a frame, as events carry it."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

import torch

from dynacheck import _C, config
from dynacheck.events import SIGNATURE, ChangeRow, EntryMiss, Named, failed_guards
from dynacheck.guards import Change, Failure, explain_miss
from dynacheck.runtime.codes import EntryRecord
from dynacheck.runtime.dynamic import is_owned
from dynacheck.runtime.regions import info_of
from dynacheck.sources import FrameView, Local, instance_dict, is_a, type_lookup
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
        EntryMiss(
            mine[entry.index].index,
            tuple(_row(failure, frame, mine[entry.index], region) for failure in entry.failures),
        )
        for entry in found
    ]
    misses += [EntryMiss(_index(e), (), True) for e in entries if e.region is not region]
    return tuple(misses)


def _index(entry: _C.Entry) -> int:
    assert isinstance(entry.owner, EntryRecord)
    return entry.owner.index


def _trait(failure: Failure, frame: FrameView, record: EntryRecord, region: _C.Region) -> str:
    """What is known of a tensor whose size differs, or a number that does."""
    change, nodes = failure.change, failure.installed.nodes
    if change.kind not in ("size", "value") or len(nodes) != 1:
        return ""
    value, dynamic = nodes[0].fetch(frame), info_of(region).dynamic
    fixed = dynamic is False or (dynamic is None and not config.get("automatic_dynamic_shapes"))
    if change.kind == "value":
        first, mine = record.made_for(), failure.user_path.startswith("self.")
        if mine and first is not None and frame.args[0] is not first:
            return "of another module"
        return "fixed" if fixed and type(value) in (int, float) else ""
    if not is_a(value, torch.Tensor):
        return ""
    with torch._C.DisableTorchFunction():
        shape = tuple(value.shape)
    if type(change.then) is int and change.now > change.then and shape in record.made:
        return "grown"
    if is_owned(nodes[0], value):
        return "owned"
    marks = (instance_dict(value) or {}).get("_dynamo_static_indices", ())
    return "marked static" if change.detail in [f"size of dim {dim}" for dim in marks] else "fixed" * fixed


def signature(func: FunctionType, args: tuple[Any, ...]) -> str:
    """The arguments of a frame that takes any: `(x, 1 more, shift=)`; "" of another.

    Args:
        func: its function.
        args: values of its argument slots.
    """
    code = func.__code__
    flags, count = code.co_flags, code.co_argcount + code.co_kwonlyargcount
    if not flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return ""
    words = list(code.co_varnames[: code.co_argcount])
    rest = iter(args[count:])
    more = len(next(rest, ())) if flags & inspect.CO_VARARGS else 0
    if more:
        words.append(f"{more} more" if words else f"{more} argument{'s' if more > 1 else ''}")
    named = next(rest, ()) if flags & inspect.CO_VARKEYWORDS else ()
    return f"({', '.join([*words, *(f'{name}=' for name in named)])})"


def _telling(failure: Failure, frame: FrameView, record: EntryRecord) -> Change:
    """What changed, in the words of the program."""
    change, nodes = failure.change, failure.installed.nodes
    node = nodes[0] if len(nodes) == 1 else None
    if node is None:
        return change
    if change.kind in ("length", "keys") and node.parent is None and record.signature:
        code = frame.func.__code__
        taken = code.co_varnames[code.co_argcount + code.co_kwonlyargcount :][:2]
        if isinstance(node.accessor, Local) and node.accessor.name in taken:
            now = Named(signature(frame.func, frame.args))
            return replace(change, then=Named(record.signature), now=now, detail=SIGNATURE)
    if change.kind == "value" and not change.detail and failure.where is not None and node.parent is not None:
        name = failure.where.function.rpartition(".")[2]
        found = type_lookup(type(node.parent.fetch(frame)), name)
        if isinstance(found, property) and f".{name}" != failure.user_path[-len(name) - 1 :]:
            return replace(change, detail=f"behind the property {name}")
    return change


def _row(failure: Failure, frame: FrameView, record: EntryRecord, region: _C.Region) -> ChangeRow:
    change, where = _telling(failure, frame, record), failure.where
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
        trait=_trait(failure, frame, record, region),
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
