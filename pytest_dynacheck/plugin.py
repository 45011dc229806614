"""pytest's hooks, a few lines each. A run that uses nothing of it imports neither torch nor an engine."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dynacheck import _device, _marks, _options, _report, _summary
from pytest_dynacheck._fixture import Dynacheck
from pytest_dynacheck._session import RUN, SESSION, Session

if TYPE_CHECKING:
    import torch


def pytest_addoption(parser: pytest.Parser) -> None:
    _options.add(parser)


def pytest_configure(config: pytest.Config) -> None:
    _marks.register(config)
    config.stash[SESSION] = Session(_options.read(config), str(config.rootpath))
    config.pluginmanager.register(_summary.Summary(config.stash[SESSION]), "dynacheck-summary")


def pytest_unconfigure(config: pytest.Config) -> None:
    session = config.stash.get(SESSION, None)
    if session is not None:
        session.close()


def pytest_report_header(config: pytest.Config) -> str | None:
    return _summary.header(config, config.stash[SESSION].settings)


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> str | None:
    settings = config.stash[SESSION].settings
    return None if settings.given else _summary.header(config, settings, items)


def pytest_runtest_setup(item: pytest.Item) -> None:
    # neither first nor last: after skip marks were looked at, before the first fixture is set up
    item.config.stash[SESSION].begin(item)


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
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    run = item.stash.get(RUN, None)
    if run is not None:
        _report.attach(report, item, run)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_report_teststatus(report: Any, config: pytest.Config) -> Generator[None, Any, Any]:
    status = yield
    data = getattr(report, "dynacheck", None) if _options.verbosity(config) > 0 else None
    if data is None or report.when != "call" or not status or config.stash[SESSION].finished:
        return status
    category, letter, word = status
    text = f" ({_report.one_line(data)})"
    return category, letter, (word[0] + text, word[1]) if isinstance(word, tuple) else word + text


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    session.config.stash[SESSION].finished = True


@pytest.fixture
def dynacheck(request: pytest.FixtureRequest) -> Dynacheck:
    """Compile, look at what was compiled so far, and expect numbers of a block."""
    run = request.node.stash.get(RUN, None)
    if run is None or not run.plan.under_test:
        pytest.fail(
            "dynacheck: name the fixture as an argument of the test or of one of its fixtures", pytrace=False
        )
    return Dynacheck(run)


@pytest.fixture
def dynacheck_device(request: pytest.FixtureRequest) -> torch.device:
    """The device to test on: the marker's, `--dynacheck-device`, or a GPU if there is one."""
    return _device.device_for(request)
