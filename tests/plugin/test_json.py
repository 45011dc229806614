"""The JSON file: what is in it, and what happens where it can't be written."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from plugin.schemas import faults

from pytest_dynacheck._schema import DOCUMENT

TESTS = """
import torch._dynamo.config

@pytest.mark.max_graphs(1)
def test_within():
    torch.compile(clean)(X)

@pytest.mark.max_graph_breaks(0)
def test_break():
    torch.compile(printing)(X)

@pytest.mark.dynacheck(max_recompiles=0, allow=["recompile:value:*", "recompile:type:*"])
def test_allowed():
    model = Scaled()
    compiled = torch.compile(model)
    compiled(X)
    model.scale = 0.6
    compiled(X)

@pytest.mark.max_graphs(1)
def test_nothing():
    pass

@pytest.mark.max_graph_breaks(1)
def test_eager():
    torch.compile(looping)(X)

@pytest.mark.max_graphs(1)
def test_leaving():
    torch._dynamo.config.recompile_limit = 3
    torch.compile(clean)(X)

@pytest.mark.max_graphs(1)
@pytest.mark.xfail
def test_expected():
    torch.compile(printing)(X)

@pytest.mark.max_graphs("many")
def test_wrong_marker():
    pass

@pytest.fixture
def model():
    compiled = torch.compile(clean)
    compiled(X)
    return compiled

@pytest.mark.max_recompiles(1)
def test_setup(model):
    model(X[:3])

def test_plain():
    pass
"""


def written(project, *args, name="out.json"):
    project.run(f"--dynacheck-json={name}", *args)
    return json.loads((project.pytester.path / name).read_text())


@pytest.fixture
def document(project):
    project.write(TESTS)
    return written(project)


def test_the_document(document):
    assert list(faults(document, DOCUMENT, DOCUMENT)) == []
    tests = {test["nodeid"].partition("::")[2]: test for test in document["tests"]}
    assert "test_plain" not in tests
    assert list(tests) == sorted(tests)
    assert {name: (test["outcome"], test["verdict"]) for name, test in tests.items()} == {
        "test_within": ("passed", "ok"),
        "test_break": ("failed", "over"),
        "test_allowed": ("passed", "ok"),
        "test_nothing": ("failed", "nothing-compiled"),
        "test_eager": ("failed", "eager"),
        "test_leaving": ("passed", "ok"),
        "test_expected": ("xfailed", "over"),
        "test_wrong_marker": ("error", None),
        "test_setup": ("passed", "ok"),
    }
    assert document["verdicts"] == {"over": 2, "eager": 1, "nothing-compiled": 1, "ok": 4}
    [broken] = tests["test_break"]["graph_breaks"]
    assert (broken["cause"], broken["line"]) == ("break:DC103@programs.py:printing", 11)
    assert tests["test_break"]["budgets"] == [
        {
            "name": "max_graph_breaks", "limit": 0, "counted": 1, "allowed": 0, "from": "marker", "ok": False,
        }
    ]  # fmt: skip
    [again] = tests["test_allowed"]["recompiles"]
    [change] = again["changes"]
    assert (change["then"], change["now"], change["decided"]) == ("0.5", "0.6", True)
    assert tests["test_allowed"]["allowed"] == [again["cause"]]
    assert tests["test_allowed"]["unused"] == ["recompile:type:*"]
    assert tests["test_eager"]["graph_breaks"][0]["eager_cause"] == "eager:skip@programs.py:looping"
    assert tests["test_leaving"]["state_leaks"] == [
        {"name": "torch._dynamo.config.recompile_limit", "old": "8", "new": "3"}
    ]
    assert set(tests["test_wrong_marker"]["counts"].values()) == {None}
    assert tests["test_setup"]["setup"]["graphs"] == 1
    assert "torch.relu" in tests["test_within"]["graphs"][0]["code"]


def test_what_is_only_watched_is_there_with_dynacheck(project):
    project.write("import dynacheck\n\ndef test_plain():\n    dynacheck.compile(clean, backend='eager')(X)\n")
    assert written(project)["tests"] == []
    [test] = written(project, "--dynacheck")["tests"]
    assert (test["under_test"], test["verdict"], test["counts"]["graphs"]) == (False, None, 1)


def test_workers_send_and_one_process_writes(project):
    project.write(TESTS)
    command = [sys.executable, "-m", "pytest", "-n2", "-p", "no:cacheprovider", "--dynacheck-json=out/x.json"]
    run = subprocess.run(command, cwd=project.pytester.path, capture_output=True, text=True, check=False)
    path = project.pytester.path / "out" / "x.json"
    assert f"dynacheck: wrote out/{path.name}" in run.stdout
    found = json.loads(path.read_text())
    assert list(faults(found, DOCUMENT, DOCUMENT)) == []
    assert found["verdicts"] == {"over": 2, "eager": 1, "nothing-compiled": 1, "ok": 4}
    assert [p.name for p in path.parent.iterdir()] == ["x.json"]


def test_a_fault_in_a_writer_is_told_and_changes_nothing(project, monkeypatch):
    from pytest_dynacheck import _json

    def fault(*args):
        raise KeyError("planted")

    monkeypatch.setattr(_json, "document", fault)
    (project.pytester.path / "out.json").write_text("as it was")
    result = project.run("--dynacheck-json=out.json", text=TESTS)
    result.assert_outcomes(passed=5, failed=3, errors=1, xfailed=1)
    result.stdout.fnmatch_lines(["dynacheck: --dynacheck-json: *out.json: KeyError: 'planted'"])
    assert (project.pytester.path / "out.json").read_text() == "as it was"


def test_a_disk_that_cant_be_written(project):
    (project.pytester.path / "blocked").write_text("a file, no folder")
    result = project.run(
        "--dynacheck-json=blocked/out.json",
        text="@pytest.mark.max_graphs(1)\ndef test_one():\n    torch.compile(clean)(X)\n",
    )
    result.assert_outcomes(passed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["dynacheck: --dynacheck-json: *blocked/out.json: *Error: *"])


def test_a_folder_is_refused(project):
    result = project.run("--dynacheck-json=.", text="def test_one():\n    pass\n")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --dynacheck-json=.: expected a file, this is a folder"])


def test_the_environment_can_name_it(project, monkeypatch):
    monkeypatch.setenv("PYTEST_DYNACHECK_JSON", "out.json")
    project.run(text="@pytest.mark.max_graphs(1)\ndef test_one():\n    torch.compile(clean)(X)\n")
    assert (project.pytester.path / "out.json").exists()


def test_a_rerun_counts_once(project):
    """What pytest-rerunfailures does: the same test again, all phases."""
    project.pytester.makeconftest(
        """
        import pytest
        from _pytest.runner import runtestprotocol

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_protocol(item, nextitem):
            for _ in range(2):
                item._initrequest()
                for report in runtestprotocol(item, nextitem=nextitem, log=False):
                    item.ihook.pytest_runtest_logreport(report=report)
            return True
        """
    )
    leaving = "    torch._dynamo.config.recompile_limit = 3\n"
    project.write("@pytest.mark.max_graphs(1)\ndef test_one():\n    torch.compile(clean)(X)\n" + leaving)
    [test] = written(project)["tests"]
    assert (test["outcome"], test["counts"]["graphs"]) == ("passed", 1)
    assert [leak["new"] for leak in test["state_leaks"]] == ["3"]


def test_junit_properties(project):
    project.run("--junitxml=out.xml", text=TESTS)
    text = (project.pytester.path / "out.xml").read_text()
    case = text.partition('name="test_break"')[2].partition("</testcase>")[0]
    for name, value in {
        "engine": "bundled", "backend": "eager", "verdict": "over", "graphs": 2, "graph_breaks": 1,
        "recompiles": 0, "cache_entries": 1,
    }.items():  # fmt: skip
        assert f'<property name="dynacheck.{name}" value="{value}" />' in case
