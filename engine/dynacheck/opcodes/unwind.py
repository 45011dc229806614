"""Where a raised exception goes: the frame's exception table."""

from __future__ import annotations

from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.table import Machine
from dynacheck.places import is_engine
from dynacheck.variables import exceptions
from dynacheck.variables.base import ObservedException
from dynacheck.variables.exceptions import ExceptionVariable
from dynacheck.variables.tracebacks import Place


def goes_on(inst: Instruction) -> bool:
    """Whether an instruction raises on what was raised before, which leaves no entry in the traceback."""
    return inst.opname == "RERAISE" or (inst.opname == "RAISE_VARARGS" and inst.arg == 0)


def unwind(tx: Machine, inst: Instruction, observed: ObservedException) -> bool:
    """Go to the handler that covers an instruction, as `exception_unwind` of CPython's `ceval.c` does.

    Args:
        tx: the frame.
        inst: the instruction that raised.
        observed: what it raised.

    Returns:
        False when no handler covers the instruction: the exception leaves the frame.
    """
    exception = observed.exception
    if isinstance(exception, ExceptionVariable):
        if not exception.was_raised:
            exceptions.raised(tx, exception)  # by a slot: chain it to the one being handled
        if not goes_on(inst) and not is_engine(tx.decoded.code.co_filename):
            exception.passed(tx, Place(tx.decoded.code, inst))
    handler = inst.handler
    if handler is None:
        return False
    del tx.stack[handler.depth :]
    if handler.lasti:
        tx.push(tx.constant(inst.offset // 2))  # in code units
    tx.push(exception)
    tx.jump_to(handler.target)
    return True
