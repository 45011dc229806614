"""The pages in ``tests/proofs``: what is promised and which tests prove it; every test named there exists.

A page has tables ``| promise | proved by |``. The second column holds ids in backticks: ``path::test``,
``path::Class::test``, ``path::test[row]``, a row of the parity table as ``parity:name``, or a file.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "tests" / "proofs").glob("*.md"))
HEADER = re.compile(r"^\|\s*promise\s*\|\s*proved by\s*\|$")
BETWEEN = re.compile(r"^\|[\s:-]*\|[\s:-]*\|$")
CELLS = re.compile(r"(?<!\\)\|")
ID = re.compile(r"`([^`]+)`")
PARITY = re.compile(r"parity:\w+")


def rows(text: str) -> list[tuple[str, list[str]]]:
    """Every promise of a page with the ids beside it."""
    found, inside = [], False
    for line in map(str.strip, text.splitlines()):
        if not inside or not line.startswith("|"):
            inside = bool(HEADER.match(line))
        elif not BETWEEN.match(line):
            promise, proofs = CELLS.split(line)[1:3]
            found.append((promise.strip(), ID.findall(proofs)))
    return found


@functools.cache
def defined(path: Path) -> frozenset[str]:
    """The functions of a file, those of classes as ``Class::function``, and names that are assigned to."""
    tree = ast.parse(path.read_text())
    names: set[str] = set()
    for prefix, body in [("", tree.body)] + [
        (f"{node.name}::", node.body) for node in tree.body if isinstance(node, ast.ClassDef)
    ]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(prefix + node.name)
            elif isinstance(node, ast.Assign):
                names |= {prefix + target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(names)


FOLDERS = ("tests/suites", "examples/projects", "docs")  # of rows that are called as files and folders are


@functools.cache
def words_beside(folder: Path) -> str:
    """What tables of a folder's tests say: its Python files, and the faults of whole suites."""
    files = [*folder.glob("*.py"), *ROOT.glob("tests/suites/*/faults.toml")]
    return "\n".join(path.read_text() for path in [*files, *ROOT.glob("examples/projects/*/faults.toml")])


def is_row(row: str, folder: Path) -> bool:
    """Whether a parameter's id, or each part of it, stands in the files of a folder or is one."""

    def found(text: str) -> bool:
        said = words_beside(folder)  # rows may be called as functions are, with spaces
        return (
            text in said
            or text.replace(" ", "_") in said
            or any((ROOT / top / text).exists() for top in FOLDERS)
            or (ROOT / "tests" / "cases" / f"{text}.py").exists()
        )

    return found(row) or all(map(found, re.split(r"-|: | in ", row)))


def problem(proof: str) -> str | None:
    """What is wrong with an id; None for one that exists."""
    if PARITY.fullmatch(proof):
        return None  # tests/engine/parity/test_harness.py knows the rows
    name, _, row = proof.partition("[")
    file, _, function = name.partition("::")
    path = ROOT / file
    if not path.exists():
        return f"{proof}: there is no {file}"
    if function and (path.suffix != ".py" or function not in defined(path)):
        return f"{proof}: {file} defines no {function}"
    if row and not (row.endswith("]") and is_row(row[:-1], path.parent)):
        return f"{proof}: no row of that name beside {file}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_every_promise_names_tests_that_exist(page):
    promises = rows(page.read_text())
    assert promises, "no table | promise | proved by |"
    assert [promise for promise, proofs in promises if not proofs] == [], "nothing in backticks beside these"
    assert [wrong for _, proofs in promises for wrong in map(problem, proofs) if wrong] == []


HERE = "tests/test_proofs.py"


@pytest.mark.parametrize(
    ("proof", "text"),
    [
        (f"{HERE}::test_what_does_not_exist_is_told", None),
        (f"{HERE}::test_what_does_not_exist_is_told[a row with words of its own-None]", None),
        ("tests/test_layers.py::Module::functions", None),
        ("tests/cases/13_print_in_forward.py", None),
        ("parity:one_size", None),
        ("tests/test_nowhere.py::test_it", "there is no tests/test_nowhere.py"),
        (f"{HERE}::test_nothing", "defines no test_nothing"),
        ("tests/test_layers.py::functions", "defines no functions"),
        ("docs/index.md::test_it", "defines no test_it"),
        (f"{HERE}::test_what_does_not_exist_is_told[" + "x" * 40 + "]", "no row of that name"),
        ("a row with words of its own", "there is no a row with words of its own"),
    ],
)
def test_what_does_not_exist_is_told(proof, text):
    found = problem(proof)
    assert found is None if text is None else text in (found or "")


def test_a_page_is_read_as_it_is_written():
    page = "# A\n\n| promise | proved by |\n|---|---|\n| a \\| b | `x::y`, `z` |\n| c | nothing |\n\n| d | `e` |\n"
    assert rows(page) == [("a \\| b", ["x::y", "z"]), ("c", [])]
