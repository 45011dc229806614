"""Relations over several values: one object, different objects, overlapping memory, Python predicates."""

import itertools

import pytest
import torch
from dynacheck import _C
from dynacheck.guards import Distinct, PyCheck, Same, StorageOverlap, build_program, relate
from dynacheck.guards.relations import overlapping_pairs
from dynacheck.sources import FrameView, Root


def three(a, b, c):
    return a, b, c


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


def overlapping_cases():
    """Three tensors each: views of one storage and of several, of other types and layouts, that cover nothing."""
    x, c = torch.ones(8), torch.ones(4, dtype=torch.complex64)
    return [
        (x, x[2:], torch.ones(2)),
        (x[:4], x[4:], x[3:5]),
        (x, torch.ones(8), torch.ones(8)),
        (x[:0], x, x.view(2, 4)),
        (x[:4], x.view(torch.int64)[2:], x.view(torch.uint8)[15:16]),
        (torch.view_as_real(c)[1:], c[:1], c.conj()[3:]),
        (x.view(2, 4).t(), x[::2], x[1:].expand(1, 7)),
        (torch.eye(2).to_sparse(), x, x[:1].expand(3)),
        (torch.empty(4, device="meta"), torch.nn.Parameter(x), x.as_strided((2, 2), (0, 1), 6)),
        (torch.ones(2, 2, 2, 2, 2, 2), x[7], x[7:]),
    ]


def test_overlap(guarded, tensors):
    cases = overlapping_cases()
    for values in cases:
        check = guarded.related(values, StorageOverlap(overlapping_pairs(values)))
        for now in cases:
            assert check(*now) == (overlapping_pairs(now) == overlapping_pairs(values))
    assert overlapping_pairs(cases[0]) == {(0, 1)} and overlapping_pairs(cases[1]) == {(0, 2), (1, 2)}
    assert not guarded.related(cases[0], StorageOverlap(frozenset()))(1, 2, 3)


def test_overlap_is_found_natively():
    values = overlapping_cases()[1]
    root = Root(FrameView(three, values))
    nodes = [root.local(name, i) for i, name in enumerate("abc")]
    relate(root, StorageOverlap(overlapping_pairs(values)), nodes, None)
    compiled = build_program(root, None)
    assert compiled.check(FrameView(three, values)) and not compiled.slow
    assert not compiled.check(FrameView(three, overlapping_cases()[2]))
    assert compiled.program.stats()["slow"] == 0


@pytest.mark.parametrize("pairs", [((0, 3),), ((1, 1),), ((1, 0),), ((-1, 1),)])
def test_pairs_are_positions(pairs):
    local = _C.GUARD_ACCESSORS["LOCAL"]
    nodes = tuple((local, (i,), (), (), i) for i in range(3))
    with pytest.raises(ValueError, match="positions"):
        _C.GuardProgram((None, nodes, ((_C.GUARD_OPS["OVERLAP"], (pairs,), (0, 1, 2), None),), 3, ()))


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
