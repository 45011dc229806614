"""What every run loads: options, markers, fixtures. Imports neither torch nor an engine.

The hooks that do something are in `_active`, loaded when an option is given or a test is under test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_dynacheck import _benchmark_fixture, _hooks, _marks, _options

if TYPE_CHECKING:
    import torch

    from pytest_dynacheck._fixture import Dynacheck

_ACTIVE = "pytest_dynacheck._active"


def pytest_addoption(parser: pytest.Parser) -> None:
    _options.add(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(_hooks)


def pytest_configure(config: pytest.Config) -> None:
    _marks.register(config)
    has_benchmark = config.pluginmanager.hasplugin("benchmark")
    fixture = _benchmark_fixture.WithBenchmark if has_benchmark else _benchmark_fixture.WithoutBenchmark
    config.pluginmanager.register(fixture(), "dynacheck-benchmark")
    settings = config.stash[_options.SETTINGS] = _options.read(config)
    if settings.given:
        activate(config)
    elif config.getoption("dist", "no") != "no":
        config.pluginmanager.register(_Arrivals(config))


class _Arrivals:
    """For xdist's controller, which collects nothing: the first report with our results loads the rest."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if hasattr(report, "dynacheck") and not self.config.pluginmanager.has_plugin(_ACTIVE):
            activate(self.config)
            results = self.config.pluginmanager.get_plugin("dynacheck-results")
            assert results is not None
            results.pytest_runtest_logreport(report)


def activate(config: pytest.Config) -> None:
    """Load the hooks that watch and judge tests."""
    config.pluginmanager.import_plugin(_ACTIVE)


@pytest.hookimpl(tryfirst=True)  # before the terminal asks what there is to say about what was collected
def pytest_collection_finish(session: pytest.Session) -> None:
    settings = session.config.stash[_options.SETTINGS]
    if any(_marks.is_under_test(item, settings) for item in session.items):
        activate(session.config)


@pytest.fixture
def dynacheck(request: pytest.FixtureRequest) -> Dynacheck:
    """Compile, look at what was compiled so far, and expect numbers of a block.

    compile(fn) compiles as torch.compile does; report is what happened so far;
    expect(...) and steady() hold for a `with` block; check(fn, calls) compares
    compiled calls with eager ones.
    """
    run = request.node.stash.get(_marks.RUN, None)
    if run is None or not run.plan.under_test:
        pytest.fail(
            "dynacheck: name the fixture as an argument of the test or of one of its fixtures", pytrace=False
        )
    fixture: Dynacheck = run.fixture
    return fixture


@pytest.fixture
def dynacheck_device(request: pytest.FixtureRequest) -> torch.device:
    """The device to test on: the marker's, `--dynacheck-device`, or a GPU if there is one."""
    named = [mark.kwargs["device"] for mark in _marks.marks_of(request.node) if "device" in mark.kwargs]
    return _options.device(request.config.stash[_options.SETTINGS], named[0] if named else None)
