"""Writes a run's files at its end. What can't be written is told and changes nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_dynacheck import _baseline, _files, _html, _json
from pytest_dynacheck._baseline import Baseline
from pytest_dynacheck._collected import Collected
from pytest_dynacheck._report import torch_version
from pytest_dynacheck._results import Results
from pytest_dynacheck._session import Session

_SHOWN = 5


class Writing:
    """On whichever process has all results; a plugin of its own.

    Attributes:
        told: a line per file, for the end of the run.
        failed: the same for those that couldn't be written.
    """

    def __init__(self, session: Session, results: Results, collected: Collected) -> None:
        self._session = session
        self._results = results
        self._collected = collected
        self.told: list[str] = []
        self.failed: list[str] = []

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if session.config.getoption("collectonly", False):
            return
        whole = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        for option, step in (
            ("baseline", lambda path: self._baseline_step(path, whole)),
            ("json", self._json_step),
            ("html", self._html_step),
        ):
            path = self._session.settings[option]
            if path is None:
                continue
            try:
                self.told += step(path)
            except Exception as error:
                why = f"{type(error).__name__}: {error}".replace(str(path), self._name(path))
                self.failed.append(f"--dynacheck-{option}: {self._name(path)}: {why}")

    def _name(self, path: Path) -> str:
        """The file as it is called from where the tests' names start."""
        root = self._session.root
        return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)

    def _json_step(self, path: Path) -> list[str]:
        _files.write(path, _json.text(self._document()))
        return [f"wrote {self._name(path)}"]

    def _html_step(self, path: Path) -> list[str]:
        _files.write(path, _html.page(self._document()))
        return [f"wrote {self._name(path)}"]

    def _document(self) -> dict[str, Any]:
        return _json.document(self._results, self._session.settings, self._session.redirection.problem)

    def _baseline_step(self, path: Path, whole: bool) -> list[str]:
        """Write the baseline if that was asked for, else say what could be written.

        Args:
            path: where it is.
            whole: the run came to its end, so that tests which weren't seen are gone.
        """
        old = self._session.baseline
        assert old is not None
        gone = sorted(name for name in old.entries if whole and self._collected.is_gone(name))
        if not self._session.settings.update_baseline:
            return self._compared(old, gone)
        found = {
            result.nodeid: _baseline.entry_of(result.data)
            for result in self._results.under_test
            if result.data is not None and result.data["verdict"] is not None and result.outcome == "passed"
        }
        new = _baseline.updated(old, found, gone, self._written_with())
        if new.text() == old.text():
            return [f"{self._name(path)} is up to date"]
        _files.write(path, new.text())
        added, changed, dropped = new.differences(old)
        return [f"wrote {self._name(path)}: {added} new, {changed} changed, {dropped} dropped"]

    def _written_with(self) -> dict[str, str]:
        settings = self._session.settings
        torch = torch_version().partition("+")[0]
        return {"torch": torch, "engine": settings["engine"], "backend": settings["backend"]}

    def _compared(self, old: Baseline, gone: list[str]) -> list[str]:
        """How tests stand to their rows, and rows that no test has any more."""
        lines = []
        here = self._written_with()
        if old.written_with != here:
            before, now = (", ".join(f"{k} {v}" for k, v in d.items()) for d in (old.written_with, here))
            lines.append(f"baseline: written with {before}; this is {now}")
        status = {r.nodeid: r.data["baseline"] for r in self._results.told if r.data and r.data["baseline"]}
        better = [name for name, found in status.items() if found["status"] == _baseline.IMPROVED]
        lines += some([f"{name}: better than its row in the baseline" for name in better])
        lines += some([f"{name}: has a row in the baseline, and there is no such test" for name in gone])
        if better or gone or any(found["status"] == _baseline.NEW for found in status.values()):
            lines.append("baseline: --dynacheck-update-baseline writes what tests compile now")
        return lines


def some(lines: list[str]) -> list[str]:
    """The first few, and how many there are beside them."""
    return lines[:_SHOWN] + ([f"... and {len(lines) - _SHOWN} more of these"] if len(lines) > _SHOWN else [])
