"""What the failing reports of the small cases in tests/cases say, whole, in golden files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.append(str(Path(__file__).parent))

import golden_files

TESTS = Path(__file__).parents[1]
MEASURED = torch.__version__.startswith("2.13.") and sys.version_info[:2] == (3, 11)
VARIES = {
    "101_time_in_forward",  # times are in its report
    "64_random_random_and_time",  # random numbers are
    "43_class_defined_inside",  # whether the class of the first call is still there is the garbage collector's choice
}
CASES = sorted({path.stem for path in (TESTS / "cases").glob("[0-9]*.py")} - VARIES)
LONGEST = 34

SUITE = """
import contextlib, sys
sys.path.insert(0, {engine!r})
import pytest
import torch
from parity.harness import from_case, load, run


class Redirected:
    def compile(self, fn, **keywords):
        return torch.compile(fn, **keywords)

    def reset(self):
        pass

    def patched(self):
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def record(self):
        yield self

    def calls_so_far(self):
        return 0

    def outcomes_since(self, number):
        return None

    def finish(self):
        return None


@pytest.mark.dynacheck(max_graph_breaks=0, max_recompiles=0)
@pytest.mark.parametrize("name", {cases!r})
def test_case(name):
    run(from_case(load({folder!r} + "/" + name + ".py")), Redirected())
"""


class Reports:
    """Collects the texts of failing tests."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.own: dict[str, bool] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call":
            name = report.nodeid.partition("[")[2].rstrip("]")
            parts = [
                f"-- {title} --\n{text}" for title, text in report.sections if title.startswith("dynacheck")
            ]
            self.texts[name] = "\n".join([str(report.longrepr or "passed"), *parts])
            self.own[name] = (
                not report.failed
                or "BudgetExceeded" in str(type(report.longrepr))
                or (getattr(report, "dynacheck", {}).get("verdict") is not None)
            )


@pytest.fixture(scope="module")
def collected(request):
    return {}


@pytest.fixture
def reports(project, collected):
    if not collected:
        folder = str(TESTS / "cases")
        engine = str(TESTS / "engine")
        project.pytester.makepyfile(test_cases=SUITE.format(engine=engine, cases=CASES, folder=folder))
        seen = Reports()
        project.pytester.runpytest_inprocess(
            "-q", "-p", "no:cacheprovider", f"--rootdir={TESTS}", "test_cases.py", plugins=[seen]
        )
        collected["reports"] = seen
    return collected["reports"]


@pytest.mark.skipif(not MEASURED, reason="texts are those of torch 2.13 and Python 3.11")
@pytest.mark.parametrize("name", CASES)
def test_golden(reports, name):
    text = reports.texts[name]
    golden_files.compare(f"cases/{name}", text)


@pytest.mark.skipif(not MEASURED, reason="texts are those of torch 2.13 and Python 3.11")
def test_golden_reports_are_short_and_in_the_users_words(reports):
    for name, text in reports.texts.items():
        if reports.own[name]:
            assert len(text.splitlines()) <= LONGEST, name
            for internal in ("___stack", "__closure__", "L['", "G['", "/engine/dynacheck/", "object at 0x"):
                assert internal not in text, name
