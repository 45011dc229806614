"""Relations over several values: one object, different objects, overlapping memory, Python predicates."""

import itertools

import pytest
import torch
from dynacheck import _C
from dynacheck.guards import Distinct, PyCheck, Same, StorageOverlap
from dynacheck.guards.relations import overlapping_pairs


def test_same(guarded):
    a, b = object(), object()
    check = guarded.related((a, a, a), Same())
    assert check(a, a, a) and check(b, b, b) and not check(a, a, b) and not check(b, a, a)


def test_same_of_nothing_fails(guarded):
    assert not guarded.related((1, 1), Same())(_C.NULL, _C.NULL)


@pytest.mark.parametrize("n", [2, 3, 5, 12, 40])
def test_distinct(guarded, n):
    values = [object() for _ in range(n)]
    check = guarded.related(values, Distinct())
    assert check(*values) and check(*reversed(values))
    for i, j in itertools.combinations(range(n), 2):
        now = list(values)
        now[j] = now[i]
        assert not check(*now)
        assert check(*values)
    assert not check(*values[:-1], _C.NULL)
    assert check(*[object() for _ in range(n)])


def test_distinct_remembers_what_passed(guarded):
    values = [object() for _ in range(6)]
    check = guarded.related(values, Distinct())
    for i in range(6):  # one changes at a time, to each of the others and back
        for j in range(6):
            now = list(values)
            now[i] = now[j]
            assert check(*now) == (i == j)
        now = list(values)
        now[i] = object()
        assert check(*now)


def test_overlap(guarded):
    x = torch.ones(8)
    cases = [
        (x, x[2:], torch.ones(2)),
        (x[:4], x[4:], x[3:5]),
        (x, torch.ones(8), torch.ones(8)),
        (x[:0], x, x.view(2, 4)),
    ]
    for values in cases:
        check = guarded.related(values, StorageOverlap(overlapping_pairs(values)))
        for now in cases:
            assert check(*now) == (overlapping_pairs(now) == overlapping_pairs(values))
    assert overlapping_pairs(cases[0]) == {(0, 1)} and overlapping_pairs(cases[1]) == {(0, 2), (1, 2)}
    assert not guarded.related(cases[0], StorageOverlap(frozenset()))(1, 2, 3)


def longer(value, n):
    return len(value) > n


def test_predicates(guarded):
    guard = PyCheck(longer, (2,), "longer than 2", "length", "len({0}) > 2")
    compiled = guarded.program([1, 2, 3], guard)
    assert guarded.passes(compiled, "abc") and not guarded.passes(compiled, [1])
    assert len(compiled.slow) == 1 and compiled.program.stats()["slow"] >= 2
    assert guard.text(["L['x']"]) == "len(L['x']) > 2"
    assert PyCheck(longer, (2,), "").text(["x"]) == "longer(x, 2)"
    change = guard.explain(([1],))
    assert (change.kind, change.then, change.now) == ("length", "longer than 2", "list object")


def test_a_predicate_that_raises_is_an_error(guarded):
    compiled = guarded.program([1], PyCheck(longer, (0,), ""))
    with pytest.raises(TypeError):
        compiled.check(guarded.frame(3))
    assert guarded.passes(compiled, [1])


def test_a_predicate_may_check_the_same_program_again(guarded):
    depth, value = [], {"a": {"b": 1}}

    def again(inner):
        if len(depth) < 3:
            depth.append(1)
            assert compiled.check(guarded.frame(value))
        return inner == 1

    compiled = guarded.program(value, PyCheck(again, (), ""), at=lambda node: node.key("a").key("b"))
    assert compiled.check(guarded.frame(value)) and len(depth) == 3
    assert guarded.passes(compiled, value)
