"""What a test's reports carry: sections, `report.dynacheck` (plain data), JUnit properties."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import pytest

from pytest_dynacheck import _hooks, _options
from pytest_dynacheck._budgets import COUNTS
from pytest_dynacheck._marks import is_under_test
from pytest_dynacheck._sections import sections
from pytest_dynacheck._session import Session, TestRun
from pytest_dynacheck._verdict import Verdict, budgets_json, causes_of

_COUNTED = ("graphs", "graph_breaks", "recompiles", "cache_entries", "skipped", "eager_runs", "calls")
_LISTS = ("graphs", "graph_breaks", "recompiles", "eager_runs", "skipped", "calls")
_LONGEST_CODE = 2000  # lines of one graph's source in a file


def torch_version() -> str:
    """The installed torch's version, without importing it."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "?"


def attach(report: pytest.TestReport, item: pytest.Item, run: TestRun | None, session: Session) -> None:
    """Add what is known to a report; a fault in doing so is told and changes nothing else."""
    try:
        if report.when == "setup":
            _attach_setup(report, item, run, session)
        elif run is None:
            return
        elif report.when == "call":
            _attach_call(report, item, run)
        elif report.when == "teardown" and run.leaks:
            vars(report)["dynacheck"] = {"state_leaks": [leak._asdict() for leak in run.leaks]}
    except Exception as error:
        report.sections.append(("dynacheck", f"the report can't be made: {type(error).__name__}: {error}"))


def _attach_setup(
    report: pytest.TestReport, item: pytest.Item, run: TestRun | None, session: Session
) -> None:
    """A test that never came to its call: nothing is known about it."""
    settings = session.settings
    if report.passed or not (is_under_test(item, settings) if run is None else run.plan.under_test):
        return
    backend = settings["backend"] if run is None else run.compiling.backend
    vars(report)["dynacheck"] = nothing_known(
        settings["engine"] if run is None else run.engine.name, backend, under_test=True
    )


def _attach_call(report: pytest.TestReport, item: pytest.Item, run: TestRun) -> None:
    if run.report is None:
        return
    data = vars(report)["dynacheck"] = plain(run)
    data["hints"] = _hooks.hints(item, run.report)
    data["rows"] = _hooks.rows(item, run.report) if run.plan.under_test else {}
    item.user_properties[:] = [p for p in item.user_properties if not p[0].startswith("dynacheck.")]
    item.user_properties += [(f"dynacheck.{name}", value) for name, value in _properties(data)]
    if report.failed and (run.plan.under_test or run.report.graphs):
        shown, verdict = run.shown or (run.report, Verdict("ok", (), (), (), (), frozenset()))
        title = f"engine {data['engine']}, backend {data['backend']}, torch {torch_version()}"
        verdict = verdict._replace(hints=data["hints"])
        comparison = run.compiling.comparison
        found = sections(shown, verdict, title, (), _options.verbosity(item.config))
        rows = [f"{name}: {value}" for name, value in data["rows"].items()]
        found[0] = (found[0][0], "\n".join([found[0][1], *rows]))
        if comparison is not None:
            found.insert(1, ("dynacheck: compared with eager", "\n".join(comparison.lines())))
        if run.engine.name == "bundled":
            last, text = found[-1]
            found[-1] = (last, f"{text}\ncheck with: --dynacheck-engine=torch")
        report.sections += found


def _properties(data: dict[str, Any]) -> list[tuple[str, Any]]:
    """What JUnit files show of a test."""
    found = [(name, data[name]) for name in ("engine", "backend", "verdict") if data[name] is not None]
    counts = data["counts"]
    return found + [(name, "unknown" if counts[name] is None else counts[name]) for name in COUNTS]


def plain(run: TestRun) -> dict[str, Any]:
    """Everything about a test's call phase as plain data."""
    settings = run.session.settings
    code = _LONGEST_CODE if settings["json"] or settings["html"] else 0
    found = nothing_known(run.engine.name, run.compiling.backend, under_test=run.plan.under_test)
    found |= run.report.to_json(longest_code=code)
    found["benchmark"] = run.benchmark
    verdict = run.verdict or (
        run.shown[1] if run.shown else None
    )  # expect() and steady() judge for themselves
    comparison = run.compiling.comparison
    if comparison is not None:
        left_out = dict(comparison.left_out)
        found["compared"] = {"calls": comparison.compared, "not_compared": left_out}
    if verdict is not None:
        found |= {
            "verdict": verdict.kind,
            "messages": list(verdict.lines),
            "notes": list(verdict.notes),
            "budgets": budgets_json(verdict.rows),
            "allowed": sorted(verdict.allowed),
            "unused": list(verdict.unused),
            "baseline": verdict.baseline,
            "causes": dict(sorted(causes_of(run.report, verdict).items())),
        }
    return found


def nothing_known(engine: str, backend: str, *, under_test: bool) -> dict[str, Any]:
    """The same, for a test about which nothing can be said."""
    return {
        "engine": engine,
        "backend": backend,
        "under_test": under_test,
        "verdict": None,
        **{name: [] for name in ("messages", "notes", "budgets", "allowed", "unused", *_LISTS)},
        "baseline": None,
        "benchmark": None,
        "hints": {},
        "rows": {},
        "counts": dict.fromkeys(_COUNTED),
        "compared": None,
        "causes": {},
        "setup": {},
    }
