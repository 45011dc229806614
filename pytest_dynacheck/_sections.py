"""The sections of a failing test's report: budget table, graph breaks, recompiles as diffs, eager runs.

Short by default, more with `-v`, all with `-vv`. Every row ends with the key that `allow` takes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_dynacheck._isolation import Leak
from pytest_dynacheck._verdict import Verdict
from pytest_dynacheck._words import given_up

_SIGNATURE = "arguments of the call"  # the detail of a change of these, as the engine has it
_ROWS = (3, 10, 10_000)
_STACK = (1, 4, 10_000)
_CHANGES = (3, 8, 10_000)


def sections(
    report: Any, verdict: Verdict, title: str, leaks: Sequence[Leak], verbosity: int
) -> list[tuple[str, str]]:
    """Titles and texts.

    Args:
        report: the engine's Report.
        verdict: the verdict on it.
        title: engine, backend and torch version.
        leaks: what the test didn't put back.
        verbosity: 0, 1 or 2.
    """
    verbosity = max(0, min(verbosity, 2))
    rows = _ROWS[verbosity]
    if not verbosity and report.graph_breaks and report.recompiles:
        rows -= 1  # about thirty lines in all
    out = [(f"dynacheck ({title})", budget_table(report, verdict))]
    if report.graph_breaks:
        out.append(
            (
                f"dynacheck: {_n(report.graph_breaks, 'graph break')}",
                _breaks(report, verdict, verbosity, rows),
            )
        )
    if report.recompiles:
        out.append(
            (
                f"dynacheck: {_n(report.recompiles, 'recompile')}",
                _recompiles(report, verdict, verbosity, rows),
            )
        )
    eager = _eager_runs(report, verdict, verbosity)
    if eager:
        out.append(("dynacheck: eager runs", eager))
    if leaks:
        out.append(("dynacheck: left behind, restored", "\n".join(leak_line(leak) for leak in leaks)))
    return out


def leak_line(leak: Leak) -> str:
    return f"{leak.name}: {leak.old} -> {leak.new}"


def _n(records: Sequence[Any], noun: str) -> str:
    return f"{len(records)} {noun}{'' if len(records) == 1 else 's'}"


def budget_table(report: Any, verdict: Verdict) -> str:
    """The budgets with what was counted, then the other counts."""
    lines = []
    width = max((len(row.limit.label) for row in verdict.rows), default=0)
    for row in verdict.rows:
        mark = "ok  " if row.ok else "OVER"
        number = "?" if row.counted is None else str(row.counted)
        excused = f", {row.excused} allowed" if row.excused else ""
        lines.append(f"{mark}  {row.limit.label:<{width}}  counted {number}{excused}  ({row.limit.origin})")
    counts = report.counts
    lines.append(f"all counts: {_counts(counts)}")
    if any(report.setup.values()):
        lines.append(
            "compiled in setup, not counted: " + _counts({k: v for k, v in report.setup.items() if v})
        )
    lines += [f"note: {note}" for note in verdict.notes]
    return "\n".join(lines)


def _counts(counts: Mapping[str, int | None]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {'?' if n is None else n}" for name, n in counts.items())


def _more(shown: int, total: int, noun: str) -> list[str]:
    more = total - shown
    return [f"... and {more} more {noun}{'' if more == 1 else 's'} (-vv shows all)"] if more > 0 else []


def _allow(verdict: Verdict, *causes: str) -> list[str]:
    hints = [f"  hint: {line}" for cause in causes for line in verdict.hints.get(cause, ())]
    if any(cause in verdict.allowed for cause in causes):
        return [*hints, "  allowed"]
    return hints + [f"  allow with: {cause}" for cause in causes if cause]


def _breaks(report: Any, verdict: Verdict, verbosity: int, limit: int) -> str:
    lines: list[str] = []
    eager = {run.cause: (run.function, run.message) for run in reversed(report.eager_runs)}
    for record in report.graph_breaks[:limit]:
        times = f", met {record.times} times" if record.times > 1 and verbosity else ""
        lines.append(f"{record.file}:{record.line} in {record.function}: {record.title}{times}")
        if record.text:
            lines.append(f"      {record.text.strip()}")
        lines.append(f"  {record.message}")
        if record.skipped:
            lines.append(f"  {given_up(eager.get(record.eager_cause))}")
        lines += [f"  hint: {record.hint}"] if record.hint else []
        if verbosity or len(record.stack) > 1:
            lines += _stack(report, record, verbosity)
        lines += _allow(verdict, record.cause, record.eager_cause)
    return "\n".join(lines + _more(limit, len(report.graph_breaks), "place"))


def _stack(report: Any, record: Any, verbosity: int) -> list[str]:
    """The user's lines that led there, innermost first, without the place itself."""
    lines = [f for f in reversed(record.stack) if (f.line, f.function) != (record.line, record.function)]
    if verbosity < 2:
        lines = [f for f in lines if not report.is_library(f.file)]
    shown = lines[: _STACK[verbosity]]
    return [f"  called at {report.display_name(f.file)}:{f.line} in {f.function}" for f in shown]


def _recompiles(report: Any, verdict: Verdict, verbosity: int, limit: int) -> str:
    groups: dict[Any, list[Any]] = {}
    for record in report.recompiles:
        groups.setdefault(_one_row(record), []).append(record)
    last = {_code(record): record for record in report.recompiles}
    lines: list[str] = []
    for records in list(groups.values())[:limit]:
        lines += _again(report, records) if len(records) > 1 else _once(report, records[0], verbosity)
        lines += [text for r in records if r is last[_code(r)] and (text := _settled(report, r))]
        causes = list(dict.fromkeys(record.cause for record in records))
        excused = [cause for cause in causes if cause in verdict.allowed]
        if len(excused) < len(causes) and excused:
            lines += [f"  allowed: {cause}" for cause in excused]
            causes = [cause for cause in causes if cause not in excused]
        lines += _allow(verdict, *causes)
    lines += _more(limit, len(groups), "cause")
    paths = [record for record in report.skipped if record.changes]
    for record in paths[:limit]:
        number = next(
            (i for i, call in enumerate(report.calls, 1) if call.number == record.call), record.call
        )
        lines.append(
            f"{record.function} ({record.file}:{record.line}) took a path without tensor operations in call {number}: "
            "no graph, no entry"
        )
        for change, _ in _grouped(_telling(record.changes))[: _CHANGES[0]]:
            lines.append(f"  {change.subject}: {change.was} -> {change.became}")
    return "\n".join(lines + _more(limit, len(paths), "path"))


def _code(record: Any) -> Any:
    return record.function, record.file, record.line, record.resume_line, record.branch


def _one_row(record: Any) -> Any:
    """What recompiles have in common that are told together: the value that decided, whatever of it changed; of several
    values the one that is the object's own."""
    if not record.changes:
        return record.cause
    source = record.changes[0].source
    if record.changes[0].detail == _SIGNATURE:
        return _code(record), _SIGNATURE
    own = next((part for part in source.split(", ") if part.startswith("self.")), source)
    return _code(record), source if record.changes[0].kind == "aliasing" else own


def _settled(report: Any, record: Any) -> str:
    """That all later calls hit, for the last recompile of a code object; "" if they didn't, or there were none, or
    what is told says it already."""
    if record.changes and all(change.varies for change in record.changes):
        return ""
    made = next((call for call in report.calls if call.number == record.call), None)
    if made is None:
        return ""
    calls = [call for call in report.calls if call.function == made.function]
    later = [call.outcome for call in calls if call.number > record.call]
    if not later or set(later) != {"hit"}:
        return ""
    times = "the call after it hits" if len(later) == 1 else f"the {len(later)} calls after it hit"
    return f"  settles after call {len(calls) - len(later)}: {times}"


def _head(report: Any, record: Any) -> str:
    return f"{record.function} ({record.file}:{record.line}){record.rest} compiled again"


def _at(report: Any, record: Any) -> str:
    if record.trigger is None:
        return ""
    return f", triggered at {report.display_name(record.trigger.file)}:{record.trigger.line}"


def _once(report: Any, record: Any, verbosity: int) -> list[str]:
    """One recompile as a diff of what was assumed and what came."""
    lines = [
        f"{_head(report, record)}: entry {record.entry}, {record.seconds * 1e3:.0f} ms{_at(report, record)}"
    ]
    changes = [(c, 0) for c in record.changes] if verbosity > 1 else _grouped(_telling(record.changes))
    shown = changes[: _CHANGES[verbosity]]
    for change, alike in shown:
        lines += _diff(change, record, alike)
    if len(changes) > len(shown):
        more = sum(1 + alike for _, alike in changes[len(shown) :])
        lines.append(f"  ... {more} more {'values differ' if more > 1 else 'value differs'} (-vv shows all)")
    lines += [f"  hint: {shown[0][0].hint}"] if shown and shown[0][0].hint else []
    if verbosity > 1:
        for number, others in enumerate(record.others):
            lines.append(f"  other entry {number + 1}:")
            lines += [f"    {c.subject}: {c.was} -> {c.became}" for c in others]
    return lines


def _telling(changes: Sequence[Any]) -> Sequence[Any]:
    """Without what follows from the deciding change: attributes of a value that is another one altogether,
    strides of a contiguous tensor whose sizes changed."""
    if not changes:
        return changes
    first = changes[0]
    whole = first.kind in ("type", "identity", "presence", "code")

    def follows(change: Any) -> bool:
        below = whole and change.source.startswith((f"{first.source}.", f"{first.source}["))
        return bool(below or (first.kind == change.kind == "presence" and change.detail == first.source))

    known = _known_sizes(changes)
    return [
        first,
        *(
            c
            for c in changes[1:]
            if not (follows(c) or c.source.endswith("dispatch keys") or _only_contiguous(c, changes, known))
        ),
    ]


_OF_A_MODEL = ("training", "requires_grad", "dtype", "device", "hooks")


def _grouped(changes: Sequence[Any]) -> list[tuple[Any, int]]:
    """What changed alike told once, with how many more there are: items of a list, modules of a tree."""
    groups: dict[Any, list[Any]] = {}
    for change in changes:
        place = "" if change.kind in _OF_A_MODEL else (_INDEX.sub("[]", change.source), change.detail)
        groups.setdefault((change.kind, change.was, change.became, place), []).append(change)
    return [(alike[0], len(alike) - 1) for alike in groups.values()]


_INDEX = re.compile(r"\[\d+\]")
_LOAD = re.compile(r"(?P<source>.+)\.(?P<what>size|stride)\(\)\[(?P<dim>\d+)\]")


def _dim(change: Any) -> int:
    """Which dimension a change of one size or stride is about."""
    return int(change.detail.rpartition(" ")[2])


def _known_sizes(changes: Sequence[Any]) -> dict[tuple[str, int], int]:
    """The sizes that came, by source and dimension, as far as the failed guards tell."""
    known = {(c.source, _dim(c)): c.now for c in changes if c.kind == "size" and type(c.now) is int}
    for change in changes:
        if change.kind == "expression" and isinstance(change.now, Mapping):
            for name, value in change.now.items():
                load = _LOAD.fullmatch(name)
                if load and load["what"] == "size":
                    known[load["source"], int(load["dim"])] = value
    return known


def _only_contiguous(change: Any, changes: Sequence[Any], known: Mapping[tuple[str, int], int]) -> bool:
    """True for a stride that changed as the sizes of the dimensions after its own did: the tensor is as contiguous
    as it was.

    Args:
        change: a failed guard.
        changes: all of its entry.
        known: the sizes that came.
    """
    if change.kind == "stride" and type(change.then) is type(change.now) is int:
        sizes = [
            (c.then, c.now)
            for c in changes
            if c.kind == "size" and c.source == change.source and _dim(c) > _dim(change)
        ]
        if not sizes or any(type(size) is not int for pair in sizes for size in pair):
            return False
        before, after = (math.prod(max(size, 1) for size in column) for column in zip(*sizes, strict=True))
        return bool(change.now * before == change.then * after)
    left, _, right = str(change.then).partition(" == ")
    load = _LOAD.fullmatch(left)
    if change.kind != "expression" or load is None or load["what"] != "stride" or ".stride()" in right:
        return False
    later = [
        size for (source, dim), size in known.items() if source == load["source"] and dim > int(load["dim"])
    ]
    return bool(later) and bool(change.now[left] == math.prod(max(size, 1) for size in later))


def _assumed(change: Any, record: Any) -> str:
    """Where it was assumed, and in which other function that is; "" if that isn't known."""
    other = change.function not in ("", record.function) and not change.function.endswith(">")
    where = f"{change.file}:{change.line}" + (f" in {change.function}" if other else "")
    return f"assumed at {where}  {change.text.strip()}".rstrip() if change.line else ""


def _other_assumptions(changes: Sequence[Any], record: Any) -> list[str]:
    """What later entries had assumed of the value otherwise than as a value: ranges of a size that varies.

    Args:
        changes: what decided, of successive recompiles.
        record: the first of these.
    """
    found = {c.then: c for c in changes[1:] if c.kind in ("size", "stride") and type(c.then) is str}
    lines = []
    for change in list(found.values())[:2]:
        lines.append(f"  then {change.then}  {_assumed(change, record)}".rstrip())
    return lines


def _diff(change: Any, record: Any, alike: int) -> list[str]:
    subject = f"{change.subject}, and {alike} more alike" if alike else change.subject
    return [
        f"  {subject:<40} {_assumed(change, record)}".rstrip(),
        f"-   {change.was}",
        f"+   {change.became}{', dynamic from now on' if change.varies else ''}",
    ]


def _again(report: Any, records: list[Any]) -> list[str]:
    """Several recompiles by one cause, as one row with the value's history."""
    first, last = records[0], records[-1]
    total = sum(record.seconds for record in records)
    entries = (
        f"entry {first.entry}" if first.entry == last.entry else f"entries {first.entry} to {last.entry}"
    )
    lines = [
        f"{_head(report, first)} {len(records)} times: {entries}, {total * 1e3:.0f} ms{_at(report, last)}"
    ]
    hints: dict[str, None] = {}
    assumed = ""
    for same in _histories(records):
        changes = [record.changes[0] for record in same]
        history = report.history(same)
        note = f": {history.note}" if history.note else ""
        lines.append(f"  {changes[0].subject}: {values(history.values)}{note}")
        if changes[0].line and _assumed(changes[0], first) != assumed:
            assumed = _assumed(changes[0], first)
            lines.append(f"  {assumed}")
        lines += _other_assumptions(changes, first)
        found = [history.hint] if history.hint else [c.hint for c in reversed(changes) if c.hint]
        hints |= dict.fromkeys(found)
    return lines + [f"  hint: {hint}" for hint in list(hints)[:2]]


def _histories(records: Sequence[Any]) -> list[list[Any]]:
    """Recompiles by what decided: one value each, or one size of it."""
    found: dict[Any, list[Any]] = {}
    for record in records:
        if record.changes:
            first = record.changes[0]
            part = first.detail if first.kind != "expression" else ""
            found.setdefault(part if part == _SIGNATURE else (record.cause, part), []).append(record)
    return list(found.values())


def values(found: Sequence[str]) -> str:
    """The first few of a history."""
    shown = [text for i, text in enumerate(found) if i == 0 or text != found[i - 1]]
    return ", ".join(shown[:6]) + (", …" if len(shown) > 6 else "")


def _eager_runs(report: Any, verdict: Verdict, verbosity: int) -> str:
    """One row per cause, without those that a break's row has already."""
    numbers = {call.number: i for i, call in enumerate(report.calls, 1)}
    in_breaks = {record.eager_cause for record in report.graph_breaks}
    groups: dict[str, list[Any]] = {}
    for run in report.eager_runs:
        if run.cause not in in_breaks:
            groups.setdefault(run.cause, []).append(run)
    lines: list[str] = []
    limit = _ROWS[verbosity]
    for cause, runs in list(groups.items())[:limit]:
        first = runs[0]
        number = numbers.get(first.call, first.call)
        since = f"from call {number} on" if len(runs) > 1 else f"in call {number}"
        lines.append(
            f"{first.function} ({first.file}:{first.line}) ran eagerly {since}: {first.message or first.why}"
        )
        if first.changes:
            change = first.changes[0]
            again = [r for r in report.recompiles if r.function == first.function and r.changes]
            same = [r for r in again if r.changes[0].source == change.source]
            history = report.history(same) if same else None
            shown = f"{values(history.values)}" if history else f"{change.was} -> {change.became}"
            note = f": {history.note}" if history and history.note else ""
            lines.append(f"  {change.subject}: {shown}{note}")
        lines += _allow(verdict, cause)
    return "\n".join(lines + _more(limit, len(groups), "cause"))
