"""Hooks that other plugins and conftest files can implement, and how they are asked.

An implementation that raises loses its own answer and nothing else; where it would have been, the report says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dynacheck.engines import ENGINES, Make

if TYPE_CHECKING:
    from dynacheck.report import Report

    from pytest_dynacheck.engines import Engine


def pytest_dynacheck_engines(config: pytest.Config) -> Mapping[str, Callable[[str], Engine]] | None:
    """Engines, by the name that `--dynacheck-engine` and the marker take.

    Called once, before collection.

    Args:
        config: pytest's.

    Returns:
        For each name what makes the engine (`pytest_dynacheck.engines.Engine`) from the folder that file names in
        reports are relative to. It is called when the first test needs the engine.
    """


def pytest_dynacheck_hints(item: pytest.Item, cause: str, record: Any) -> str | Iterable[str] | None:
    """What to do about a cause, in a line; shown after our own hint.

    Called once for each cause that a test met.

    Args:
        item: the test.
        cause: the cause's key.
        record: the first graph break, recompile or eager run with it.

    Returns:
        A line or several; None for nothing.
    """


def pytest_dynacheck_report_rows(item: pytest.Item, report: Report) -> Mapping[str, Any] | None:
    """Rows of your own in a test's report, in the JSON file and on the page.

    Called for each test under test, after its call.

    Args:
        item: the test.
        report: what its call phase did.

    Returns:
        Values by name, shown as `str` makes them; None for nothing.
    """


def engines(config: pytest.Config) -> dict[str, Make]:
    """All engines of a run, ours and those of plugins.

    Raises:
        pytest.UsageError: a plugin's engine has a name that is taken.
    """
    found: dict[str, Make] = dict(ENGINES)
    for given in config.hook.pytest_dynacheck_engines(config=config):
        for name, make in (given or {}).items():
            if name in found:
                raise pytest.UsageError(f"pytest_dynacheck_engines: there is an engine {name!r} already")
            found[name] = make
    return found


def hints(item: pytest.Item, report: Report) -> dict[str, list[str]]:
    """Lines of plugins, by cause; causes about which none has anything to say are left out."""
    found: dict[str, list[str]] = {}
    done: set[str] = set()
    records: list[Any] = [*report.graph_breaks, *report.recompiles, *report.eager_runs]
    for record in records:
        cause = record.cause
        if cause in done:
            continue
        done.add(cause)
        try:
            answers = item.ihook.pytest_dynacheck_hints(item=item, cause=cause, record=record)
            lines = [line for answer in answers for line in ([answer] if isinstance(answer, str) else answer)]
        except Exception as error:
            lines = [_raised("hints", error)]
        if lines:
            found[cause] = [str(line) for line in lines]
    return found


def rows(item: pytest.Item, report: Report) -> dict[str, str]:
    """Rows of plugins, by name."""
    try:
        answers = item.ihook.pytest_dynacheck_report_rows(item=item, report=report)
        return {str(name): str(value) for answer in answers for name, value in answer.items()}
    except Exception as error:
        return {"pytest_dynacheck_report_rows": _raised("report_rows", error)}


def _raised(name: str, error: Exception) -> str:
    return f"a plugin's pytest_dynacheck_{name} raised {type(error).__name__}: {error}"
