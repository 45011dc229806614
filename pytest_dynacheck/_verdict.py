"""Whether a test kept to its budget: what was counted, what is excused, what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from pytest_dynacheck._budgets import NOTHING_COMPILED, Allowances, Limit
from pytest_dynacheck._marks import Plan

OK, OVER, NOTHING, EAGER, UNKNOWN = "ok", "over", "nothing-compiled", "eager", "unknown"
DIFFERS = "differs"
_SILENT = ("limit", "skip", "fault")


class Row(NamedTuple):
    """One line of the budget table. `counted` is without what was excused; None if the engine can't know."""

    limit: Limit
    counted: int | None
    excused: int

    @property
    def ok(self) -> bool:
        return self.counted is not None and self.limit.holds(self.counted)


class Verdict(NamedTuple):
    """What was found.

    `kind` is one of this module's words; `lines` say what is wrong, one fact each; `nothing`: nothing was
    compiled, allowed or not; `baseline`: how it compares with its row, as plain data; `hints`: lines of
    other plugins, by cause.
    """

    kind: str
    lines: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    unused: tuple[str, ...]
    allowed: frozenset[str]
    nothing: bool = False
    baseline: Mapping[str, Any] | None = None
    hints: Mapping[str, Sequence[str]] = MappingProxyType({})

    @property
    def failed(self) -> bool:
        return self.kind != OK


def judge(
    report: Any, plan: Plan, *, vacuous: bool, uncalled: str = "", generators: str = "", strict: bool = False
) -> Verdict:
    """The verdict on what a test did.

    Args:
        report: the engine's Report of the test's own part.
        plan: limits, allowances and owner.
        vacuous: compiling nothing, or ending in eager, is a fault.
        uncalled: what to say if nothing compiled was called.
        generators: what to say if what was called runs nothing by itself, or "".
        strict: notes count as faults.
    """
    allow = Allowances(plan.allow)
    rows = tuple(_row(limit, report, allow, plan.owner) for limit in plan.limits.values())
    lines = [_over(row, report) for row in rows if not row.ok]
    kind = OK
    if lines:
        kind = OVER if all(row.counted is not None for row in rows if not row.ok) else UNKNOWN
    eager = _eager(report, allow)
    if eager and vacuous:
        kind = EAGER if kind == OK else kind
        lines += eager
    nothing = None if eager else _nothing(report, plan, uncalled, generators)
    if nothing and vacuous and not allow.excuses(NOTHING_COMPILED):
        kind = NOTHING if kind == OK else kind
        lines.append(nothing)
    notes = _notes(report, rows)
    if strict and notes and kind == OK:
        kind, lines = OVER, list(notes)
    excused = frozenset(c for c in report.causes if Allowances(plan.allow).excuses(c))
    unused = tuple(allow.unused(report.causes))
    return Verdict(kind, tuple(lines), rows, tuple(notes), unused, excused, nothing is not None)


def causes_of(report: Any, verdict: Verdict) -> dict[str, int]:
    """How often each cause was met, that nothing was compiled included."""
    found: dict[str, int] = dict(report.causes)
    return found | ({NOTHING_COMPILED: 1} if verdict.nothing else {})


def _row(limit: Limit, report: Any, allow: Allowances, owner: str | None) -> Row:
    counted = report.counts[limit.what]
    if counted is None or limit.what not in ("graph_breaks", "recompiles"):
        return Row(limit, counted, 0)
    if limit.what == "graph_breaks":
        breaks = [b for b in report.graph_breaks if owner is None or b.owned_by(owner)]
        kept = [b for b in breaks if not allow.excuses(b.cause)]
        excused = len(report.graph_breaks) - len(kept)
    else:
        kept = [r for r in report.recompiles if not allow.excuses(r.cause)]
        excused = len(report.recompiles) - len(kept)
    # an exact number is about everything that happened
    return Row(limit, counted if limit.exact and owner is None else len(kept), excused)


_NOUNS = {
    "graphs": ("graph", "graphs"),
    "graph_breaks": ("graph break", "graph breaks"),
    "recompiles": ("recompile", "recompiles"),
    "cache_entries": ("cache entry of one function", "cache entries of one function"),
}


def counted(number: int | None, count: str) -> str:
    """`1 graph`, `2 graphs`, `? graphs` for what an engine can't know."""
    return f"{'?' if number is None else number} {_NOUNS[count][number != 1]}"


def _over(row: Row, report: Any) -> str:
    limit = row.limit
    if row.counted is None:
        return f"{limit.label}: this engine can't count {limit.what} on this version of torch"
    text = counted(row.counted, limit.what)
    if limit.what == "graphs":
        again = sum(graph.recompile for graph in report.graphs)
        if again:
            text += f" ({row.counted - again} first + {again} by recompile)"
    excused = f", {row.excused} more allowed" if row.excused and not limit.exact else ""
    source = "" if limit.origin in ("marker", "expect") else f" from {limit.origin}"
    return f"{text}{excused}, {limit.label}{source}"


def _eager(report: Any, allow: Allowances) -> list[str]:
    """What ended in eager without anybody asking for it, each cause once."""
    by_cause: dict[str, list[Any]] = {}
    for run in report.eager_runs:
        if run.why in _SILENT and not allow.excuses(run.cause):
            by_cause.setdefault(run.cause, []).append(run)
    out = []
    for runs in by_cause.values():
        first = runs[0]
        times = f"{len(runs)} calls" if len(runs) > 1 else "1 call"
        why = {"limit": "its recompile limit is reached", "skip": "a graph break gave it up"}.get(
            first.why, first.message
        )
        out.append(f"{first.function} ran eagerly in {times}: {why}")
    return out


def _nothing(report: Any, plan: Plan, uncalled: str, generators: str) -> str | None:
    """What to say if nothing was compiled or served, None if something was (or nothing was wanted)."""
    limit = plan.limits.get("graphs")
    if limit is not None and limit.number == 0:
        return None
    if report.counts["graphs"] or any(call.outcome == "hit" for call in report.calls):
        return None
    if any(run.why == "stance" for run in report.eager_runs):
        return "nothing was compiled: a stance is set (set_stance) under which compiled code runs eagerly"
    if report.calls and generators:
        return f"nothing was compiled: {generators}"
    if report.calls:
        return (
            "nothing was compiled: the compiled code has no tensor operation that could be put into a graph"
            + _own_modules(report)
        )
    return f"nothing was compiled: {uncalled}"


def _own_modules(report: Any) -> str:
    """A hint for `Module.compile()`, which compiles the call and so leaves torch's own code, and theirs, alone."""
    if any(call.function != "Module._call_impl" for call in report.calls):
        return ""
    return " (as in torch, module.compile() leaves torch.nn's own modules alone; use torch.compile(module))"


def _notes(report: Any, rows: tuple[Row, ...]) -> list[str]:
    notes = []
    limits = {row.limit.what: row for row in rows}
    if "recompiles" in limits and report.calls and not report.recompiles:
        calls: dict[str, int] = {}
        for call in report.calls:
            calls[call.function] = calls.get(call.function, 0) + 1
        if all(n == 1 for n in calls.values()) and not report.setup.get("graphs"):
            notes.append(f"{limits['recompiles'].limit.label} proves nothing: everything was called once")
    if "graphs" in limits and limits["graphs"].ok and report.graph_breaks and "graph_breaks" not in limits:
        notes.append(
            f"{limits['graphs'].limit.label} holds, with {counted(len(report.graph_breaks), 'graph_breaks')}"
        )
    return notes


def budgets_json(rows: tuple[Row, ...]) -> list[Mapping[str, Any]]:
    """The budget table as plain data."""
    return [
        {
            "name": row.limit.what if row.limit.exact else f"max_{row.limit.what}",
            "limit": row.limit.number,
            "counted": row.counted,
            "allowed": row.excused,
            "from": row.limit.origin,
            "ok": row.ok,
        }
        for row in rows
    ]
