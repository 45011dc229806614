"""Constants, local variables, cells."""

from __future__ import annotations

from typing import Any, NoReturn

from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.table import NULL, Machine, opcode
from dynacheck.variables import exceptions
from dynacheck.variables.base import VariableTracker
from dynacheck.variables.cells import CellVariable
from dynacheck.variables.wrap import look_at_kind


@opcode("LOAD_CONST")
def load_const(tx: Machine, inst: Instruction) -> None:
    tx.push(tx.constant(inst.argval))


@opcode("LOAD_SMALL_INT", since=(3, 14))
def load_small_int(tx: Machine, inst: Instruction) -> None:
    tx.push(tx.constant(inst.arg))


@opcode("LOAD_COMMON_CONSTANT", since=(3, 14))
def load_common_constant(tx: Machine, inst: Instruction) -> None:
    tx.push(tx.object(inst.argval))


# -- locals


def load_local(tx: Machine, name: str) -> VariableTracker:
    """The value of a local variable; UnboundLocalError in the program when it has none."""
    value = tx.locals.get(name)
    if value is None:
        unbound_local(tx, name)
    return value


def unbound_local(tx: Machine, name: str) -> NoReturn:
    """UnboundLocalError in the program."""
    where = "where it is not associated with a value"
    tx.raise_(UnboundLocalError, f"cannot access local variable '{name}' {where}")


def _in_slot(tx: Machine, inst: Instruction) -> VariableTracker | None:
    """What a slot of the frame holds: since 3.12 instructions on locals may name one that holds a cell.

    An inlined comprehension may put a plain value into the slot of a cell while it has set the cell aside.
    """
    name: Any = inst.argval
    if inst.arg in tx.decoded.cell_slots:
        if name in tx.cells or name in tx.decoded.code.co_freevars:
            return tx.cell(name)
    return tx.locals.get(name)


@opcode("LOAD_FAST", until=(3, 11))
@opcode("LOAD_FAST_CHECK", since=(3, 12))
def load_fast_311(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    tx.push(load_local(tx, name))


@opcode("LOAD_FAST", since=(3, 12))
@opcode("LOAD_FAST_BORROW", since=(3, 14))
def load_fast(tx: Machine, inst: Instruction) -> None:
    """Since 3.13 also what LOAD_CLOSURE was."""
    value = _in_slot(tx, inst)
    if value is None:
        unbound_local(tx, str(inst.argval))
    tx.push(value)


@opcode("LOAD_FAST_AND_CLEAR", since=(3, 12))
def load_fast_and_clear(tx: Machine, inst: Instruction) -> None:
    """An inlined comprehension sets aside the outer variable of the same name, or its cell."""
    name: Any = inst.argval
    tx.sets_aside(inst)
    saved = _in_slot(tx, inst)
    if isinstance(saved, CellVariable):
        tx.cells.pop(name, None)
    else:
        tx.locals.pop(name, None)
    tx.push(NULL if saved is None else saved)


@opcode("LOAD_FAST_LOAD_FAST", since=(3, 13))
@opcode("LOAD_FAST_BORROW_LOAD_FAST_BORROW", since=(3, 14))
def load_fast_load_fast(tx: Machine, inst: Instruction) -> None:
    first, second = _pair(inst)
    tx.push(load_local(tx, first))
    tx.push(load_local(tx, second))


def _pair(inst: Instruction) -> tuple[str, str]:
    names: Any = inst.argval
    return names[0], names[1]


def _store(tx: Machine, name: str, value: VariableTracker) -> None:
    if value is NULL:  # put back by an inlined comprehension: it had no value
        tx.locals.pop(name, None)
    else:
        tx.locals[name] = value


@opcode("STORE_FAST")
def store_fast(tx: Machine, inst: Instruction) -> None:
    """A cell is put back by an inlined comprehension, or into its place where a frame goes on."""
    name: Any = inst.argval
    value = tx.pop()
    if inst.arg in tx.decoded.cell_slots and isinstance(value, CellVariable):
        tx.locals.pop(name, None)
        tx.cells[name] = value
    else:
        _store(tx, name, value)


@opcode("STORE_FAST_STORE_FAST", since=(3, 13))
def store_fast_store_fast(tx: Machine, inst: Instruction) -> None:
    first, second = _pair(inst)
    _store(tx, first, tx.pop())
    _store(tx, second, tx.pop())


@opcode("STORE_FAST_LOAD_FAST", since=(3, 13))
def store_fast_load_fast(tx: Machine, inst: Instruction) -> None:
    first, second = _pair(inst)
    _store(tx, first, tx.pop())
    tx.push(load_local(tx, second))


@opcode("DELETE_FAST")
def delete_fast(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    found = tx.locals.pop(name, None)
    if found is None:
        unbound_local(tx, name)
    if not name.startswith("___"):  # a local of the user's
        look_at_kind(tx, found)  # as torch does


# -- cells


@opcode("MAKE_CELL")
def make_cell(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    tx.make_cell(name)


@opcode("LOAD_CLOSURE", until=(3, 12))
def load_closure(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    tx.push(tx.cell(name))


@opcode("LOAD_DEREF")
def load_deref(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    value = tx.cell(name).get(tx)
    if value is None:
        _empty_cell(tx, inst)
    tx.push(value)


@opcode("STORE_DEREF")
def store_deref(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    tx.cell(name).set(tx, tx.pop())


@opcode("DELETE_DEREF")
def delete_deref(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    cell = tx.cell(name)
    if cell.get(tx) is None:
        _empty_cell(tx, inst)
    cell.set(tx, None)


def _empty_cell(tx: Machine, inst: Instruction) -> NoReturn:
    name: Any = inst.argval
    code = tx.decoded.code
    if name in code.co_freevars and name not in code.co_cellvars:
        where = "where it is not associated with a value in enclosing scope"
        exceptions.raise_name_error(tx, name, f"cannot access free variable '{name}' {where}")
    unbound_local(tx, name)
