"""Pages say what the code does, and show what commands print."""

from __future__ import annotations

import builtins
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_pages_are_up_to_date():
    run = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_builtin_is_on_the_page_of_what_is_translated():
    page = (ROOT / "docs" / "reference" / "support.md").read_text()
    left_out = {"aiter", "anext", "breakpoint", "copyright", "credits", "exit", "help", "license", "quit"}
    names = {
        n for n, v in vars(builtins).items() if callable(v) and not n.startswith("_") and n not in left_out
    }
    names = {n for n in names if not (isinstance(vars(builtins)[n], type) and n[0].isupper())}  # exceptions
    assert {name for name in names if f"| `{name}` | `" not in page} == set()


SITE = ROOT / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", sorted(SITE.glob("**/*.md")), ids=lambda p: str(p.relative_to(SITE)))
def test_every_block_of_code_is_run(page):
    """A block is a file that a command of the page runs, or an example that the doctests run."""
    text = page.read_text()
    if text.startswith("<!-- written by docs/generate.py -->"):
        return  # from what it ran
    blocks = [match.groups() for match in BLOCK.finditer(text)]
    files = [body for language, body in blocks if language == "python"]
    assert all(body.startswith("# file: ") for body in files)
    assert not files or any(language == "console" for language, _ in blocks)
    examples = [body for language, body in blocks if language == "pycon"]
    assert not examples or page.parent.name == "explanation"  # tests/test_explanations.py


HIT_GOALS = {
    "`f(x, y)`": 7,
    "10 parameters": 7,
    "100 parameters": 10,
    "1000 parameters": 10,
    "10000 parameters": 10,
}


def test_the_hits_that_were_measured_cost_what_they_may():
    """One seventh of what torch.compile's cost, and one tenth from a hundred parameters on."""
    text = (ROOT / "docs" / "reference" / "benchmarks.md").read_text()
    table = text.partition("## A hit")[2].partition("##")[0]
    found = {
        name: float(ratio)
        for name, ratio in re.findall(r"^\| (\S.*?) \|.*\| 1/([\d.]+) \|$", table, re.MULTILINE)
    }
    assert set(found) == set(HIT_GOALS)
    assert {name for name, least in HIT_GOALS.items() if found[name] < least} == set()


def test_what_contributors_are_shown_is_in_the_files_that_are_named():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    blocks = [body.partition("\n") for _, body in (match.groups() for match in BLOCK.finditer(text))]
    assert len(blocks) >= 5
    for name, _, body in blocks:
        assert body in (ROOT / name.split()[1]).read_text(), name
    named = re.findall(r"`((?:engine|tests|docs|pytest_dynacheck)/[\w/.]+)`", text)
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_page_is_in_the_sites_navigation():
    config = (ROOT / "mkdocs.yml").read_text()
    missing = [p.name for p in SITE.glob("**/*.md") if f"- {p.relative_to(SITE).as_posix()}" not in config]
    assert not missing
