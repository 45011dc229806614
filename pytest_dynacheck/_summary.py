"""What a run prints beside its tests: the header line, the summary line, notes, the table on request."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata

import pytest

from pytest_dynacheck._benchmark import sentence
from pytest_dynacheck._options import Settings
from pytest_dynacheck._report import torch_version
from pytest_dynacheck._results import Result, Results
from pytest_dynacheck._session import Session
from pytest_dynacheck._verdict import OK
from pytest_dynacheck._words import WORDS
from pytest_dynacheck._writing import Writing, some


class Summary:
    """Prints the end of the run; a plugin of its own."""

    def __init__(self, session: Session, results: Results, writing: Writing) -> None:
        self.session = session
        self.results = results
        self.writing = writing

    @property
    def settings(self) -> Settings:
        return self.session.settings

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        rows = table([r for r in self.results.told if r.data is not None]) if self.settings.observe else []
        if rows:
            terminalreporter.write_sep("-", "dynacheck")
            for row in rows:
                terminalreporter.write_line(row)
        for note in self._notes():
            terminalreporter.write_line(f"dynacheck: {note}")
        for failure in self.writing.failed:
            terminalreporter.write_line(f"dynacheck: {failure}", red=True)
        for told in self.writing.told:
            terminalreporter.write_line(f"dynacheck: {told}")
        line = summary_line(self.results)
        if line is not None:
            good = set(self.results.verdicts(expected=False)) <= {OK}
            terminalreporter.write_line(line, green=good, red=not good)

    def _notes(self) -> list[str]:
        results = self.results.all.values()
        notes = [
            f"{result.nodeid}: {note}"
            for result in results
            if result.data is not None and result.data["verdict"] == OK
            for note in result.data["notes"]
        ]
        leaks = [
            f"{result.nodeid} left {leak['name']} {leak['old']} -> {leak['new']} (restored)"
            for result in results
            for leak in result.leaks
        ]
        notes = some(notes) + some(leaks)
        notes += [
            f"{result.nodeid}: {sentence(result.data['benchmark'])}"
            for result in results
            if result.data is not None and result.data["benchmark"]
        ]
        if not self.results.under_test:
            origins = [self.settings.origin(name) for name in ("fullgraph", "compare")]
            notes += [f"{flag} met no test under test" for flag in origins if flag.startswith("--")]
        notes += self._unknown() + self._not_compared()
        problem = self.session.redirection.problem
        if problem is not None:
            notes.append(f"functions compiled before a test can't be redirected: {problem}")
        return notes

    def _not_compared(self) -> list[str]:
        """Calls that couldn't be run on copies, of all tests."""
        compared = [r.data["compared"] for r in self.results.all.values() if r.data and r.data["compared"]]
        number = sum(sum(found["not_compared"].values()) for found in compared)
        return [f"{number} compiled calls were not compared with eager"] if number else []

    def _unknown(self) -> list[str]:
        """Counts that an engine can't know on this torch, each engine once."""
        unknown: dict[str, set[str]] = {}
        for result in self.results.all.values():
            if result.data is not None and result.data["verdict"] is not None:
                names = {name for name, count in result.data["counts"].items() if count is None}
                unknown.setdefault(result.data["engine"], set()).update(names)
        return [
            f"engine {engine} can't count {', '.join(sorted(names))} on torch {torch_version()}"
            for engine, names in unknown.items()
            if names
        ]


def summary_line(results: Results) -> str | None:
    """`dynacheck: 41 tests, 3 over budget, 2 compiled nothing`; None if no test was under test."""
    tests = [result.data for result in results.under_test if result.data is not None]
    if not tests:
        return None
    parts = [f"{len(tests)} tests" if len(tests) > 1 else "1 test"]
    unexpected = results.verdicts(expected=False)
    for kind, number in results.verdicts().items():
        if kind != OK:
            xfailed = number - unexpected.get(kind, 0)
            parts.append(f"{number} {WORDS[kind]}" + (f" ({xfailed} expected)" if xfailed else ""))
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
    parts += ["compare"] if settings.compare else []
    if settings["baseline"] is not None:
        parts.append(
            f"baseline {settings['baseline'].name}" + (" (updated)" if settings.update_baseline else "")
        )
    return f"dynacheck: {metadata.version('pytest-dynacheck')} (torch {torch_version()}, {', '.join(parts)})"


_COLUMNS = {
    "graphs": "graphs",
    "breaks": "graph_breaks",
    "recompiles": "recompiles",
    "entries": "cache_entries",
    "eager": "eager_runs",
}


def table(results: Sequence[Result]) -> list[str]:
    """Numbers of each test in columns and its verdict; names come last, so that none needs cutting.

    Args:
        results: tests about which something is known.
    """
    if not results:
        return []
    rows = [(*_COLUMNS, "verdict", "test")]
    for result in results:
        data = result.data or {}
        counts = [data["counts"][name] for name in _COLUMNS.values()]
        verdict = WORDS[data["verdict"]] if data["verdict"] else "" if data["under_test"] else "not judged"
        rows.append((*("?" if n is None else str(n) for n in counts), verdict, result.nodeid))
    widest = max(len(row[-2]) for row in rows)
    return [
        "  ".join(
            [
                *(f"{n:>{len(c)}}" for n, c in zip(row, _COLUMNS, strict=False)),
                f"{row[-2]:<{widest}}",
                row[-1],
            ]
        )
        for row in rows
    ]
