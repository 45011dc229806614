"""Unary, binary, comparison and subscription operators."""

from __future__ import annotations

from typing import Any

from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.table import Machine, opcode
from dynacheck.variables import abstract
from dynacheck.variables.indices import new_slice


@opcode("UNARY_NEGATIVE", leaves=1)
def unary_negative(tx: Machine, inst: Instruction) -> None:
    tx.push(abstract.unary(tx, "-", tx.pop()))


@opcode("UNARY_INVERT", leaves=1)
def unary_invert(tx: Machine, inst: Instruction) -> None:
    tx.push(abstract.unary(tx, "~", tx.pop()))


@opcode("UNARY_POSITIVE", until=(3, 11), leaves=1)
def unary_positive(tx: Machine, inst: Instruction) -> None:
    tx.push(abstract.unary(tx, "+", tx.pop()))


@opcode("UNARY_NOT", leaves=1)
def unary_not(tx: Machine, inst: Instruction) -> None:
    tx.push(abstract.not_(tx, tx.pop()))


@opcode("TO_BOOL", since=(3, 13))
def to_bool(tx: Machine, inst: Instruction) -> None:
    """Stands only before a conditional jump or `not`, which take the truth themselves."""


@opcode("BINARY_OP", leaves=1)
def binary_op(tx: Machine, inst: Instruction) -> None:
    op: Any = inst.argval
    left, right = tx.popn(2)
    if op == "[]":  # 3.14
        tx.push(abstract.getitem(tx, left, right))
    elif op.endswith("="):
        tx.push(abstract.inplace(tx, op[:-1], left, right))
    else:
        tx.push(abstract.binary(tx, op, left, right))


@opcode("COMPARE_OP", leaves=1)
def compare_op(tx: Machine, inst: Instruction) -> None:
    """Since 3.13 a flag asks for a bool, always before a conditional jump, which takes the truth itself."""
    op: Any = inst.argval
    left, right = tx.popn(2)
    tx.push(abstract.richcompare(tx, op, left, right))


@opcode("IS_OP")
def is_op(tx: Machine, inst: Instruction) -> None:
    left, right = tx.popn(2)
    tx.push(tx.constant(abstract.is_(tx, left, right) is (inst.argval == "is")))


@opcode("CONTAINS_OP", leaves=1)
def contains_op(tx: Machine, inst: Instruction) -> None:
    item, container = tx.popn(2)
    found = abstract.contains(tx, container, item)
    tx.push(found if inst.argval == "in" else abstract.not_(tx, found))


@opcode("BINARY_SUBSCR", until=(3, 13), leaves=1)
def binary_subscr(tx: Machine, inst: Instruction) -> None:
    container, key = tx.popn(2)
    tx.push(abstract.getitem(tx, container, key))


@opcode("STORE_SUBSCR", leaves=0)
def store_subscr(tx: Machine, inst: Instruction) -> None:
    value, container, key = tx.popn(3)
    abstract.setitem(tx, container, key, value)


@opcode("DELETE_SUBSCR", leaves=0)
def delete_subscr(tx: Machine, inst: Instruction) -> None:
    container, key = tx.popn(2)
    abstract.delitem(tx, container, key)


@opcode("BINARY_SLICE", since=(3, 12), leaves=1)
def binary_slice(tx: Machine, inst: Instruction) -> None:
    container, start, stop = tx.popn(3)
    tx.push(abstract.getitem(tx, container, new_slice(tx, start, stop)))


@opcode("STORE_SLICE", since=(3, 12), leaves=0)
def store_slice(tx: Machine, inst: Instruction) -> None:
    value, container, start, stop = tx.popn(4)
    abstract.setitem(tx, container, new_slice(tx, start, stop), value)
