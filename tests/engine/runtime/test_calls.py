"""Compiled calls as observers see them."""

from __future__ import annotations

import threading

import dynacheck
import pytest
import torch
from dynacheck import events


def test_outcomes_and_places(seen, x):
    def f(x, n):
        return x + n

    compiled = dynacheck.compile(f, backend="eager")
    compiled(x, 1)
    compiled(x, 1)
    assert [(c.number > 0, c.function.split(".")[-1], c.outcome, c.raised) for c in seen.calls] == [
        (True, "f", "miss", False),
        (True, "f", "hit", False),
    ]
    assert seen.calls[0].where.text == "compiled(x, 1)"
    assert seen.calls[0].where.line + 1 == seen.calls[1].where.line
    assert {e.call for e in seen.events} == {c.number for c in seen.calls}


def test_only_outermost_calls_count(seen, x):
    def inner(x):
        return x * 2

    compiled_inner = dynacheck.compile(inner, backend="eager")

    @dynacheck.disable
    def between(x):
        return compiled_inner(x)

    compiled = dynacheck.compile(lambda x: between(x + 1) + 1, backend="eager")
    torch.testing.assert_close(compiled(x), (x + 1) * 2 + 1)
    torch.testing.assert_close(compiled(x), (x + 1) * 2 + 1)
    assert [c.outcome for c in seen.calls] == ["miss", "hit"]
    assert seen.counts["graphs"] == 3


def test_a_call_that_raises(seen, x):
    def f(x, n):
        y = x + 1
        if n:
            raise ValueError(n)
        return y

    compiled = dynacheck.compile(f, backend="eager")
    compiled(x, 0)
    with pytest.raises(ValueError):
        compiled(x, 1)
    compiled(x, 0)
    assert [(c.outcome, c.raised) for c in seen.calls] == [("miss", False), ("eager", True), ("hit", False)]


def test_a_call_running_while_the_report_is_read(seen, x):
    def f(x):
        dynacheck.disable(lambda: outcomes.append(seen.calls[-1].outcome))()
        return x + 1

    outcomes = []
    dynacheck.compile(f, backend="eager")(x)
    assert outcomes == ["running"]


def test_given_up_frames_are_told_on_every_call_that_is_watched(x):
    def f(x):
        for i in range(2):
            x = x + i
            print(end="")
        return x

    compiled = dynacheck.compile(f, backend="eager")
    compiled(x)
    compiled(x)
    with dynacheck.observe() as first:
        compiled(x)
    compiled(x)
    with dynacheck.observe() as second:
        compiled(x)
        compiled(x)
    assert [len(r.eager_runs) for r in (first, second)] == [1, 2]
    assert {r.cause.split("@")[0] for r in second.eager_runs} == {"eager:skip"}
    assert [c.outcome for c in second.calls] == ["eager", "eager"]


def test_threads_have_calls_of_their_own(seen, x):
    def f(x):
        return x + 1

    compiled = dynacheck.compile(f, backend="eager")
    threads = [threading.Thread(target=compiled, args=(x,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(c.outcome for c in seen.calls) == ["hit"] * 5 + ["miss"]
    assert len({c.number for c in seen.calls}) == 6
    assert seen.counts["graphs"] == 1 and seen.counts["cache_entries"] == 1


def test_an_observer_that_raises_is_its_own_fault(x):
    def observer(event):
        if isinstance(event, events.EntryAdded):
            raise RuntimeError("observer")

    compiled = dynacheck.compile(lambda x: x + 1, backend="eager")
    events.observers.add(observer)
    try:
        with pytest.raises(RuntimeError, match="observer"):
            compiled(x)
    finally:
        events.observers.remove(observer)
    with dynacheck.observe() as report:
        compiled(x)
    assert [c.outcome for c in report.calls] == ["hit"]


def test_entries_are_described(seen, x):
    def f(x):
        y = x + 1
        print(end="")
        return y * 2

    compiled = dynacheck.compile(f, backend="eager")
    compiled(x)
    compiled(x)
    one, two = dynacheck.cache_entries(compiled)
    assert {one.resume_line, two.resume_line} == {None, f.__code__.co_firstlineno + 2}
    first = one if one.resume_line is None else two
    assert first.breaks and first.hits == 1 and first.backend == "eager" and first.function == f.__qualname__
    assert any("check_tensor(L['x']" in guard for guard in first.guards)
    assert [e.resume_line for e in seen.cache_entries] == [None, f.__code__.co_firstlineno + 2]
