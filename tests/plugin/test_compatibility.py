"""Beside other plugins and pytest's own features: verdicts, reports and isolation are what they are alone."""

from __future__ import annotations

import sys

import pytest

OVER = """
@pytest.mark.max_graphs(1)
def test_over():
    torch.compile(printing)(X)

@pytest.mark.max_graphs(1)
def test_within():
    torch.compile(clean)(X)
"""


def test_rerunfailures_starts_each_run_anew(project):
    pytest.importorskip("pytest_rerunfailures")
    result = project.run(
        "--reruns=2", "--dynacheck-json=out.json",
        text="""
        runs = []

        @pytest.mark.max_graphs(1)
        def test_third_time():
            runs.append(1)
            f = torch.compile(clean)
            f(X)
            if len(runs) < 3:
                f(X.double())

        @pytest.mark.max_graphs(1)
        def test_never():
            torch.compile(printing)(X)
        """,
    )  # fmt: skip
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["failed"], outcomes["rerun"]) == (1, 1, 4)
    result.stdout.fnmatch_lines(["dynacheck: 2 tests, 1 over budget *"])


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_timeout(project, method):
    pytest.importorskip("pytest_timeout")
    result = project.run("--timeout=60", f"--timeout-method={method}", text=OVER)
    result.assert_outcomes(passed=1, failed=1)


@pytest.mark.parametrize("core", ["ctrace", "sysmon"])
def test_coverage_is_measured_beside(project, monkeypatch, core):
    pytest.importorskip("pytest_cov")
    if core == "sysmon" and sys.version_info < (3, 12):
        pytest.skip("sys.monitoring is new in Python 3.12")
    monkeypatch.setenv("COVERAGE_CORE", core)
    project.write(OVER)
    result = project.pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", "--cov=programs", "--cov-report=term-missing"
    )
    result.assert_outcomes(passed=1, failed=1)
    for line in ("2 graphs, max_graphs(1)", "programs.py *", "dynacheck: 2 tests, 1 over budget *"):
        result.stdout.fnmatch_lines([line])


def test_asyncio(project):
    pytest.importorskip("pytest_asyncio")
    project.run(
        text="""
        import asyncio

        @pytest.mark.asyncio
        @pytest.mark.max_graphs(1)
        async def test_over():
            f = torch.compile(printing)
            await asyncio.sleep(0)
            f(X)

        @pytest.mark.asyncio
        @pytest.mark.max_graphs(1)
        async def test_within(dynacheck):
            f = dynacheck.compile(clean)
            f(X)
            await asyncio.gather(asyncio.to_thread(f, X), asyncio.to_thread(f, X))
            assert [call.outcome for call in dynacheck.report.calls] == ["miss", "hit", "hit"]
        """
    ).assert_outcomes(passed=1, failed=1)


def test_unittest(project):
    project.run(
        text="""
        import unittest

        @pytest.mark.max_graphs(1)
        class TestPlain(unittest.TestCase):
            def setUp(self):
                self.compiled = torch.compile(clean)

            def test_within(self):
                self.compiled(X)

            def test_over(self):
                self.compiled(X), self.compiled(X.double())

            @unittest.skip("not now")
            def test_skipped(self):
                pass

        @pytest.mark.max_graphs(1)
        class TestAsync(unittest.IsolatedAsyncioTestCase):
            async def test_within(self):
                torch.compile(clean)(X)

            async def test_over(self):
                torch.compile(printing)(X)
        """
    ).assert_outcomes(passed=2, failed=2, skipped=1)


def test_subtests(project):
    if not hasattr(pytest, "Subtests") and not hasattr(pytest, "SubTests"):
        pytest.importorskip("pytest_subtests")
    result = project.run(
        text="""
        import unittest

        @pytest.mark.max_graphs(2)
        def test_within(subtests):
            f = torch.compile(clean)
            for dtype in (torch.float32, torch.float64):
                with subtests.test(dtype=dtype):
                    f(X.to(dtype))

        @pytest.mark.max_graphs(1)
        class TestPlain(unittest.TestCase):
            def test_over(self):
                f = torch.compile(clean)
                for dtype in (torch.float32, torch.float64):
                    with self.subTest(dtype=dtype):
                        f(X.to(dtype))
        """
    )
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(
        ["2 graphs (1 first + 1 by recompile), max_graphs(1)", "dynacheck: 2 tests, 1 over *"]
    )


def test_doctest(project):
    project.pytester.makepyfile(
        documented='''
        import pytest
        import torch

        pytestmark = pytest.mark.max_graphs(1)

        def double(x):
            """
            >>> f = torch.compile(double)
            >>> f(torch.ones(1)), f(torch.ones(1, dtype=torch.float64))
            (tensor([2.]), tensor([2.], dtype=torch.float64))
            """
            return x * 2
        '''
    )
    result = project.pytester.runpytest_inprocess(
        "-p", "no:cacheprovider", "--doctest-modules", "documented.py"
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*2 graphs (1 first + 1 by recompile), max_graphs(1)*"])


def test_without_the_benchmark_plugin(project):
    project.run("-p", "no:benchmark", text=OVER).assert_outcomes(passed=1, failed=1)


def test_without_autoloaded_plugins(project, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    project.run(text="def test_one():\n    pass\n").assert_outcomes(passed=1)
    project.run("-p", "pytest_dynacheck.plugin", text=OVER).assert_outcomes(passed=1, failed=1)


def test_the_debugger_is_entered(project):
    import pdb

    from _pytest.monkeypatch import MonkeyPatch

    entered = []
    with MonkeyPatch.context() as patch:
        patch.setattr(pdb.Pdb, "interaction", lambda self, *args: entered.append(args))
        project.run("--pdb", text=OVER).assert_outcomes(passed=1, failed=1)
    assert len(entered) == 1


def test_repeated_runs_in_one_process(project):
    import torch

    original = torch.compile.__code__
    for _ in range(3):
        result = project.run(text=OVER)
        result.assert_outcomes(passed=1, failed=1)
        result.stdout.fnmatch_lines(["dynacheck: 2 tests, 1 over budget *"])
        assert torch.compile.__code__ is original


def test_xdist_spreads_devices(project, monkeypatch):
    """The fixture's arithmetic with four GPUs that aren't there."""
    import torch

    from pytest_dynacheck import _options

    monkeypatch.setattr(_options, "_gpus", lambda: 4)
    found = []
    for worker in ("gw0", "gw1", "gw3", "gw4", "master"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        found.append(_options.device({"device": "auto"}, None))
    assert found == [torch.device(f"cuda:{n}") for n in (0, 1, 3, 0, 0)]
    assert _options.device({"device": "auto"}, "cuda:2") == torch.device("cuda:2")
    assert _options.device({"device": "cpu"}, None) == torch.device("cpu")


def test_xdist_workers_fail_in_one_line_for_a_bad_option(project):
    result = project.run("-n2", "--dynacheck-max-graphs=few", text=OVER)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --dynacheck-max-graphs=few: expected a whole number from 0 on"])


def test_xdist_a_bad_marker_is_one_error(project):
    result = project.run(
        "-n2",
        text="@pytest.mark.dynacheck(graps=1)\ndef test_wrong():\n    pass\n" + OVER,
    )
    result.assert_outcomes(passed=1, failed=1, errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*dynacheck() has no argument 'graps'; did you mean 'graphs'[?]"])
