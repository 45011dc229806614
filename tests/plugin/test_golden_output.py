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
"""
BRANCH = """
def signed(x):
    if x.sum() > 0:
        return x * 2
    return x * 3


@pytest.mark.max_recompiles(0)
@pytest.mark.max_graph_breaks(0)
def test_both_sides_of_a_branch():
    compiled = torch.compile(signed)
    for value in (1.0, -1.0):
        compiled(torch.full((3,), value))
    for value in (1.0, -1.0):
        compiled(torch.full((4,), value))
"""
HINTS = """
class Net(torch.nn.Module):
    def __init__(self, **held):
        super().__init__()
        for name, value in held.items():
            setattr(self, name, value)


def calls(f, *arguments, **options):
    compiled = torch.compile(f, **options)
    for args in arguments:
        compiled(*args)


def ones(*shapes):
    return [(torch.ones(shape),) for shape in shapes]


pytestmark = pytest.mark.max_recompiles(0)


def test_mark_dynamic():
    calls(lambda x: x * 2, *ones((4, 3), (5, 3)))


def test_dynamic_true():
    calls(lambda x, y: x.sum() * y.sum(), (torch.ones(4, 3), torch.ones(2, 5)), (torch.ones(5, 4), torch.ones(3, 6)))


def test_mark_unbacked():
    calls(lambda x: x * 2, *ones((4, 3), (1, 3)))


def test_buffer_instead_of_a_number():
    class Scaled(Net):
        def forward(self, x):
            return x * self.scale

    net = Scaled(scale=2)
    compiled = torch.compile(net)
    for net.scale in (2, 3):
        compiled(X)


def test_pad():
    def f(x):
        return x * 2 if x.shape[0] > 6 else x * 3

    calls(f, *ones(4, 5, 9))


def test_out_of_forward():
    class Table(Net):
        def forward(self, x):
            if self.table is None:
                self.table = torch.arange(4.0)
            return x * self.table

    calls(Table(table=None), (X,), (X,))


def test_static_cache_of_a_module():
    class Cached(Net):
        def forward(self, x):
            self.keys = torch.cat([self.keys, x])
            return self.keys @ x.t()

    calls(Cached(keys=torch.zeros(2, 3)), *ones((1, 3), (1, 3), (1, 3)))


def test_static_cache_that_is_handed_on():
    compiled = torch.compile(lambda x, past: [torch.cat([t, x]) for t in past])
    past = [torch.zeros(2, 3), torch.zeros(2, 3)]
    for _ in range(4):
        past = compiled(torch.ones(1, 3), past)


def test_collect_outside():
    kept = []
    calls(lambda x: kept.append(x * 2), (X,), (X,), (X,))


def test_index():
    calls(lambda x, i: x[i] * 2, (X, torch.tensor(0)), (X, torch.tensor(1)))


def test_order_of_keys():
    x = torch.ones(3)
    calls(lambda batch: [v * 2 for v in batch.values()], ({"a": x, "b": x},), ({"b": x, "a": x},))


def test_arguments():
    def f(*args, **named):
        return args[0] * len(args) * len(named)

    compiled = torch.compile(f)
    compiled(X)
    compiled(X, a=1)
    compiled(X, X, b=1)


def test_modes():
    net = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Sequential(torch.nn.Dropout()))
    compiled = torch.compile(net)
    compiled(X)
    net.eval()
    compiled(X)


def test_width_of_a_module():
    calls(lambda x, m: m(x), *((torch.ones(2, 3), torch.nn.Linear(3, n)) for n in (4, 5)))
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


SUITES = {"sizes": (SIZES, "--tb=short"), "branch": (BRANCH, "-v"), "hints": (HINTS, "--tb=short")}


@pytest.mark.parametrize("name", SUITES)
def test_golden_reports_of(project, monkeypatch, name):
    text, option = SUITES[name]
    _on_a_desk(monkeypatch)
    result = project.run("-p", "no:asyncio", option, text=text)
    golden_files.compare(f"runs/{name}", steady(result.stdout.str()))


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
