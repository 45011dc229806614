"""Writes a run's files at its end. What can't be written is told and changes nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_dynacheck import _files, _json
from pytest_dynacheck._results import Results
from pytest_dynacheck._session import Session


class Writing:
    """On whichever process has all results; a plugin of its own.

    Attributes:
        told: a line per file, for the end of the run.
        failed: the same for those that couldn't be written.
    """

    def __init__(self, session: Session, results: Results) -> None:
        self._session = session
        self._results = results
        self.told: list[str] = []
        self.failed: list[str] = []

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.config.getoption("collectonly", False):
            return
        self._write("json", lambda: _json.text(self._document()))

    def _document(self) -> dict[str, Any]:
        return _json.document(self._results, self._session.settings, self._session.redirection.problem)

    def _write(self, option: str, make: Callable[[], str]) -> None:
        path = self._session.settings[option]
        if path is None:
            return
        try:
            _files.write(path, make())
        except Exception as error:
            self.failed.append(
                f"--dynacheck-{option}: {path} can't be written: {type(error).__name__}: {error}"
            )
        else:
            self.told.append(f"wrote {path}")
