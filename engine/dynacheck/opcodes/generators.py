"""Generators: suspending, delegating, and the frame between two resumptions."""

from __future__ import annotations

from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.table import Machine, opcode, unsupported
from dynacheck.variables import abstract
from dynacheck.variables.base import ObservedException
from dynacheck.variables.exceptions import ExceptionVariable
from dynacheck.variables.generators import GeneratorVariable, send
from dynacheck.versions import PY312

unsupported(
    "coroutines and asynchronous generators aren't translated",
    "ASYNC_GEN_WRAP",
    "BEFORE_ASYNC_WITH",
    "END_ASYNC_FOR",
    "GET_AITER",
    "GET_ANEXT",
    "GET_AWAITABLE",
)


@opcode("RETURN_GENERATOR")
def return_generator(tx: Machine, inst: Instruction) -> None:
    tx.return_generator()


@opcode("YIELD_VALUE")
def yield_value(tx: Machine, inst: Instruction) -> None:
    tx.yield_value(tx.pop())


@opcode("GET_YIELD_FROM_ITER", leaves=1)
def get_yield_from_iter(tx: Machine, inst: Instruction) -> None:
    value = tx.pop().realize(tx)
    tx.push(value if isinstance(value, GeneratorVariable) else abstract.get_iter(tx, value))


@opcode("SEND")
def send_value(tx: Machine, inst: Instruction) -> None:
    """(receiver, value): the receiver stays while it yields; its return value ends the loop."""
    value = tx.pop()
    kind, found = send(tx, tx.stack[-1], value)
    if kind == "return":
        if not PY312:  # since 3.12 END_SEND pops the receiver
            tx.pop()
        tx.push(found)
        tx.jump(inst)
    else:
        tx.push(found)


@opcode("END_SEND", since=(3, 12))
def end_send(tx: Machine, inst: Instruction) -> None:
    value = tx.pop()
    tx.pop()
    tx.push(value)


@opcode("CLEANUP_THROW", since=(3, 12))
def cleanup_throw(tx: Machine, inst: Instruction) -> None:
    """(receiver, last value, exception): a StopIteration ends the `yield from` with its value."""
    exception = tx.stack[-1].realize(tx)
    assert isinstance(exception, ExceptionVariable)
    observed = ObservedException(exception)
    if not abstract.raised(observed, StopIteration):
        raise observed
    tx.popn(3)
    tx.push(tx.constant(None))
    tx.push(exception.part(tx, "value"))
