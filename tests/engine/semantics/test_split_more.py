"""The option `split_more`: loops with a break in them are split, too; what is computed stays plain Python's."""

from __future__ import annotations

import dynacheck
import pytest
import torch

pytestmark = pytest.mark.usefixtures("engine")


def while_loop(x):
    n = 0
    while n < 3:
        x = x + 1
        print(n)
        x = x * 2
        n += 1
    return x - 1


def many_rounds(x):
    n = 40
    while n:
        n -= 1
        print(n)
        x = x + n
    return x


def branches(x):
    n = 3
    while n:
        if x.sum() > 4:
            x = x - 1
        else:
            x = x + 2
        n -= 1
    return x


def over_a_list(x):
    for n in [3, 1, 2]:
        x = x + n
        print(n)
        x = x * 2
    return x


def raised(x):
    n = 2
    while True:
        x = x + 1
        print(n)
        n -= 1
        x = x / (n and 1) if n else x[7]


def lines_of(error):
    found = []
    entry = error.__traceback__
    while entry is not None:
        found.append((entry.tb_frame.f_code.co_name, entry.tb_lineno))
        entry = entry.tb_next
    return found[1:]


def outcome(fn, capsys):
    try:
        result = fn(torch.ones(2)).tolist()
    except IndexError as error:
        result = str(error), [line for line in lines_of(error) if line[0] == "raised"]
    return result, capsys.readouterr().out


@pytest.mark.parametrize(
    "fn", [while_loop, many_rounds, branches, over_a_list, raised], ids=lambda f: f.__name__
)
def test_loops(fn, seen, capsys):
    expected = outcome(fn, capsys)
    usual = dynacheck.compile(fn, backend="eager")
    assert [outcome(usual, capsys) for _ in range(2)] == [expected] * 2
    assert not seen.graphs and {s.reason for s in seen.skipped} == {"DC202"}
    dynacheck.reset()
    with dynacheck.configured(split_more=True), dynacheck.observe() as more:
        split = dynacheck.compile(fn, backend="eager")
        assert [outcome(split, capsys) for _ in range(2)] == [expected] * 2
    assert 2 <= len(more.graphs) <= 8
    assert {s.reason for s in more.skipped} <= {"DC201"}
