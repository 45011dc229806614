"""Exceptions and `with` blocks: the stack layouts of `Python/ceval.c`."""

from __future__ import annotations

from typing import NoReturn

from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.table import NULL, Machine, opcode
from dynacheck.reasons import UNKNOWN_OPERATION
from dynacheck.variables import abstract, exception_groups, exceptions
from dynacheck.variables.base import ObservedException, VariableTracker
from dynacheck.variables.exceptions import ExceptionVariable


@opcode("RAISE_VARARGS")
def raise_varargs(tx: Machine, inst: Instruction) -> None:
    if inst.arg == 0:
        _reraise_handled(tx)
    cause = tx.pop() if inst.arg == 2 else None
    raise ObservedException(exceptions.raised(tx, tx.pop(), cause))


def _reraise_handled(tx: Machine) -> NoReturn:
    """A bare `raise`."""
    found = tx.handled_exception
    if found is None:  # a caller that isn't traced may be handling one
        tx.break_(UNKNOWN_OPERATION, operation="a bare `raise`", what="an exception of the caller")
    raise ObservedException(found)


@opcode("RERAISE")
def reraise(tx: Machine, inst: Instruction) -> None:
    """The stored instruction offsets below it only matter for tracebacks."""
    raise ObservedException(tx.pop())


@opcode("PUSH_EXC_INFO")
def push_exc_info(tx: Machine, inst: Instruction) -> None:
    """The exception goes over the one that was being handled."""
    exception = tx.pop()
    previous = tx.handled_exception
    tx.push(tx.constant(None) if previous is None else previous)
    tx.push(exception)
    tx.exc_info.append(exception)


@opcode("POP_EXCEPT")
def pop_except(tx: Machine, inst: Instruction) -> None:
    tx.pop()
    tx.exc_info.pop()


@opcode("CHECK_EXC_MATCH")
def check_exc_match(tx: Machine, inst: Instruction) -> None:
    matcher = tx.pop()
    tx.push(tx.constant(exceptions.matches(tx, tx.stack[-1], matcher)))


@opcode("CHECK_EG_MATCH")
def check_eg_match(tx: Machine, inst: Instruction) -> None:
    """(exception, type) become (rest, match), or (exception, None)."""
    exception, matcher = tx.popn(2)
    match, rest = exception_groups.match(tx, exception.realize(tx), matcher)
    none = tx.constant(None)
    if match is None:
        tx.push(exception)
        tx.push(none)
        return
    tx.push(none if rest is None else rest)
    tx.push(match)
    tx.exc_info[-1] = match


@opcode("PREP_RERAISE_STAR", until=(3, 11))
def prep_reraise_star(tx: Machine, inst: Instruction) -> None:
    original, raised = tx.popn(2)
    tx.push(exception_groups.to_reraise(tx, original, raised))


# -- with


@opcode("BEFORE_WITH", until=(3, 13))
def before_with(tx: Machine, inst: Instruction) -> None:
    tx.enter_with(tx.pop())


@opcode("LOAD_SPECIAL", since=(3, 14))
def load_special(tx: Machine, inst: Instruction) -> None:
    owner = tx.pop()
    tx.push(tx.special_method(owner, str(inst.argval)))
    tx.push(NULL)


def _call_exit(
    tx: Machine, exit_: VariableTracker, owner: VariableTracker, exception: VariableTracker
) -> None:
    """Call `__exit__(type, exception, traceback)`; its result says whether the exception is swallowed."""
    value = exception.realize(tx)
    assert isinstance(value, ExceptionVariable)
    cls = abstract.getattr_(tx, value, "__class__")
    args = [cls, value, value.part(tx, "__traceback__")]
    tx.push(tx.call(exit_, args if owner is NULL else [owner, *args]))


@opcode("WITH_EXCEPT_START", until=(3, 13))
def with_except_start_313(tx: Machine, inst: Instruction) -> None:
    """The stack is exit, offset, previous exception, exception."""
    _call_exit(tx, tx.stack[-4], NULL, tx.stack[-1])


@opcode("WITH_EXCEPT_START", since=(3, 14))
def with_except_start(tx: Machine, inst: Instruction) -> None:
    """The stack is exit, NULL or its self, offset, previous exception, exception."""
    _call_exit(tx, tx.stack[-5], tx.stack[-4], tx.stack[-1])
