"""The opcode table: complete for every version, on any interpreter."""

from __future__ import annotations

import dis
import opcode as python_opcodes
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

import pytest
from dynacheck.opcodes import table as opcode_table
from dynacheck.opcodes.known import OPCODES
from dynacheck.opcodes.table import UNSUPPORTED, opcode, table, unsupported
from dynacheck.versions import PYTHON
from every_program import PROGRAMS

VERSIONS = sorted(OPCODES)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_opcode_is_handled_or_declared(version: tuple[int, int]) -> None:
    handled = set(table(version))
    declared = set(UNSUPPORTED) & OPCODES[version]
    assert handled | declared == OPCODES[version]
    assert not handled & declared


def test_names_are_this_interpreters() -> None:
    real = {
        name
        for name, number in python_opcodes.opmap.items()
        if number < 256 and not name.startswith("INSTRUMENTED")
    }
    assert OPCODES[PYTHON] == real


def test_unsupported_ones_have_reasons() -> None:
    assert all(reason and not reason.endswith(".") for reason in UNSUPPORTED.values())


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="NOT_AN_OPCODE is no opcode"):
        opcode("NOT_AN_OPCODE")(lambda tx, inst: None)
    with pytest.raises(ValueError, match="NOT_AN_OPCODE is no opcode"):
        unsupported("never", "NOT_AN_OPCODE")


def test_overlapping_versions_are_refused() -> None:
    with pytest.raises(ValueError, match="POP_TOP has two handlers"):
        opcode("POP_TOP", since=(3, 13))(lambda tx, inst: None)
    assert len(opcode_table._rows["POP_TOP"]) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_versions_of_one_opcode_do_not_overlap(version: tuple[int, int]) -> None:
    for name, rows in opcode_table._rows.items():
        serving = [row for row in rows if row.since <= version <= row.until]
        assert len(serving) <= 1, name


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _opnames(fn: Any) -> set[str]:
    return {inst.opname for code in _codes(fn.__code__) for inst in dis.get_instructions(code)}


WITHOUT_PROGRAM = {
    "CACHE",  # decoded away
    "LOAD_BUILD_CLASS",  # making a class breaks
}


def test_every_handled_opcode_is_in_a_program() -> None:
    """The programs beside this file reach each handler of the running version."""
    seen: set[str] = set()
    for module in {sys.modules[fn.__module__] for fn in PROGRAMS}:
        for found in vars(module).values():
            members = vars(found).values() if isinstance(found, type) else (found,)
            for fn in members:
                if isinstance(fn, FunctionType):
                    seen |= _opnames(fn)
    assert set(table(PYTHON)) - seen == WITHOUT_PROGRAM


@pytest.mark.parametrize(("name", "arg"), [("UNPACK_SEQUENCE", 3), ("UNPACK_EX", 2 + (1 << 8))])
def test_what_unpacking_leaves(name: str, arg: int) -> None:
    class Inst:
        pass

    inst: Any = Inst()
    inst.arg = arg
    left = table(PYTHON)[name].left_by(inst)
    assert left == dis.stack_effect(dis.opmap[name], arg) + 1


def test_jumps_leave_the_break_to_the_translator() -> None:
    for name, row in table(PYTHON).items():
        if "JUMP" in name or name in ("FOR_ITER", "SEND", "RETURN_VALUE", "RERAISE", "RAISE_VARARGS"):
            assert row.leaves is None, name
