"""The summary line, one-liners in verbose mode, results across xdist."""

from __future__ import annotations

import re
import subprocess
import sys

TESTS = """
@pytest.mark.max_graphs(1)
def test_within():
    torch.compile(clean)(X)

@pytest.mark.max_graphs(1)
def test_over():
    torch.compile(printing)(X)

@pytest.mark.max_graphs(1)
def test_nothing():
    pass

@pytest.mark.max_graph_breaks(1)
def test_eager():
    torch.compile(looping)(X)

def test_plain():
    pass
"""
LINE = (
    "dynacheck: 4 tests, 1 over budget, 1 ended in eager, 1 compiled nothing (engine bundled, backend eager)"
)


def test_summary_line(project):
    project.run(text=TESTS).stdout.fnmatch_lines([LINE])


def test_no_line_where_nothing_was_under_test(project):
    result = project.run(text="def test_plain():\n    pass\n")
    assert "dynacheck" not in result.stdout.str().replace("dynacheck-", "")


def test_verbose_has_a_word_per_test(project):
    result = project.run("-v", text=TESTS)
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_within PASSED (1 graph) *",
            "test_it.py::test_over FAILED (2 graphs, 1 graph break) *",
            "test_it.py::test_nothing FAILED (0 graphs) *",
            "test_it.py::test_plain PASSED  *",
            "FAILED test_it.py::test_over - BudgetExceeded: 2 graphs, max_graphs(1)",
        ]
    )


def test_results_cross_xdist(project):
    project.write(TESTS)
    project.pytester.makeconftest(
        """
        def pytest_runtest_logreport(report):
            data = getattr(report, "dynacheck", None)
            if data and report.when == "call" and hasattr(report, "node"):
                print("ARRIVED", report.nodeid, data["counts"]["graphs"], data["verdict"])
        """
    )
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-n2", "-p", "no:cacheprovider", "-s"],
        cwd=project.pytester.path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert LINE in run.stdout
    assert "ARRIVED test_it.py::test_over 2 over" in run.stdout
    assert "break:DC103@programs.py:printing" in run.stdout


def test_results_are_plain_data(project):
    project.write(TESTS)
    project.pytester.makeconftest(
        """
        import json

        def pytest_runtest_logreport(report):
            data = getattr(report, "dynacheck", None)
            if data and report.when == "call":
                assert json.loads(json.dumps(data)) == data
                print("PLAIN", data["verdict"])
        """
    )
    text = project.run("-s").stdout.str()
    assert re.findall(r"PLAIN ([\w-]+)", text) == ["ok", "over", "nothing-compiled", "eager"]


def test_parts_of_a_test_that_are_over_count(project):
    result = project.run(
        text="""
        def test_expect(dynacheck):
            f = dynacheck.compile(printing)
            with dynacheck.expect(graph_breaks=0):
                f(X)

        def test_steady(dynacheck):
            f = dynacheck.compile(clean)
            with dynacheck.steady():
                f(X)
        """
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["dynacheck: 2 tests, 2 over budget (engine bundled, backend eager)"])
