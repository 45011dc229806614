"""The run as one JSON document; `_schema` says what is in it."""

from __future__ import annotations

import json
import platform
from importlib import metadata
from typing import Any

from pytest_dynacheck._options import Settings
from pytest_dynacheck._report import nothing_known, torch_version
from pytest_dynacheck._results import Result, Results
from pytest_dynacheck._schema import SCHEMA


def document(results: Results, settings: Settings, problem: str | None) -> dict[str, Any]:
    """Everything about the run as plain data.

    Args:
        results: what the tests' reports carried.
        settings: the run's options.
        problem: why functions compiled before a test couldn't be redirected, or None.
    """
    return {
        "schema": SCHEMA,
        "pytest_dynacheck": metadata.version("pytest-dynacheck"),
        "pytest": metadata.version("pytest"),
        "torch": torch_version(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "engine": settings["engine"],
        "backend": settings["backend"],
        "device": settings["device"],
        "problem": problem,
        "verdicts": results.verdicts(),
        "tests": [_test(result, settings) for result in results.told],
    }


def _test(result: Result, settings: Settings) -> dict[str, Any]:
    data = result.data
    if data is None:
        data = nothing_known(settings["engine"], settings["backend"], under_test=False)
    return {
        "nodeid": result.nodeid,
        "outcome": result.outcome,
        "seconds": round(result.seconds, 6),
        **data,
        "state_leaks": result.leaks,
    }


def text(document: dict[str, Any]) -> str:
    """The document as it is written: indented, so that two runs can be compared by line."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
