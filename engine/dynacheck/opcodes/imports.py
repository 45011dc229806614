"""Imports inside functions."""

from __future__ import annotations

from typing import Any

from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.table import Machine, opcode, unsupported

unsupported("star imports are allowed in modules only", "IMPORT_STAR")


@opcode("IMPORT_NAME", leaves=1)
def import_name(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    level, fromlist = tx.popn(2)
    tx.push(tx.import_name(name, fromlist, level))


@opcode("IMPORT_FROM", leaves=2)
def import_from(tx: Machine, inst: Instruction) -> None:
    """The module stays below the attribute."""
    name: Any = inst.argval
    tx.push(tx.import_from(tx.stack[-1], name))
