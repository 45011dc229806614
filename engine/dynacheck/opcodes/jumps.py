"""Jumps, loops and returns."""

from __future__ import annotations

from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.table import Machine, opcode
from dynacheck.variables import abstract


@opcode("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def jump(tx: Machine, inst: Instruction) -> None:
    tx.jump(inst)


@opcode("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE", until=(3, 11))
@opcode("POP_JUMP_IF_TRUE", since=(3, 12))
def pop_jump_if_true(tx: Machine, inst: Instruction) -> None:
    tx.branch(inst, tx.pop(), True)


@opcode("POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE", until=(3, 11))
@opcode("POP_JUMP_IF_FALSE", since=(3, 12))
def pop_jump_if_false(tx: Machine, inst: Instruction) -> None:
    tx.branch(inst, tx.pop(), False)


@opcode("POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NONE", until=(3, 11))
@opcode("POP_JUMP_IF_NONE", since=(3, 12))
def pop_jump_if_none(tx: Machine, inst: Instruction) -> None:
    if abstract.is_none(tx, tx.pop()):
        tx.jump(inst)


@opcode("POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE", until=(3, 11))
@opcode("POP_JUMP_IF_NOT_NONE", since=(3, 12))
def pop_jump_if_not_none(tx: Machine, inst: Instruction) -> None:
    if not abstract.is_none(tx, tx.pop()):
        tx.jump(inst)


@opcode("JUMP_IF_TRUE_OR_POP", until=(3, 11))
def jump_if_true_or_pop(tx: Machine, inst: Instruction) -> None:
    tx.branch(inst, tx.pop(), True, keep=True)


@opcode("JUMP_IF_FALSE_OR_POP", until=(3, 11))
def jump_if_false_or_pop(tx: Machine, inst: Instruction) -> None:
    tx.branch(inst, tx.pop(), False, keep=True)


@opcode("GET_ITER", leaves=1)
def get_iter(tx: Machine, inst: Instruction) -> None:
    tx.push(abstract.get_iter(tx, tx.pop()))


def _for_iter(tx: Machine, inst: Instruction, pop: bool, skip: int) -> None:
    item = abstract.iternext(tx, tx.stack[-1])
    if item is not None:
        tx.push(item)
        return
    assert inst.target is not None
    if pop:
        tx.pop()
    tx.jump_to(inst.target + skip)


@opcode("FOR_ITER", until=(3, 11))
def for_iter_311(tx: Machine, inst: Instruction) -> None:
    _for_iter(tx, inst, pop=True, skip=0)


@opcode("FOR_ITER", since=(3, 12), until=(3, 12))
def for_iter_312(tx: Machine, inst: Instruction) -> None:
    """The target is END_FOR, which an exhausted iterator skips."""
    _for_iter(tx, inst, pop=True, skip=1)


@opcode("FOR_ITER", since=(3, 13), until=(3, 13))
def for_iter_313(tx: Machine, inst: Instruction) -> None:
    """The target is END_FOR and POP_TOP, which an exhausted iterator skips."""
    _for_iter(tx, inst, pop=True, skip=2)


@opcode("FOR_ITER", since=(3, 14))
def for_iter(tx: Machine, inst: Instruction) -> None:
    """The target is END_FOR, which is skipped, and POP_ITER, which pops the iterator."""
    _for_iter(tx, inst, pop=False, skip=1)


@opcode("RETURN_VALUE")
def return_value(tx: Machine, inst: Instruction) -> None:
    tx.return_value(tx.pop())


@opcode("RETURN_CONST", since=(3, 12), until=(3, 13))
def return_const(tx: Machine, inst: Instruction) -> None:
    tx.return_value(tx.constant(inst.argval))
