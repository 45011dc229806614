"""Small programs, each with one thing that frames do: compiled they return, raise, print and change what they do plain."""

from __future__ import annotations

import contextlib
import io
import types

import dynacheck
import pytest
import torch
from engine.semantics import programs_of_classes
from engine.semantics.programs import PROGRAMS


def same(a, b):
    """Whether two results are alike: types, order, contents; functions by what they give."""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, types.FunctionType):
        return callable(b) and same(a(torch.ones(3)), b(torch.ones(3)))
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if hasattr(a, "__dict__") and type(a).__module__.startswith("engine.semantics.programs"):
        return same(vars(a), vars(b))
    return a == b


def ran(fn, args):
    """Two calls: what they return or raise, and what they print."""
    found = []
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for _ in range(2):
            try:
                found.append(fn(*args))
            except Exception as error:
                if isinstance(error, dynacheck.errors.DynacheckError):
                    raise
                found.append((type(error).__name__, str(error)))
    return found, printed.getvalue()


assert programs_of_classes.program  # it has put its programs in the table
WITHOUT_ENTRY = {"exc_out", "gen", "star", "alias"}
"""Programs whose frame ends by raising, is given up, or has nothing for a graph."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    plain, plain_args = PROGRAMS[name]()
    expected, expected_print = ran(plain, plain_args)
    fn, args = PROGRAMS[name]()
    dynacheck.reset()
    with dynacheck.configured(raise_internal_errors=True), dynacheck.observe() as report:
        found, found_print = ran(dynacheck.compile(fn, backend="eager"), args)
    assert same(found, expected), (found, expected)
    assert same(args, plain_args), (args, plain_args)
    assert found_print == expected_print
    assert bool(report.cache_entries) is (name not in WITHOUT_ENTRY)
