"""Builtin containers and scalars in compiled functions."""

import dynacheck
import pytest
from engine.semantics.container_harness import check
from engine.variables import container_programs as programs

GIVEN = {
    "LISTS": ("a", "[1, 2, 3]"),
    "TUPLES": ("t", "(1, 2, 'c')"),
    "RANGES": ("", ""),
    "DICTS": ("d", "{'a': 1, 'b': 2, 1: 'one', (1, 'x'): None}"),
    "SETS": ("s", "{1, 2, 3}"),
    "ITERATORS": ("", ""),
    "SCALARS": ("", ""),
}
CASES = [pytest.param(t, *g, id=f"{n.lower()}: {t}") for n, g in GIVEN.items() for t in getattr(programs, n)]


@pytest.fixture(autouse=True)
def _fresh():
    dynacheck.reset()


@pytest.mark.parametrize("text, args, values", CASES)
def test_expression(text, args, values):
    check(args, values, f"result = {text}")


@pytest.mark.parametrize("text", programs.DEQUES)
def test_deque(text):
    check("", "", f"d = collections.deque([1, 2, 3])\nresult = {text}, d")


@pytest.mark.parametrize("name", programs.STATEMENTS)
def test_statements(name):
    args, values, body = programs.STATEMENTS[name]
    check(args, values, body)
