"""Baselines: written on request, compared otherwise, never overwritten by mistake."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from pytest_dynacheck._baseline import Baseline, Entry, Unreadable, read

TESTS = """
def test_one():
    torch.compile(clean)(X)

@pytest.mark.max_graph_breaks(1)
def test_broken():
    torch.compile(printing)(X)

def test_again():
    model = Scaled()
    compiled = torch.compile(model)
    compiled(X)
    model.scale = 0.6
    compiled(X)

def test_plain():
    pass

def test_failing():
    torch.compile(clean)(X)
    assert False
"""
WRITTEN = """\
# What each test compiles, checked by pytest --dynacheck-baseline=FILE.
# Written by pytest --dynacheck-baseline=FILE --dynacheck-update-baseline.

version = 1

[written-with]
torch = "VERSION"
engine = "bundled"
backend = "eager"

["test_it.py::test_again"]
graphs = 2
graph_breaks = 0
recompiles = 1
cache_entries = 2
causes = [
    "recompile:value:self.scale@programs.py:Scaled.forward",
]

["test_it.py::test_broken"]
graphs = 2
graph_breaks = 1
recompiles = 0
cache_entries = 1
causes = [
    "break:DC103@programs.py:printing",
]

["test_it.py::test_one"]
graphs = 1
graph_breaks = 0
recompiles = 0
cache_entries = 1
"""
FILE = "--dynacheck-baseline=b.toml"
UPDATE = "--dynacheck-update-baseline"


@pytest.fixture
def text():
    import torch

    return WRITTEN.replace("VERSION", torch.__version__.partition("+")[0])


@pytest.fixture
def path(project):
    return project.pytester.path / "b.toml"


def told(result):
    return [line for line in result.outlines if line.startswith("dynacheck: ") and ", isolate " not in line]


def test_writing_and_comparing(project, path, text):
    result = project.run(FILE, UPDATE, text=TESTS)
    result.assert_outcomes(passed=4, failed=1)
    assert f"dynacheck: wrote {path.name}: 3 new, 0 changed, 0 dropped" in told(result)
    assert path.read_text() == text
    result = project.run(FILE)
    result.assert_outcomes(passed=4, failed=1)
    assert [line for line in told(result) if "baseline" in line] == []
    assert f"dynacheck: {path.name} is up to date" in told(project.run(FILE, UPDATE))
    assert path.read_text() == text


def test_more_fails_and_says_what(project, path, text):
    path.write_text(text)
    result = project.run(
        FILE,
        text=TESTS.replace(
            "torch.compile(clean)(X)\n\n@", "f = torch.compile(clean)\n    f(X), f(X[:3])\n\n@"
        ),
    )
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(
        [
            "2 graphs, baseline 1",
            "1 recompile, baseline 0",
            "2 cache entries of one function, baseline 1",
            "not in the baseline: recompile:size:x@programs.py:clean",
            "*dynacheck (engine bundled*",
            "OVER  max_recompiles(0)     counted 1  (baseline)",
        ]
    )
    assert path.read_text() == text


def test_another_cause_fails_with_the_same_numbers(project, path, text):
    path.write_text(text)
    result = project.run(
        FILE,
        text="""
        @pytest.mark.max_graph_breaks(1)
        def test_broken():
            def other(x):
                y = x + 1
                print("seen")
                return y * 2
            torch.compile(other)(X)
        """,
    )
    result.stdout.fnmatch_lines(
        ["not in the baseline: break:DC103@test_it.py:test_broken.<locals>.other", "*dynacheck (engine*"]
    )


def test_less_is_told_and_passes(project, path, text):
    path.write_text(text)
    result = project.run(FILE, "-k", "not failing", text=TESTS.replace("model.scale = 0.6", "pass"))
    result.assert_outcomes(passed=4)
    assert told(result)[:2] == [
        "dynacheck: test_it.py::test_again: better than its row in the baseline",
        "dynacheck: baseline: --dynacheck-update-baseline writes what tests compile now",
    ]


def test_compiling_nothing_any_more_is_no_improvement(project, path, text):
    path.write_text(text)
    result = project.run(FILE, text="def test_one():\n    pass\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["not in the baseline: nothing-compiled"])


def test_what_ended_in_eager_can_be_accepted(project, path):
    body = "def test_one():\n    torch.compile(looping)(X)\n    torch.compile(clean)(X)\n"
    project.run(FILE, UPDATE, text=body)
    assert "eager:skip@programs.py:looping" in path.read_text()
    project.run(FILE).assert_outcomes(passed=1)


@pytest.mark.parametrize(("ini", "failed"), [("", 0), ("[pytest]\ndynacheck_strict = true\n", 1)])
def test_a_test_without_a_row(project, path, text, ini, failed):
    path.write_text(text)
    project.pytester.makeini(ini)
    result = project.run(FILE, text="def test_new():\n    torch.compile(clean)(X)\n")
    result.assert_outcomes(passed=1 - failed, failed=failed)
    if failed:
        result.stdout.fnmatch_lines(["no row in the baseline"])
    else:
        assert "dynacheck: test_it.py::test_new: no row in the baseline" in told(result)


def test_rows_without_a_test_are_told_and_dropped(project, path, text):
    path.write_text(text)
    project.write(TESTS.replace("test_again", "test_renamed").replace("assert False", "pass"))
    gone = "dynacheck: test_it.py::test_again: has a row in the baseline, and there is no such test"
    assert gone in told(project.run(FILE))
    assert gone in told(project.run(FILE, "-k", "test_one"))
    assert gone not in told(project.run(FILE, "test_it.py::test_one"))
    assert gone not in told(project.run(FILE, "--ignore=elsewhere"))
    assert gone not in told(project.run(FILE, "-x", "--maxfail=1", "test_it.py::test_one"))
    result = project.run(FILE, UPDATE, "test_it.py::test_one")
    assert f"dynacheck: {path.name} is up to date" in told(result)
    assert f"dynacheck: wrote {path.name}: 2 new, 0 changed, 1 dropped" in told(project.run(FILE, UPDATE))
    assert "test_again" not in path.read_text()


def test_a_module_that_skips_itself_keeps_its_rows(project, path, text):
    path.write_text(text)
    result = project.run(FILE, text="pytest.skip(allow_module_level=True)\n")
    assert "no such test" not in result.stdout.str()


def test_across_workers(project, path, text):
    project.write(TESTS)
    command = [sys.executable, "-m", "pytest", "-n2", "-p", "no:cacheprovider", FILE]
    kwargs = dict(cwd=project.pytester.path, capture_output=True, text=True, check=False)
    run = subprocess.run([*command, UPDATE], **kwargs)
    assert f"dynacheck: wrote {path.name}: 3 new, 0 changed, 0 dropped" in run.stdout
    assert path.read_text() == text
    path.write_text(
        text.replace("recompiles = 1", "recompiles = 0") + '\n["test_it.py::test_gone"]\ngraphs = 1\n'
    )
    run = subprocess.run(command, **kwargs)
    assert "1 recompile, baseline 0" in run.stdout
    assert "test_gone: has a row in the baseline, and there is no such test" in run.stdout


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "there is no such file; --dynacheck-update-baseline writes it"),
        ("<<<<<<< ours\n", "it isn't valid TOML: *(at line 1, column 1)"),
        ("x = 1\n", "it isn't a baseline: it has no version"),
        ("version = 2\n", "it has version 2; this pytest-dynacheck reads version 1"),
        ("version = 1\n['t']\ngraphs = -1\n", '["t"]: graphs takes a whole number from 0 on, not -1'),
        ("version = 1\n['t']\ngraphs = true\n", '["t"]: graphs takes a whole number from 0 on, not True'),
        ("version = 1\n['t']\nlines = 1\n", "[[]\"t\"[]]: there is no count 'lines'"),
        ("version = 1\n['t']\ncauses = 'x'\n", '[[]"t"[]]: causes takes a list of texts'),
        ("version = 1\nt = 1\n", '[[]"t"[]] isn\'t a table'),
        ("version = 1\nwritten-with = 1\n", "[[]written-with[]] takes texts only"),
    ],
)
def test_a_file_that_cant_be_used(project, path, content, line):
    project.write("def test_one():\n    assert False, 'it ran'\n")
    if content is not None:
        path.write_text(content)
    line = line if "[[]" in line else line.replace("[", "[[]")
    for args in ([FILE], [FILE, UPDATE]) if content is not None else ([FILE],):
        result = project.run(*args)
        assert result.ret == 4
        result.stderr.fnmatch_lines([f"ERROR: --dynacheck-baseline={path}: {line}"])
        assert "it ran" not in result.stdout.str()
    assert content is None or path.read_text() == content


def test_an_unreadable_file(project, path):
    path.write_bytes(b"\xff\xfe\x00")
    result = project.run(FILE, text="def test_one():\n    pass\n")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: --dynacheck-baseline={path}: it can't be read: *"])


def test_updating_needs_a_file(project):
    result = project.run(UPDATE, text="def test_one():\n    pass\n")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --dynacheck-update-baseline needs --dynacheck-baseline=FILE"])


def test_an_interrupted_run_drops_nothing(project, path, text):
    path.write_text(text)
    project.run(FILE, UPDATE, text="def test_one():\n    pytest.exit('stop')\n")
    assert path.read_text() == text


def test_what_it_was_written_with_is_told(project, path, text):
    path.write_text(text.replace('engine = "bundled"', 'engine = "torch"'))
    result = project.run(FILE, "-k", "not failing", text=TESTS)
    result.assert_outcomes(passed=4)
    [line] = [line for line in told(result) if "written with" in line]
    assert "engine torch, backend eager; this is torch" in line


@pytest.mark.parametrize(("written", "checked"), [("bundled", "torch"), ("torch", "bundled")])
def test_a_baseline_of_one_engine_checks_the_other(project, path, written, checked):
    engine = "--dynacheck-engine="
    project.run(
        FILE,
        UPDATE,
        engine + written,
        text=TESTS + "\ndef test_loop():\n    torch.compile(looping)(X), torch.compile(clean)(X)\n",
    )
    assert "eager:skip@programs.py:looping" in path.read_text()
    result = project.run(FILE, engine + checked)
    result.assert_outcomes(passed=5, failed=1)
    assert [line for line in told(result) if "better" in line or "no row" in line] == []
    path.write_text(path.read_text().replace("recompiles = 1", "recompiles = 0"))
    result = project.run(FILE, engine + checked)
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(["1 recompile, baseline 0"])


COUNTS = {"graphs": 1, "graph_breaks": 1, "recompiles": 0, "cache_entries": 1}


def test_names_of_any_kind_survive(tmp_path):
    names = ["t.py::test[é\\\"'\n\t\x7f\x00😀]", "t.py::test[\udc80]", "version", "t.py::test[a.b]"]
    entries = {name: Entry({"graphs": i}, ("x\x1b",)) for i, name in enumerate(names)}
    path = tmp_path / "b.toml"
    del entries["version"]  # no test is called that: a test's name has `::`
    path.write_text(Baseline(entries, {"torch": "2"}).text(), encoding="utf-8")
    tomllib.loads(path.read_text(encoding="utf-8"))
    again = read(path)
    for i, name in enumerate(names):
        if name in entries:
            found = again.compare(name, {"graphs": i}, ["x\x1b"], "bundled")
            assert found.status == "same", name


def test_engines_are_compared_by_what_both_can_name():
    mine = Entry(COUNTS, ("break:DC103@m.py:f", "eager:skip@m.py:f"))
    baseline = Baseline({"t": mine}, {"engine": "bundled"})
    other = ["break:torch:Strange@m.py:f", "eager:skip@m.py:f"]
    assert baseline.compare("t", COUNTS, other, "torch").status == "same"
    assert baseline.compare("t", COUNTS, other, "bundled").status == "worse"
    elsewhere = ["break:torch:Strange@m.py:g", "eager:skip@m.py:f"]
    assert baseline.compare("t", COUNTS, elsewhere, "torch").better == ("gone: break:DC103@m.py:f",)


def test_a_number_that_an_engine_cant_know_is_an_error():
    baseline = Baseline({"t": Entry(COUNTS, ())}, {})
    found = baseline.compare("t", {**COUNTS, "graphs": None}, [], "torch")
    assert found.worse == ("baseline graphs=1: this engine can't count them on this version of torch",)
    assert baseline.compare("t", COUNTS, [], "torch").status == "same"


def test_reading_says_what_is_wrong(tmp_path):
    with pytest.raises(Unreadable, match="there is no such file"):
        read(tmp_path / "none.toml")
