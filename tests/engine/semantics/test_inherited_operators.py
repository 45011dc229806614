"""Operators that classes inherit from builtin containers: type, identity and contents of the result as in plain Python,
for objects made in the frame and for those that came into it."""

from __future__ import annotations

import collections
import re
from typing import Any

import dynacheck
import pytest
import torch
from engine.semantics.test_derived_containers import C, D, F, L, O, P, Q, S, T

LOG: list[Any] = []


class Hooked(collections.OrderedDict):
    def __setitem__(self, key, value):
        LOG.append(key)
        super().__setitem__(key, value)


NAMES = {**{c.__name__: c for c in (L, S, Q, P, O, D, C, T, F, Hooked)}, "collections": collections}

IN_PLACE = """
L([1]) += [2]
L([1]) *= 2
S({1}) |= {2}
S({1}) &= {2}
S({1}) -= {2}
S({1}) ^= {2}
Q([1]) += [2]
Q([1]) *= 2
P(a=1) |= {'b': 2}
P(a=1) |= [('b', 2)]
O(a=1) |= {'b': 2}
Hooked(a=1) |= {'b': 2}
D(int, a=1) |= {'b': 2}
C('a') += C('b')
C('ab') -= C('b')
T([1]) += (2,)
F([1]) |= {2}
collections.deque([1]) += [2]
collections.OrderedDict(a=1) |= {'b': 2}
collections.defaultdict(int, a=1) |= {'b': 2}
""".strip().splitlines()

BINARY = """
L([1]) + [2]
L([1]) * 2
S({1}) | {2}
{1} | S({2})
S([1]) - F({2})
Q([1]) + Q([2])
Q([1], 3) + Q([2])
Q([1]) * 2
2 * Q([1])
P(a=1) | {'b': 2}
{'b': 2} | P(a=1)
O(a=1) | {'b': 2}
{'b': 2} | O(a=1)
P(a=1) | O(b=2)
O(a=1) | P(b=2)
collections.OrderedDict(a=1) | O(b=2)
Hooked(a=1) | {'b': 2}
{'z': 0} | Hooked(a=1)
D(int, a=1) | {'b': 2}
{'b': 2} | D(int, a=1)
D(int, a=1) | O(b=2)
O(a=1) | D(int, b=2)
C('a') | {'a': 1}
T([1]) + (2,)
F([1]) | S({2})
""".strip().splitlines()


def shown(value: Any) -> Any:
    return type(value).__name__, list(value.items()) if isinstance(value, dict) else list(value)


def made(source: str) -> Any:
    scope = {**NAMES, "LOG": LOG}
    exec(source, scope)
    return scope["f"]


def ran(fn: Any, *given: Any) -> Any:
    LOG.clear()
    _, value, same = fn(torch.ones(1), *given)
    return shown(value), same, [g if isinstance(g, int) else shown(g) for g in given], list(LOG)


def check(source: str, operands: tuple[str, ...] = (), whole: bool = True) -> None:
    expected = ran(made(source), *(eval(o, dict(NAMES)) for o in operands))
    given = [eval(o, dict(NAMES)) for o in operands]
    with dynacheck.configured(split_more=not whole), dynacheck.observe() as report:
        assert ran(dynacheck.compile(made(source), backend="eager", fullgraph=whole), *given) == expected
    assert len(report.graphs) == 1 and (report.graph_breaks == () or not whole)


IN_FRAME = re.compile(
    r"\b[QTF]\("
)  # these break where they are made, as do deques of a class where they are copied


@pytest.mark.parametrize("row", IN_PLACE)
def test_in_place(row: str) -> None:
    left, op, right = re.fullmatch(r"(.*) (\S+=) (.*)", row).groups()  # type: ignore[union-attr]
    end = f"    v {op} {right}\n    return x + 1, v, v is w"
    if not IN_FRAME.search(row):
        check(f"def f(x):\n    v = {left}\n    w = v\n{end}")
    if not IN_FRAME.search(right):
        check(f"def f(x, v):\n    w = v\n{end}", (left,))


@pytest.mark.parametrize("row", BINARY)
def test_binary(row: str) -> None:
    if not IN_FRAME.search(row):
        check(f"def f(x):\n    v = {row}\n    return x + 1, v, None")
    left, op, right = re.fullmatch(r"(.*) ([-+*|]) (.*)", row).groups()  # type: ignore[union-attr]
    check(f"def f(x, a, b):\n    return x + 1, a {op} b, None", (left, right), "Q(" not in row)
