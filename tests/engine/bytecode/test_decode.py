"""Decoding agrees with `dis`, is done once per object, and normalises operands."""

import dis
import gc
import sys
import weakref

import pytest
from code_objects import code_objects
from dynacheck.bytecode.by_code import ByCode
from dynacheck.bytecode.decode import decode
from dynacheck.bytecode.operands import slot_names


def check_against_dis(code):
    decoded = decode(code)
    reference = [i for i in dis.get_instructions(code) if i.opname not in ("EXTENDED_ARG", "CACHE")]
    assert len(reference) == len(decoded)
    for theirs, ours in zip(reference, decoded):
        assert (theirs.offset, theirs.opname, theirs.arg or 0) == (ours.offset, ours.opname, ours.arg)
        assert tuple(theirs.positions) == ours.positions
        assert decoded.by_offset[ours.offset] == ours.index
        if ours.target is not None:
            assert decoded.by_offset[theirs.argval] == ours.target
            assert decoded[ours.target].is_jump_target
        elif ours.opname in ("LOAD_SPECIAL", "LOAD_COMMON_CONSTANT"):  # dis resolves these in argrepr only
            assert theirs.argrepr in (ours.argval, getattr(ours.argval, "__name__", None), repr(ours.argval))
        elif ours.opname.startswith(("LOAD_", "STORE_", "DELETE_", "IMPORT_")):
            assert theirs.argval is ours.argval or theirs.argval == ours.argval
    entries = dis._parse_exception_table(code)
    assert len(entries) == len(decoded.exception_table)
    for theirs, ours in zip(entries, decoded.exception_table):
        handler = ours.handler
        assert decoded.by_offset[theirs.start] == ours.start
        assert decoded.by_offset[theirs.target] == handler.target
        assert (theirs.depth, bool(theirs.lasti)) == (handler.depth, handler.lasti)
        assert all(decoded[i].handler == handler for i in range(ours.start, ours.stop))


def test_against_dis():
    for code in code_objects(every=12):
        check_against_dis(code)


@pytest.mark.slow
def test_against_dis_everywhere():
    for code in code_objects():
        check_against_dis(code)


def test_once_per_object_not_per_value():
    def make():
        return compile("x + 1", "file", "eval")

    first, second = make(), make()
    assert first == second and first is not second
    assert decode(first) is decode(first)
    assert decode(first) is not decode(second)
    assert decode(second).code is second


def test_dies_with_the_code():
    code = compile("x + 1", "file", "eval")
    decoded = weakref.ref(decode(code))
    del code
    gc.collect()
    assert decoded() is None


def test_table_forgets_only_its_own_row():
    table = ByCode()
    for i in range(200):
        code = compile(f"x + {i}", "file", "eval")
        assert table.get(code) is None
        table.set(code, i)
        table.set(code, i + 1)
        assert table.get(code) == i + 1
    assert len(table) == 1 and list(table) == [code]
    table.clear()
    assert table.get(code) is None


def test_specialised_code_reads_as_its_base():
    def loop(n):
        total = 0
        for i in range(n):
            total = total + i
        return total

    cold = [i.opname for i in decode(loop.__code__.replace())]
    loop(1000)
    assert [i.opname for i in decode(loop.__code__)] == cold


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in 3.12")
def test_instrumented_code_reads_as_its_base():
    def f(x):
        for i in range(x):
            x = f(i) if i else i
        return x

    cold = [(i.opname, i.argval) for i in decode(f.__code__.replace())]
    monitoring, events = sys.monitoring, sys.monitoring.events
    monitoring.use_tool_id(4, "test")
    try:
        wanted = (
            events.LINE | events.INSTRUCTION | events.CALL | events.PY_START | events.JUMP | events.BRANCH
        )
        monitoring.set_local_events(4, f.__code__, wanted)
        f(3)
        assert [(i.opname, i.argval) for i in decode(f.__code__)] == cold
    finally:
        monitoring.set_local_events(4, f.__code__, 0)
        monitoring.free_tool_id(4)


def operands(source, *names):
    decoded = decode(compile(source, "file", "exec"))
    return [(i.opname, i.argval, i.flag) for i in decoded if i.opname in names]


def test_operands():
    values = [argval for _, argval, _ in operands("a < b; a == b; a >= b", "COMPARE_OP")]
    assert values == ["<", "==", ">="]
    assert [v for _, v, _ in operands("a @ b; a += b", "BINARY_OP")] == ["@", "+="]
    assert [v for _, v, _ in operands("a is b; a is not b", "IS_OP")] == ["is", "is not"]
    assert [v for _, v, _ in operands("a in b; a not in b", "CONTAINS_OP")] == ["in", "not in"]
    if sys.version_info < (3, 13):
        found = operands("f'{a}{a!r:>3}'", "FORMAT_VALUE")
        assert [v for _, v, _ in found] == [(None, False), ("r", True)]
    else:
        assert [v for _, v, _ in operands("f'{a!r:>3}'", "CONVERT_VALUE")] == ["r"]
    star = operands("f(*a); f(*a, **k)", "CALL_FUNCTION_EX")
    if sys.version_info < (3, 14):
        assert [flag for *_, flag in star] == [False, True]


def test_flags_and_keyword_names():
    def f(x):
        print(x, sep="")
        return x.run(1), x.value, len

    decoded = decode(f.__code__)
    loads = {i.argval: i.flag for i in decoded if i.opname == "LOAD_GLOBAL"}
    assert loads == {"print": True, "len": False}
    if sys.version_info >= (3, 12):
        assert {i.argval: i.flag for i in decoded if i.opname == "LOAD_ATTR"} == {"run": True, "value": False}
    if sys.version_info < (3, 13):
        names = [i.kwnames for i in decoded if i.opname == "CALL"]
        assert names == [("sep",), ()]


def test_slots():
    def outer(a, b):
        c = d = 1

        def inner(e):
            nonlocal c
            c = a
            return d, e

        return inner

    assert slot_names(outer.__code__) == ("a", "b", "inner", "c", "d")
    decoded = decode(outer.__code__)
    assert {decoded.slots[slot] for slot in decoded.cell_slots} == {"a", "c", "d"}
    assert decoded.argument_names == ("a", "b") and decoded.nargs == 2
    inner = decode(outer(1, 2).__code__)
    assert inner.slots == ("e", "a", "c", "d") and inner.cell_slots == {1, 2, 3}

    def star(a, /, b, *c, d, **e):
        pass

    assert decode(star.__code__).argument_names == ("a", "b", "d", "c", "e")
    assert decode(star.__code__)[decode(star.__code__).start - 1].opname == "RESUME"


def test_instructions_are_compared_by_identity():
    one, two = decode(compile("1.5", "f", "eval")), decode(compile("1.5", "f", "eval"))
    assert one[0] != two[0] and len({one[0], two[0]}) == 2
    assert "LOAD_NAME" in repr(decode(compile("x", "f", "eval"))[1])
