"""Builtin containers, iterators and scalars on trackers alone, against CPython."""

import pytest
from engine.variables import container_programs as programs
from engine.variables.mirror import check_expression, check_statements


def _cases():
    for name, args, values in (
        ("LISTS", "a", "[1, 2, 3]"),
        ("TUPLES", "t", "(1, 2, 'c')"),
        ("RANGES", "", ""),
        ("DEQUES", "d", "collections.deque([1, 2, 3])"),
        ("DICTS", "d", "{'a': 1, 'b': 2, 1: 'one', (1, 'x'): None}"),
        ("SETS", "s", "{1, 2, 3}"),
        ("ITERATORS", "", ""),
        ("SCALARS", "", ""),
    ):
        for text in getattr(programs, name):
            if text in programs.NEEDS_FRAME:
                continue
            yield pytest.param(text, args, values, id=f"{name.lower()}: {text}")


@pytest.mark.parametrize("text, args, values", _cases())
def test_expression(text, args, values):
    check_expression(text, args, values)


@pytest.mark.parametrize("name", programs.STATEMENTS)
def test_statements(name):
    check_statements(*programs.STATEMENTS[name])
