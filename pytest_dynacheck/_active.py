"""pytest's hooks of a run in which tests are watched, a few lines each."""

from __future__ import annotations

import functools
from collections.abc import Generator
from typing import Any

import pytest

from pytest_dynacheck import _collected, _options, _report, _results, _summary, _tracebacks, _writing
from pytest_dynacheck._benchmark import Benchmark
from pytest_dynacheck._fixture import Dynacheck
from pytest_dynacheck._marks import RUN
from pytest_dynacheck._session import SESSION, Session
from pytest_dynacheck._words import one_line


def pytest_configure(config: pytest.Config) -> None:
    settings = config.stash[_options.SETTINGS]
    session = config.stash[SESSION] = Session(settings, str(config.rootpath))
    try:
        _options.check_backend(settings, lambda: session.engine().backends())
        _options.check_device(settings)
    except ImportError as error:
        raise pytest.UsageError(f"engine {settings['engine']} can't be loaded: {error}") from None
    collected = _collected.Collected(config)
    if session.baseline is not None:
        config.pluginmanager.register(collected, "dynacheck-collected")
    if not hasattr(config, "workerinput"):  # xdist's workers only send
        results = _results.Results()
        config.pluginmanager.register(results, "dynacheck-results")
        writing = _writing.Writing(session, results, collected)
        config.pluginmanager.register(writing, "dynacheck-writing")
        config.pluginmanager.register(_summary.Summary(session, results, writing), "dynacheck-summary")


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[SESSION].close()


def pytest_report_header(config: pytest.Config) -> str:
    return _summary.header(config.stash[SESSION].settings)


def pytest_report_collectionfinish(config: pytest.Config) -> str | None:
    settings = config.stash[SESSION].settings
    shown = config.get_verbosity() >= 0 and not config.getoption("no_header", False)
    return _summary.header(settings) if shown and not settings.given else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    # neither first nor last: after skip marks were looked at, before the first fixture is set up
    run = item.config.stash[SESSION].begin(item)
    if run is not None:
        run.fixture = Dynacheck(run)
        run.make_benchmark = functools.partial(Benchmark, run)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    try:
        return (yield)
    finally:
        run = request.config.stash[SESSION].current
        if run is not None and fixturedef.scope != "function":
            run.after_wide_fixture()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    run = item.stash.get(RUN, None)
    if run is None or not run.observes:
        return (yield)
    with run.call("caplog" in getattr(item, "fixturenames", ())):
        result = yield
    run.judge()
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    try:
        return (yield)
    finally:
        run = item.stash.get(RUN, None)
        if run is not None:
            run.finish()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    run = item.stash.get(RUN, None)
    if run is not None and run.plan.under_test and call.excinfo is not None and not _shows_all(item.config):
        _tracebacks.trim(call.excinfo)
    report = yield
    _report.attach(report, item, run, item.config.stash[SESSION])
    return report


def _shows_all(config: pytest.Config) -> bool:
    return bool(config.getoption("fulltrace", False)) or _options.verbosity(config) > 1


@pytest.hookimpl(wrapper=True)
def pytest_report_teststatus(report: Any, config: pytest.Config) -> Generator[None, Any, Any]:
    status = yield
    data = getattr(report, "dynacheck", None) if _options.verbosity(config) > 0 else None
    if data is None or report.when != "call" or not status or config.stash[SESSION].finished:
        return status
    category, letter, word = status
    text = f" ({one_line(data['counts'])})"
    return category, letter, (word[0] + text, word[1]) if isinstance(word, tuple) else word + text


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    session.config.stash[SESSION].finished = True
