"""Hooks for other plugins: engines, hints, rows of reports."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

OVER = """
@pytest.mark.max_recompiles(0)
def test_one():
    model = Scaled()
    compiled = torch.compile(model)
    compiled(X)
    model.scale = 0.6
    compiled(X)
"""
KEY = "recompile:value:self.scale@programs.py:Scaled.forward"


def test_hints_and_rows(project):
    project.pytester.makeconftest(
        f"""
        asked = []

        def pytest_dynacheck_hints(item, cause, record):
            asked.append(cause)
            assert (item.name, record.cause) == ("test_one", cause)
            return ["ask the platform team", f"about {{record.function}}"]

        def pytest_dynacheck_report_rows(item, report):
            return {{"largest graph": max(graph.nodes for graph in report.graphs)}}

        def pytest_unconfigure():
            assert asked == [{KEY!r}]
        """
    )
    result = project.run("--dynacheck-json=d.json", "--dynacheck-html=d.html", text=OVER)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "all counts: *",
            "largest graph: *",
            "  hint: a Python float read in forward *",
            "  hint: ask the platform team",
            "  hint: about Scaled.forward",
            f"  allow with: {KEY}",
        ]
    )
    [test] = json.loads((project.pytester.path / "d.json").read_text())["tests"]
    assert test["hints"] == {KEY: ["ask the platform team", "about Scaled.forward"]}
    assert list(test["rows"]) == ["largest graph"]
    page = (project.pytester.path / "d.html").read_text()
    assert "ask the platform team" in page and "largest graph: " in page


def test_one_line_or_nothing(project):
    project.pytester.makeconftest(
        """
        def pytest_dynacheck_hints(cause):
            return "one line" if "value" in cause else None

        def pytest_dynacheck_report_rows():
            return None
        """
    )
    project.run(text=OVER).stdout.fnmatch_lines(["  hint: one line"])
    project.run(
        text="@pytest.mark.max_graphs(1)\ndef test_one():\n    torch.compile(clean)(X)\n"
    ).assert_outcomes(passed=1)


def test_an_answer_that_fails_is_told_and_changes_nothing(project):
    project.pytester.makeconftest(
        """
        def pytest_dynacheck_hints(item, cause, record):
            raise LookupError("no hints today")

        def pytest_dynacheck_report_rows(item, report):
            return 3
        """
    )
    result = project.run(text=OVER)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "1 recompile, max_recompiles(0)",
            "pytest_dynacheck_report_rows: a plugin's pytest_dynacheck_report_rows raised AttributeError: *",
            "  hint: a plugin's pytest_dynacheck_hints raised LookupError: no hints today",
            f"  allow with: {KEY}",
        ]
    )


ENGINE = """
from pytest_dynacheck.engines.bundled import Bundled

class Loud(Bundled):
    name = "loud"

    def compile(self, fn, **keywords):
        print("LOUD compile")
        return super().compile(fn, **keywords)

def pytest_dynacheck_engines(config):
    return {"loud": Loud}
"""


def test_an_engine(project):
    project.pytester.makeconftest(ENGINE)
    project.write(
        """
        @pytest.mark.max_graphs(1)
        def test_one():
            torch.compile(clean)(X)

        @pytest.mark.dynacheck(engine="loud", graphs=1)
        def test_marked():
            torch.compile(clean)(X)

        @pytest.mark.dynacheck(engine="bundled", graphs=1)
        def test_ours():
            torch.compile(clean)(X)

        @pytest.mark.dynacheck(engine="silent")
        def test_none():
            pass
        """
    )
    result = project.run("--dynacheck-engine=loud", "-s")
    result.assert_outcomes(passed=3, errors=1)
    assert result.stdout.str().count("LOUD compile") == 2
    result.stdout.fnmatch_lines(
        [
            "*@pytest.mark.dynacheck: no engine 'silent'; there are bundled, torch, loud",
            "dynacheck: 4 tests (engine bundled, backend eager; engine loud, backend eager)",
        ]
    )
    result = project.run("--dynacheck-engine=silent")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --dynacheck-engine=silent: expected one of bundled, torch, loud"])


def test_an_engine_with_a_name_that_is_taken(project):
    project.pytester.makeconftest("def pytest_dynacheck_engines(config):\n    return {'torch': object}\n")
    result = project.run(text="def test_one():\n    pass\n")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: pytest_dynacheck_engines: there is an engine 'torch' already"])


def test_an_engine_in_workers(project):
    project.pytester.makeconftest(ENGINE)
    project.write("@pytest.mark.max_graphs(1)\ndef test_one():\n    torch.compile(clean)(X)\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-n1", "-p", "no:cacheprovider", "--dynacheck-engine=loud"],
        cwd=project.pytester.path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "dynacheck: 1 test (engine loud, backend eager)" in run.stdout, run.stdout
    assert "1 passed" in run.stdout


def test_a_hook_that_isnt_one_is_refused(project):
    project.pytester.makeconftest("def pytest_dynacheck_hint(cause):\n    return 'x'\n")
    result = project.run(text="def test_one():\n    pass\n")
    assert result.ret != 0
    assert "unknown hook 'pytest_dynacheck_hint'" in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize(
    "name", ["pytest_dynacheck_engines", "pytest_dynacheck_hints", "pytest_dynacheck_report_rows"]
)
def test_hooks_say_what_they_are(name):
    from pytest_dynacheck import _hooks

    assert "Args:" in getattr(_hooks, name).__doc__ and "Returns:" in getattr(_hooks, name).__doc__
