"""What a whole run prints, in golden files: help, header, reports, summary; in colour, on narrow terminals, in CI."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).parent))

import golden_files

TESTS = """
@pytest.mark.max_graphs(1)
def test_holds():
    torch.compile(clean)(X)


@pytest.mark.max_graph_breaks(0)
def test_breaks():
    torch.compile(printing)(X)


@pytest.mark.max_recompiles(0)
@pytest.mark.parametrize("sizes", [(4, 3), (4, 4)], ids=["sizes_that_differ_from_call_to_call", "same"])
def test_sizes(sizes):
    f = torch.compile(clean)
    for size in sizes:
        f(X[:size])


@pytest.mark.max_recompiles(0)
def test_called_once_and_leaves_a_setting_behind():
    torch.compile(clean)(X)
    torch.set_default_dtype(torch.float64)


@pytest.mark.max_graphs(1)
def test_compiles_nothing():
    torch.compile(clean)


@pytest.mark.max_cache_entries(2)
def test_ends_eagerly():
    torch.compile(looping)(X)


@pytest.mark.xfail(strict=True)
@pytest.mark.dynacheck(graphs=3, allow=["break:DC103@*"])
def test_expected_to_fail():
    torch.compile(printing)(X)


@pytest.mark.max_graphs(1)
def test_fails_by_itself():
    assert torch.compile(clean)(X) is None
"""
SIZES = """
def calls(f, *sizes, mark=None, **options):
    compiled = torch.compile(f, **options)
    for size in sizes:
        x = torch.ones(size)
        if mark:
            mark(x, 0)
        compiled(x)


def narrow(x):
    if 3 < x.shape[0] < 5:
        return x * 2
    return x * 3


def signed(x):
    if x.sum() > 0:
        return x * 2
    return x * 3


pytestmark = pytest.mark.max_recompiles(0)


def test_dynamic_but_one_size_only():
    calls(narrow, 2, 4, 6)


def test_a_mark_that_ended_up_pinned():
    calls(narrow, 4, 6, mark=torch._dynamo.maybe_mark_dynamic)


def test_a_mark_that_must_hold():
    calls(narrow, 4, mark=torch._dynamo.mark_dynamic)


def test_a_batch_of_one():
    calls(clean, (4, 3), (1, 3), mark=torch._dynamo.mark_dynamic)


def test_sizes_that_were_equal():
    calls(clean, (4, 4), (4, 5), dynamic=True)


@pytest.mark.max_graph_breaks(0)
def test_both_sides_of_a_branch():
    compiled = torch.compile(signed)
    for value in (1.0, -1.0):
        compiled(torch.full((3,), value))
    for value in (1.0, -1.0):
        compiled(torch.full((4,), value))
"""
RUNS = {
    "plain": ((), {}),
    "verbose": (("-v",), {}),
    "very_verbose": (("-vv",), {}),
    "quiet": (("-q",), {}),
    "very_quiet": (("-qq",), {}),
    "colour": (("--color=yes",), {}),
    "table": (("--dynacheck", "--tb=no"), {}),
    "header": (("--dynacheck-max-graphs=3", "--dynacheck-max-recompiles=0", "--dynacheck-compare", "--tb=no"), {}),
    "narrow_60": (("--dynacheck",), {"COLUMNS": "60"}),
    "narrow_40": (("--dynacheck", "-v"), {"COLUMNS": "40"}),
    "ci": ((), {"CI": "true"}),
}  # fmt: skip
MACHINES = ("platform ", "rootdir: ", "plugins: ", "cachedir: ", "benchmark: ", "hypothesis profile")
MEASURED = (torch.__version__[:5], pytest.__version__[:4], sys.version_info[:2]) == ("2.13.", "9.2.", (3, 11))
pytestmark = pytest.mark.skipif(
    not MEASURED, reason="texts are those of torch 2.13, pytest 9.2 and Python 3.11"
)


def steady(text: str) -> str:
    """A run's output without what differs from machine to machine."""
    lines = [line for line in text.splitlines() if not line.startswith(MACHINES)]
    text = "\n".join(lines).replace("\x1b", "␛")
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    text = re.sub(r"/\S+/(test_it\.py)", r"\1", text)
    text = re.sub(r"in \d+\.\d+s( \(\d+:\d+:\d+\))?", "in N s", text)
    text = re.sub(r"=+ (.* in N s)(.*?) ?=+", r"== \1\2 ==", text)
    text = re.sub(r"-{3,} (dynacheck \(engine .*?\)) -+", r"-- \1 --", text)
    return re.sub(r"dynacheck: \d+\.\d+\.\d+ \(", "dynacheck: N (", text)


def _on_a_desk(monkeypatch):
    """Not in CI, where pytest doesn't shorten its summary."""
    monkeypatch.setenv("COLUMNS", "80")
    for variable in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize("name", RUNS)
def test_golden_run(project, monkeypatch, name):
    args, environment = RUNS[name]
    _on_a_desk(monkeypatch)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    result = project.run("-p", "no:asyncio", *args, text=TESTS)
    golden_files.compare(f"runs/{name}", steady(result.stdout.str()))


def test_golden_sizes(project, monkeypatch):
    _on_a_desk(monkeypatch)
    result = project.run("-p", "no:asyncio", "--tb=short", text=SIZES)
    golden_files.compare("runs/sizes", steady(result.stdout.str()))


@pytest.mark.parametrize("page", ["help", "markers", "fixtures"])
def test_golden_page(project, monkeypatch, page):
    monkeypatch.setenv("COLUMNS", "80")
    lines = project.run(f"--{page}", *(["-v"] if page == "fixtures" else [])).outlines
    golden_files.compare(f"runs/{page}", "\n".join(ours(page, lines)))


def ours(page: str, lines: list[str]) -> list[str]:
    """The part of a page that this plugin writes."""
    if page == "markers":
        return [
            line for line in lines if re.match(r"@pytest.mark.(dynacheck|max_(graph|recompile|cache))", line)
        ]
    starts = {
        "help": re.compile(r"compile stability|  (dynacheck_\w+|verbosity_dynacheck) \("),
        "fixtures": re.compile(r"dynacheck\w* -- "),
    }[page]
    found, inside = [], False
    for line in lines:
        if starts.match(line):
            inside = True
        elif page == "help" and (not line or re.match(r"  \w+ \(", line)):
            inside = False
        elif page == "fixtures" and line and not line.startswith(" "):
            inside = False
        if inside:
            found.append(re.sub(r" -- .*", "", line))
    return found
