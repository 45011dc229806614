"""Loops, blocks, stack depths."""

import pytest
from code_objects import code_objects
from dynacheck.bytecode.decode import decode
from dynacheck.bytecode.flow import UNREACHED, blocks, flow
from resume_cases import Manager, note


def at(fn, mark):
    """The decoded code, and the index of the first load of a marker constant."""
    decoded = decode(fn.__code__)
    return decoded, next(i.index for i in decoded if i.argval == mark and i.opname.startswith("LOAD"))


def kinds(fn, mark):
    decoded, index = at(fn, mark)
    return [str(block.kind) for block in blocks(decoded, index)]


def loops(x, items):
    note("before")
    for item in items:
        note("body")
        if item:
            note("leaving")
            break
    while x:
        x -= 1
        for y in items:
            note("inner", y)
    note("after")
    return x


@pytest.mark.parametrize(
    "mark, inside", [("before", 0), ("body", 1), ("inner", 1), ("after", 0), ("leaving", 0)]
)
def test_loops(mark, inside):
    decoded, index = at(loops, mark)
    assert decoded.in_loop(index) == bool(inside)
    if mark != "leaving":
        assert decoded.has_backedge(index) == bool(inside)


def test_a_break_in_an_early_return_is_in_no_loop():
    def f(items):
        for item in items:
            if item:
                return note("here")
        return None

    decoded, index = at(f, "here")
    assert not decoded.in_loop(index) and not decoded.has_backedge(index)


def block_places(a, x):
    try:
        note("try")
        with a:
            note("with")
        note("between")
    except KeyError:
        note("except")
    try:
        note("finally try")
    finally:
        note("finally body")
    try:
        note("bare try")
    except:  # noqa: E722
        return 1
    with Manager(1) as b, a:
        note("two")
    note("end")
    return b


def test_blocks():
    expected = {
        "try": ["except"],
        "with": ["except", "with"],
        "between": ["except"],
        "except": ["cleanup"],
        "finally try": ["finally"],
        "finally body": [],
        "bare try": ["except"],
        "two": ["with", "with"],
        "end": [],
    }
    assert {mark: kinds(block_places, mark) for mark in expected} == expected


def test_nested_try_at_one_depth():
    def f():
        try:
            try:
                note("in")
            finally:
                note("f")
        except ValueError:
            pass

    assert kinds(f, "in") == ["except", "finally"]
    assert kinds(f, "f") == ["except"]


def test_handling():
    decoded, index = at(block_places, "except")
    assert flow(decoded).handling[index] == 1
    assert flow(decoded).handling[at(block_places, "end")[1]] == 0


def test_exit_positions():
    decoded, index = at(block_places, "two")
    positions = [block.exit_position for block in blocks(decoded, index)]
    assert positions[0] == 0 and positions[1] > 0
    assert positions[1] < flow(decoded).depths[index]


def test_depths_fit_the_declared_stack():
    for code in code_objects(every=15):
        decoded = decode(code)
        facts = flow(decoded)
        assert flow(decoded) is facts
        for instruction, depth in zip(decoded, facts.depths):
            assert UNREACHED <= depth <= code.co_stacksize
            if instruction.handler is not None and depth != UNREACHED:
                assert facts.depths[instruction.handler.target] != UNREACHED
            if instruction.opname in ("RETURN_VALUE", "RETURN_CONST") and depth != UNREACHED:
                assert depth == (instruction.opname == "RETURN_VALUE")


def test_saved_offsets_lie_where_reraise_looks():
    found = 0
    for code in code_objects(every=15):
        decoded = decode(code)
        facts = flow(decoded)
        for instruction, depth, offsets in zip(decoded, facts.depths, facts.offsets):
            assert all(position < depth for position in offsets)
            if instruction.opname == "RERAISE" and instruction.arg and depth != UNREACHED:
                assert depth - 1 - instruction.arg in offsets
                found += 1
    assert found > 20
