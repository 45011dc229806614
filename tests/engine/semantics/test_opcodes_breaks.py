"""A graph break at every instruction that can take one: split there, run as written, go on compiled. torch.compile goes
on behind few of them, and so does the engine unless `split_more` is set (parity/programs_left.py has its rule).

Each program meets an object whose special method prints, which is not traced. The frame must be split at
that instruction, with a graph before it and one after it, and give what plain Python gives.
"""

from __future__ import annotations

import collections.abc
import dis
import sys
from collections.abc import Callable
from typing import Any

import dynacheck
import pytest
import torch
from dynacheck.events import GraphBroke


@collections.abc.Sequence.register
class Loud:
    """Prints in each special method."""

    def __init__(self, value: Any = 3) -> None:
        self.value = value

    def _say(self, name: str) -> None:
        print(name)

    def __add__(self, other: Any) -> int:
        self._say("add")
        return 4

    def __iadd__(self, other: Any) -> Loud:
        self._say("iadd")
        return self

    def __neg__(self) -> int:
        self._say("neg")
        return -3

    def __pos__(self) -> int:
        self._say("pos")
        return 3

    def __invert__(self) -> int:
        self._say("invert")
        return -4

    def __bool__(self) -> bool:
        self._say("bool")
        return True

    def __lt__(self, other: Any) -> bool:
        self._say("lt")
        return True

    def __contains__(self, item: Any) -> bool:
        self._say("contains")
        return True

    def __getitem__(self, key: Any) -> int:
        self._say("getitem")
        return 6

    def __setitem__(self, key: Any, value: Any) -> None:
        self._say("setitem")

    def __delitem__(self, key: Any) -> None:
        self._say("delitem")

    def __iter__(self) -> Any:
        self._say("iter")
        return iter((1, 2))

    def keys(self) -> list[str]:
        self._say("keys")
        return ["k"]

    def __hash__(self) -> int:
        self._say("hash")
        return 1

    def __format__(self, spec: str) -> str:
        self._say("format")
        return f"<{spec}>"

    def __call__(self, *args: Any, **kwargs: Any) -> int:
        self._say("call")
        return len(args) + len(kwargs)

    def __len__(self) -> int:
        self._say("len")
        return 2

    @property
    def loud(self) -> int:
        self._say("get")
        return 5

    @loud.setter
    def loud(self, value: Any) -> None:
        self._say("set")

    @loud.deleter
    def loud(self) -> None:
        self._say("delete")

    @property
    def method(self) -> Callable[..., int]:
        self._say("method")
        return abs


def add(x, loud):
    y = x + 1
    return y * (10 + 0 * (loud + 1)), y


def inplace_add(x, loud):
    y = x + 1
    loud += 2
    return y * 2, loud.value


def negative(x, loud):
    y = x + 1
    return y * -loud


def positive(x, loud):
    y = x + 1
    return y * +loud


def invert(x, loud):
    y = x + 1
    return y * ~loud


def not_(x, loud):
    y = x + 1
    z = not loud
    return y * 2, z


def compare(x, loud):
    y = x + 1
    z = loud < 3
    return y * 2, z


def contains(x, loud):
    y = x + 1
    z = 1 in loud
    return y * 2, z


def subscript(x, loud):
    y = x + 1
    return y * loud[0]


def slice_(x, loud):
    y = x + 1
    return y * loud[0:1]


def store_subscript(x, loud):
    y = x + 1
    loud[0] = y
    return y * 2


def store_slice(x, loud):
    y = x + 1
    loud[0:2] = y
    return y * 2


def delete_subscript(x, loud):
    y = x + 1
    del loud[0]
    return y * 2


def attribute(x, loud):
    y = x + 1
    return y * loud.loud


def method_load(x, loud):
    y = x + 1
    return y * loud.method(-4)


def store_attribute(x, loud):
    y = x + 1
    loud.loud = y
    return y * 2


def delete_attribute(x, loud):
    y = x + 1
    del loud.loud
    return y * 2


def call(x, loud):
    y = x + 1
    return y * loud(1, 2)


def call_keywords(x, loud):
    y = x + 1
    return y * loud(1, k=y)


def call_starred(x, loud):
    y = x + 1
    xs = [1, 2]
    return y * loud(*xs, 3)


def call_double_starred(x, loud):
    y = x + 1
    kw = {"a": 1}
    return y * loud(0, **kw)


def call_on_the_stack(x, loud):
    y = x + 1
    return [y, loud(1), y * loud(1, 2)]


def extend(x, loud):
    y = x + 1
    z = [0, *loud]
    return y * 2, z


def extend_set(x, loud):
    y = x + 1
    z = {0, *loud}
    return y * 2, z


def update(x, loud):
    y = x + 1
    z = {"a": 0, **loud}
    return y * 2, z


def merge(x, loud):
    y = x + 1
    z = dict(a=0, **loud)
    return y * 2, z


def unpack(x, loud):
    y = x + 1
    a, b = loud
    return y * b, a


def unpack_star(x, loud):
    y = x + 1
    a, *b = loud
    return y * a, b


def build_set(x, loud):
    y = x + 1
    z = {loud}
    return y * 2, z is None


def build_map(x, loud):
    y = x + 1
    z = {loud: 1}
    return y * 2, z is None


def format_(x, loud):
    y = x + 1
    z = f"a{loud:>3}b"
    return y * 2, z


def length_of_sequence(x, loud):
    y = x + 1
    match loud:
        case [_, _, _]:
            return y * 3
    return y * 2


def raise_from_print(x, loud):
    y = x + 1
    print(y is x)
    return y * 2


PROGRAMS = [
    add, inplace_add, negative, positive, invert, not_, compare, contains, subscript, slice_,
    store_subscript, store_slice, delete_subscript, attribute, method_load, store_attribute, delete_attribute,
    call, call_keywords, call_starred, call_double_starred, extend, extend_set, update, merge, unpack,
    unpack_star, build_set, build_map, format_, length_of_sequence, raise_from_print,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda fn: fn.__name__)
def test_split_at_the_instruction(program: Any, capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.ones(3)
    expected = program(x, Loud())
    said = capsys.readouterr().out
    assert said
    with dynacheck.configured(split_more=True), dynacheck.observe() as report:
        compiled = dynacheck.compile(program, backend="eager")
        for _ in range(2):
            found = compiled(x, Loud())
            assert capsys.readouterr().out == said
            assert repr(found) == repr(expected)
    splits = [e for e in report.events if isinstance(e, GraphBroke) and e.code.name == program.__name__]
    assert len(splits) == 1 and not splits[0].skipped
    assert len(report.graphs) == 2
    assert program.__name__ not in [skipped.function for skipped in report.skipped]


def test_two_breaks_with_values_on_the_stack(capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.ones(3)
    expected = call_on_the_stack(x, Loud())
    said = capsys.readouterr().out
    with dynacheck.observe() as report:
        compiled = dynacheck.compile(call_on_the_stack, backend="eager")
        assert repr(compiled(x, Loud())) == repr(expected)
        assert capsys.readouterr().out == said
    assert len(report.graphs) == 2  # nothing is computed between the two calls


OPCODES_WITH_PROGRAM = {
    "BINARY_OP", "UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT", "UNARY_NOT", "COMPARE_OP",
    "CONTAINS_OP", "BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR", "LOAD_ATTR", "LOAD_METHOD",
    "STORE_ATTR", "DELETE_ATTR", "CALL", "CALL_FUNCTION_EX", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE",
    "DICT_MERGE", "UNPACK_SEQUENCE", "UNPACK_EX", "BUILD_SET", "BUILD_MAP", "FORMAT_VALUE", "GET_LEN",
}  # fmt: skip


def test_every_breaking_opcode_has_a_program() -> None:
    seen = {inst.opname for fn in PROGRAMS for inst in dis.get_instructions(fn)}
    if sys.version_info < (3, 12):
        assert OPCODES_WITH_PROGRAM <= seen
