"""What holds when a graph raises because of values, when a program looks at its own frame, and for calls under modes."""

from __future__ import annotations

import sys
import traceback

import dynacheck
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode


def outcomes(report):
    return [call.outcome for call in report.calls]


def rows(table, index):
    return torch.nn.functional.embedding(index, table)


BAD = (torch.ones(3, 2), torch.tensor([7]))
GOOD = (torch.ones(3, 2), torch.tensor([2]))


def lines_of(call, *args):
    """Lines of this file that the exception of a call passed, outermost first."""
    with pytest.raises(IndexError) as raised:
        call(*args)
    return [f.lineno for f in traceback.extract_tb(raised.value.__traceback__) if f.filename == __file__][1:]


# -- a graph that raises


def test_the_operators_own_exception_leaves_the_call(seen, backend):
    def fn(table, index):
        return rows(table + 1, index) * 2

    compiled = dynacheck.compile(fn, backend=backend)
    compiled(*GOOD)
    with pytest.raises(IndexError, match="index out of range in self"):
        compiled(*BAD)
    torch.testing.assert_close(compiled(*GOOD), fn(*GOOD))  # and leaves it usable
    assert outcomes(seen) == ["miss", "hit", "hit"]


def test_what_raises_for_its_metadata_raises_as_plain_python_does(seen, backend):
    def fn(a, b):
        return (a + 1) @ b

    compiled = dynacheck.compile(fn, backend=backend)
    bad = torch.ones(2, 3), torch.ones(4, 5)
    messages = []
    for call in (fn, compiled):
        with pytest.raises(RuntimeError) as raised:
            call(*bad)
        messages.append(str(raised.value))
        last = [f for f in traceback.extract_tb(raised.value.__traceback__) if f.filename == __file__][-1]
        assert last.lineno == fn.__code__.co_firstlineno + 1
    assert messages[0] == messages[1]


def test_a_try_around_it_catches_it(backend):
    def fn(table, index):
        try:
            return rows(table, index)
        except IndexError:
            return table - 1

    compiled = dynacheck.compile(fn, backend=backend)
    for args in (GOOD, BAD):
        torch.testing.assert_close(compiled(*args), fn(*args))


def test_side_effects_before_it_stay(backend):
    log = []

    def fn(table, index):
        log.append("before")
        found = rows(table, index)
        log.append("after")
        return found

    compiled = dynacheck.compile(fn, backend=backend)
    with pytest.raises(IndexError):
        compiled(*BAD)
    assert log == ["before"]


def test_side_effects_after_it_do_not_happen(backend):
    log = []

    def fn(table, index):
        found = rows(table, index)
        log.append("after")
        return found

    compiled = dynacheck.compile(fn, backend=backend)
    with pytest.raises(IndexError):
        compiled(*BAD)
    assert log == []
    compiled(*GOOD)
    assert log == ["after"]


def test_its_traceback_names_the_users_line(backend):
    def fn(table, index):
        table = table + 1
        return torch.nn.functional.embedding(index, table)

    assert lines_of(dynacheck.compile(fn, backend=backend), *BAD) == lines_of(fn, *BAD)


# -- programs that look at their own frame


def with_locals(x):
    y = x + 1
    return y * 2, sorted(locals())


def with_vars(x):
    y = x + 1
    return y * 2, sorted(vars())


def with_dir(x):
    y = x + 1
    return y * 2, dir()


def with_frame(x):
    y = x + 1
    frame = sys._getframe()
    return y * 2, sorted(frame.f_locals), frame.f_lineno, frame.f_code is with_frame.__code__


def with_eval(x):
    y = x + 1
    names = eval("sorted(locals())")
    return y * 2, names


def with_exec(x):
    y = x + 1
    found = {}
    exec("found['names'] = sorted(n for n in dir())")
    return y * 2, found["names"]


@pytest.mark.parametrize("fn", [with_dir, with_frame, with_eval, with_exec], ids=lambda fn: fn.__name__)
def test_frames_that_look_at_themselves_are_left_alone(seen, backend, fn):
    compiled = dynacheck.compile(fn, backend=backend)
    x = torch.ones(2)
    for _ in range(2):
        found, *names = compiled(x)
        torch.testing.assert_close(found, torch.full((2,), 4.0))
        assert names == list(fn(x)[1:])
    assert seen.graph_breaks and all(b.skipped for b in seen.graph_breaks)
    assert not dynacheck.cache_entries(fn)


@pytest.mark.parametrize("fn", [with_locals, with_vars], ids=lambda fn: fn.__name__)
def test_the_names_of_a_frame_are_known(seen, backend, fn):
    compiled = dynacheck.compile(fn, backend=backend)
    for _ in range(2):
        found, names = compiled(torch.ones(2))
        torch.testing.assert_close(found, torch.full((2,), 4.0))
        assert names == fn(torch.ones(2))[1]
    assert outcomes(seen) == ["miss", "hit"] and not seen.graph_breaks


def test_a_callee_that_looks_at_itself_is_a_frame_of_its_own(seen, backend):
    def fn(x):
        found, names = with_dir(x - 1)
        return found + 1, names

    compiled = dynacheck.compile(fn, backend=backend)
    found, names = compiled(torch.ones(2))
    torch.testing.assert_close(found, torch.full((2,), 3.0))
    assert names == ["x", "y"]
    assert [backend.operators(i) for i in range(2)] == [["sub"], ["add"]]


# -- calls under modes


class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def test_a_first_call_under_a_mode_is_forgotten(seen, backend):
    def fn(x):
        return x + 1

    compiled = dynacheck.compile(fn, backend=backend)
    with Passing():
        compiled(torch.ones(2))
    torch.testing.assert_close(torch.vmap(compiled)(torch.ones(2, 3)), torch.full((2, 3), 2.0))
    for _ in range(2):
        compiled(torch.ones(2))
    assert outcomes(seen) == ["eager", "eager", "miss", "hit"]
    assert [s.reason for s in seen.skipped] == ["DC306", "DC306"]
