"""What tests' reports carried, on whichever process prints and writes: one result per test."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pytest_dynacheck._verdict import DIFFERS, EAGER, NOTHING, OK, OVER, UNKNOWN

VERDICTS = (OVER, DIFFERS, EAGER, NOTHING, UNKNOWN, OK)


class Result:
    """One test: how it ended for pytest, and what it compiled.

    Attributes:
        nodeid: its name.
        outcome: passed, failed, skipped, error, xfailed or xpassed.
        data: what its report carried (see `_report.plain`); None if nothing was watched.
        leaks: what it changed and didn't put back, as name, old and new.
        seconds: what its call phase took.
    """

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid
        self.outcome = "passed"
        self.data: dict[str, Any] | None = None
        self.leaks: list[dict[str, str]] = []
        self.seconds = 0.0

    @property
    def under_test(self) -> bool:
        return self.data is not None and bool(self.data["under_test"])

    @property
    def compiled(self) -> bool:
        """True if it was watched and compiled something."""
        return self.data is not None and bool(self.data["counts"]["graphs"])

    def add(self, report: pytest.TestReport) -> None:
        """Take in one phase."""
        data: dict[str, Any] = getattr(report, "dynacheck", {})
        if "counts" in data:
            self.data = data
        self.leaks += data.get("state_leaks", ())
        if report.when == "call":
            self.seconds = report.duration
        expected = hasattr(report, "wasxfail")
        if report.failed and report.when != "call":
            self.outcome = "error"
        elif report.when == "call" or not report.passed:
            self.outcome = f"x{report.outcome.replace('skipped', 'failed')}" if expected else report.outcome


class Results:
    """All results of a run, by test; a plugin of its own."""

    def __init__(self) -> None:
        self.all: dict[str, Result] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "setup":  # a rerun starts anew
            self.all.pop(report.nodeid, None)
        self.all.setdefault(report.nodeid, Result(report.nodeid)).add(report)

    @property
    def under_test(self) -> list[Result]:
        """Those that were judged, or would have been but for an error in their setup."""
        return [result for result in self.all.values() if result.under_test]

    @property
    def told(self) -> list[Result]:
        """Those a report is about, by name: under test, watched and compiling, or leaving something behind."""
        found = [r for r in self.all.values() if r.under_test or r.compiled or r.leaks]
        return sorted(found, key=lambda result: result.nodeid)

    def verdicts(self, *, expected: bool = True) -> dict[str, int]:
        """How many tests under test got each verdict, in the order of VERDICTS, without zeros.

        Args:
            expected: count those too whose failure an xfail marker expects.
        """
        judged = [r for r in self.under_test if expected or r.outcome != "xfailed"]
        found = Counter(r.data["verdict"] for r in judged if r.data is not None)
        return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}
