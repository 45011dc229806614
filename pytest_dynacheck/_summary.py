"""What a run prints beside its tests: the header line, the summary line, notes, the table on request."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import pytest

from pytest_dynacheck._options import Settings
from pytest_dynacheck._report import one_line, torch_version
from pytest_dynacheck._session import Session
from pytest_dynacheck._verdict import EAGER, NOTHING, OVER, UNKNOWN

_SHOWN = 5


class Summary:
    """Collects what reports carry, on whichever process prints; a plugin of its own."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.tests: dict[str, dict[str, Any]] = {}
        self.leaks: list[tuple[str, dict[str, str]]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data: dict[str, Any] | None = getattr(report, "dynacheck", None)
        if data is None:
            return
        if report.when == "call":
            self.tests[report.nodeid] = data
        self.leaks += [(report.nodeid, leak) for leak in data.get("state_leaks", ())]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write(terminalreporter, self, self.session.settings, self.session.redirection.problem)

    def line(self) -> str | None:
        """`dynacheck: 41 tests, 3 over budget, 2 compiled nothing`; None if no test was under test."""
        tests = [data for data in self.tests.values() if data["under_test"]]
        if not tests:
            return None
        parts = [f"{len(tests)} tests" if len(tests) > 1 else "1 test"]
        for kind, text in (
            (OVER, "over budget"),
            (EAGER, "ended in eager"),
            (NOTHING, "compiled nothing"),
            (UNKNOWN, "with counts the engine can't know"),
        ):
            number = sum(data["verdict"] == kind for data in tests)
            if number:
                parts.append(f"{number} {text}")
        engines = sorted({f"engine {data['engine']}, backend {data['backend']}" for data in tests})
        return f"dynacheck: {', '.join(parts)} ({'; '.join(engines)})"


def header(settings: Settings) -> str:
    """One line on version and settings."""
    parts = [
        f"engine {settings['engine']}",
        f"backend {settings['backend']}",
        f"isolate {settings['isolate']}",
    ]
    parts += [limit.label for limit in settings.defaults.values()]
    parts += ["fullgraph"] if settings.fullgraph else []
    return f"dynacheck: {metadata.version('pytest-dynacheck')} (torch {torch_version()}, {', '.join(parts)})"


def write(
    terminal: pytest.TerminalReporter, summary: Summary, settings: Settings, problem: str | None
) -> None:
    """The end of the run."""
    notes = _notes(summary, settings, problem)
    line = summary.line()
    table = _table(summary) if settings.observe else []
    if line is None and not notes and not table:
        return
    if table:
        terminal.section("dynacheck", sep="-")
        for row in table:
            terminal.write_line(row)
    for note in notes:
        terminal.write_line(f"dynacheck: {note}")
    if line is not None:
        terminal.write_line(line)


def _notes(summary: Summary, settings: Settings, problem: str | None) -> list[str]:
    notes = []
    for nodeid, data in summary.tests.items():
        if data["verdict"] == "ok":
            notes += [f"{nodeid}: {note}" for note in data["notes"]]
    leaks = [
        f"{nodeid} left {leak['name']} {leak['old']} -> {leak['new']} (restored)"
        for nodeid, leak in summary.leaks
    ]
    notes = _some(notes) + _some(leaks)
    if settings.fullgraph and not any(data["under_test"] for data in summary.tests.values()):
        notes.append("--dynacheck-fullgraph met no test under test")
    if problem is not None:
        notes.append(f"functions compiled before a test can't be redirected: {problem}")
    return notes


def _some(lines: list[str]) -> list[str]:
    return lines[:_SHOWN] + ([f"... and {len(lines) - _SHOWN} more of these"] if len(lines) > _SHOWN else [])


def _table(summary: Summary) -> list[str]:
    """A row per test that compiled something."""
    rows = [
        (nodeid, data)
        for nodeid, data in summary.tests.items()
        if data["under_test"] or data["counts"]["graphs"]
    ]
    width = max((len(nodeid) for nodeid, _ in rows), default=0)
    return [f"{nodeid:<{width}}  {one_line(data)}" for nodeid, data in rows]
