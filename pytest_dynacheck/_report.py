"""What a test's reports carry: sections, `report.dynacheck` (plain data), JUnit properties."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import pytest

from pytest_dynacheck import _options
from pytest_dynacheck._sections import sections
from pytest_dynacheck._session import TestRun
from pytest_dynacheck._verdict import Verdict, budgets_json, counted

_PROPERTIES = ("graphs", "graph_breaks", "recompiles", "cache_entries")


def torch_version() -> str:
    """The installed torch's version, without importing it."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "?"


def attach(report: pytest.TestReport, item: pytest.Item, run: TestRun) -> None:
    """Add what is known to a report; a fault in doing so is told and changes nothing else."""
    try:
        if report.when == "call":
            _attach_call(report, item, run)
        elif report.when == "teardown" and run.leaks:
            vars(report)["dynacheck"] = {"state_leaks": [leak._asdict() for leak in run.leaks]}
    except Exception as error:
        report.sections.append(("dynacheck", f"the report can't be made: {type(error).__name__}: {error}"))


def _attach_call(report: pytest.TestReport, item: pytest.Item, run: TestRun) -> None:
    if run.report is None:
        return
    data = vars(report)["dynacheck"] = plain(run)
    item.user_properties[:] = [p for p in item.user_properties if not p[0].startswith("dynacheck.")]
    item.user_properties.append(("dynacheck.engine", data["engine"]))
    item.user_properties.append(("dynacheck.backend", data["backend"]))
    item.user_properties += [(f"dynacheck.{name}", data["counts"][name]) for name in _PROPERTIES]
    if report.failed and (run.plan.under_test or run.report.graphs):
        shown, verdict = run.shown or (run.report, Verdict("ok", (), (), (), (), frozenset()))
        title = f"engine {data['engine']}, backend {data['backend']}, torch {torch_version()}"
        report.sections += sections(shown, verdict, title, (), _options.verbosity(item.config))


def plain(run: TestRun) -> dict[str, Any]:
    """Everything about a test's call phase as plain data."""
    verdict = run.verdict
    return {
        "engine": run.session.engine.name,
        "backend": run.compiling.backend,
        "under_test": run.plan.under_test,
        "verdict": None if verdict is None else verdict.kind,
        "messages": [] if verdict is None else list(verdict.lines),
        "notes": [] if verdict is None else list(verdict.notes),
        "budgets": [] if verdict is None else budgets_json(verdict.rows),
        **run.report.to_json(),
    }


def one_line(data: dict[str, Any]) -> str:
    """`2 graphs, 1 graph break`: for verbose mode and the table."""
    counts = data["counts"]
    parts = [counted(counts["graphs"], "graphs")]
    parts += [counted(counts[name], name) for name in ("graph_breaks", "recompiles") if counts[name]]
    if counts["eager_runs"]:
        parts.append(f"{counts['eager_runs']} eager runs" if counts["eager_runs"] > 1 else "1 eager run")
    return ", ".join(parts)
