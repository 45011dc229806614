"""Instructions that only move values on the stack, or do nothing while tracing."""

from __future__ import annotations

from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.table import NULL, Machine, opcode


@opcode("NOP", "RESUME", "COPY_FREE_VARS", "EXTENDED_ARG", "CACHE")
def nothing(tx: Machine, inst: Instruction) -> None:
    """Free variables are read through the function, prefixes and caches are decoded away."""


@opcode("NOT_TAKEN", since=(3, 14))
def not_taken(tx: Machine, inst: Instruction) -> None:
    """A marker for monitoring."""


@opcode("POP_TOP")
def pop_top(tx: Machine, inst: Instruction) -> None:
    tx.pop()


@opcode("PUSH_NULL")
def push_null(tx: Machine, inst: Instruction) -> None:
    tx.push(NULL)


@opcode("COPY")
def copy(tx: Machine, inst: Instruction) -> None:
    tx.push(tx.stack[-inst.arg])


@opcode("SWAP")
def swap(tx: Machine, inst: Instruction) -> None:
    stack = tx.stack
    stack[-1], stack[-inst.arg] = stack[-inst.arg], stack[-1]


@opcode("END_FOR", since=(3, 12), until=(3, 12))
def end_for_312(tx: Machine, inst: Instruction) -> None:
    tx.popn(2)


@opcode("END_FOR", since=(3, 13))
def end_for(tx: Machine, inst: Instruction) -> None:
    tx.pop()


@opcode("POP_ITER", since=(3, 14))
def pop_iter(tx: Machine, inst: Instruction) -> None:
    tx.pop()
