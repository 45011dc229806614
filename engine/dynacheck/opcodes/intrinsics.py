"""CALL_INTRINSIC_1 and CALL_INTRINSIC_2 (3.12+): functions of the interpreter that have no name in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.table import Machine, opcode, unsupported
from dynacheck.reasons import UNKNOWN_OPCODE
from dynacheck.variables import abstract, exception_groups, exceptions
from dynacheck.variables.base import ObservedException, VariableTracker
from dynacheck.variables.sequences import TupleVariable

unsupported("it belongs to the interactive interpreter", "PRINT_EXPR")
unsupported(
    "the interpreter uses it for itself", "INTERPRETER_EXIT", "RESERVED", "ENTER_EXECUTOR", "EXIT_INIT_CHECK"
)


def _stop_iteration_error(tx: Machine, value: VariableTracker) -> VariableTracker:
    """PEP 479 for a generator's body: what RERAISE raises next."""
    exception = value.realize(tx)
    if not abstract.raised(ObservedException(exception), StopIteration):
        return exception
    return exceptions.stop_iteration_left(tx, exception)


_ONE: Final[dict[str, Callable[[Machine, VariableTracker], VariableTracker]]] = {
    "INTRINSIC_STOPITERATION_ERROR": _stop_iteration_error,
    "INTRINSIC_UNARY_POSITIVE": lambda tx, v: abstract.unary(tx, "+", v),
    "INTRINSIC_LIST_TO_TUPLE": lambda tx, v: TupleVariable(abstract.iterate(tx, v)),
}

_TWO: Final[dict[str, Callable[[Machine, VariableTracker, VariableTracker], VariableTracker]]] = {
    "INTRINSIC_PREP_RERAISE_STAR": exception_groups.to_reraise,
}


def _refuse(tx: Machine, inst: Instruction) -> None:
    why = "it belongs to module code, coroutines or type parameters"
    tx.break_(UNKNOWN_OPCODE, opname=f"{inst.opname} ({inst.argval})", why=why)


@opcode("CALL_INTRINSIC_1", since=(3, 12), leaves=1)
def call_intrinsic_1(tx: Machine, inst: Instruction) -> None:
    function = _ONE.get(str(inst.argval))
    if function is None:
        _refuse(tx, inst)
    else:
        tx.push(function(tx, tx.pop()))


@opcode("CALL_INTRINSIC_2", since=(3, 12), leaves=1)
def call_intrinsic_2(tx: Machine, inst: Instruction) -> None:
    function = _TWO.get(str(inst.argval))
    if function is None:
        _refuse(tx, inst)
    else:
        first, second = tx.popn(2)
        tx.push(function(tx, first, second))
