"""Generators at the edge of a compiled frame: as results, with breaks inside, over arguments."""

from __future__ import annotations

import types
from typing import Any

import dynacheck
import pytest
import torch


def count(n, *args, step=1, **named):
    for i in range(0, n, step):
        yield i, args, named


def two(n, *args, step=1, **named):
    yield n, args, named
    yield step, named


def returned(x):
    y = x + 1
    return y, two(3), two(4, 7, 8, step=2, k=y), two(1), [two(2)] * 2


def looping(x):
    return x + 1, (i * 2 for i in [1, 2])


def test_one_that_has_not_started_is_rebuilt() -> None:
    x = torch.ones(2)
    with dynacheck.observe() as report:
        compiled = dynacheck.compile(returned, backend="eager", fullgraph=True)
        for _ in range(2):
            found, expected = compiled(x), returned(x)
            assert all(type(g) is types.GeneratorType for g in found[1:4])
            assert found[1].__name__ == "two"
            assert repr([list(g) for g in found[1:4]]) == repr([list(g) for g in expected[1:4]])
            assert found[4][0] is found[4][1]
    assert len(report.graphs) == 1 and not report.skipped


def test_one_with_a_loop_leaves_the_frame_eager_as_with_torch() -> None:
    with dynacheck.observe() as report:
        assert list(dynacheck.compile(looping, backend="eager")(torch.ones(2))[1]) == [2, 4]
    assert [broke.reason for broke in report.graph_breaks] == ["DC205"] and not report.graphs
    dynacheck.reset()
    with pytest.raises(dynacheck.Unsupported, match="generator"):
        dynacheck.compile(looping, backend="eager", fullgraph=True)(torch.ones(2))


def lazily(x):
    log = []

    def gen():
        log.append("started")
        yield 1

    y = x + 1
    return y, gen(), log


def test_its_side_effects_stay_lazy() -> None:
    y, g, log = dynacheck.compile(lazily, backend="eager", fullgraph=True)(torch.ones(2))
    assert log == []
    assert list(g) == [1]
    assert log == ["started"]


def started(x):
    y = x + 1
    g = count(3)
    first = next(g)
    return y, first, g


def test_one_that_has_started_leaves_the_frame_eager() -> None:
    x = torch.ones(2)
    with dynacheck.observe() as report:
        found = dynacheck.compile(started, backend="eager")(x)
    assert list(found[2]) == list(started(x)[2])
    assert [s.reason for s in report.skipped] == ["DC205"]


def broken(x):
    y = x + 1

    def gen():
        yield y
        print("inside")
        yield y * 2

    total = 0
    for v in gen():
        total = total + v
    return total


def consumed_by_sum(x):
    y = x + 1

    def gen():
        for i in range(2):
            print(i)
            yield y * i

    return sum(gen())


@pytest.mark.parametrize("fn", [broken, consumed_by_sum], ids=lambda f: f.__name__)
def test_break_inside_skips_the_frame(fn: Any, capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.ones(2)
    expected = fn(x)
    said = capsys.readouterr().out
    with dynacheck.observe() as report:
        found = dynacheck.compile(fn, backend="eager")(x)
    assert torch.equal(found, expected)
    assert capsys.readouterr().out == said
    assert [s.reason for s in report.skipped] == ["DC120"]
    assert not report.graphs
    assert [b.reason for b in report.graph_breaks] == ["DC103"]


def tensors(x):
    def halves(t):
        while t.shape[0] > 1:
            t = t[: t.shape[0] // 2]
            yield t.sum()

    total = x.sum()
    for s in halves(x):
        total = total + s
    return total, [t * 2 for t in halves(x)], dict(enumerate(halves(x)))


def test_tensor_operations_inside_stay_in_the_graph() -> None:
    x = torch.arange(8.0)
    with dynacheck.observe() as report:
        compiled = dynacheck.compile(tensors, backend="eager", fullgraph=True)
        for _ in range(2):
            assert repr(compiled(x)) == repr(tensors(x))
    assert len(report.graphs) == 1 and not report.skipped


def two_at_once(x):
    def gen(k):
        received = None
        while True:
            received = yield (k, received)
            if received is None:
                return k * 10

    a, b = gen(1), gen(2)
    out = [next(a), next(b), a.send("x"), b.send("y"), a.send("z")]
    for g in (a, b):
        try:
            next(g)
        except StopIteration as stop:
            out.append(stop.value)
    return x + len(out), out


def test_interleaved() -> None:
    x = torch.ones(2)
    found = dynacheck.compile(two_at_once, backend="eager", fullgraph=True)(x)
    assert repr(found) == repr(two_at_once(x))


def from_argument(x, items):
    def gen():
        yield from items
        return "end"

    def outer():
        result = yield from gen()
        yield result

    return x + 1, list(outer())


def test_delegating_to_an_argument() -> None:
    x = torch.ones(2)
    compiled = dynacheck.compile(from_argument, backend="eager", fullgraph=True)
    for items in ([1, 2], (3,), "ab", {"k": 1}, range(3), []):
        assert compiled(x, items)[1] == from_argument(x, items)[1]
