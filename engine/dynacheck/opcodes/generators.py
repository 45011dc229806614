"""Generators: suspending, delegating, and the frame between two resumptions."""

from __future__ import annotations

from types import CodeType
from typing import Protocol

from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.table import Machine, opcode, unsupported
from dynacheck.opcodes.unwind import unwind
from dynacheck.variables import abstract, exceptions
from dynacheck.variables.base import ObservedException, VariableTracker
from dynacheck.variables.exceptions import ExceptionVariable
from dynacheck.variables.generators import GeneratorVariable, Step, send
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

_AFTER_YIELD_FROM = 2


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


class GeneratorMachine(Machine, Protocol):
    """What a generator's frame adds: it runs in pieces."""

    inst: Instruction
    """The instruction it stopped at."""

    def advance(self) -> Step:
        """Go on from the next instruction until the frame yields or returns."""


class SuspendedMachine:
    """A generator's frame between two resumptions, by the rules of `Objects/genobject.c`.

    Args:
        machine: the frame, run up to and including RETURN_GENERATOR.
    """

    def __init__(self, machine: GeneratorMachine) -> None:
        self._machine = machine
        self._handling: list[VariableTracker] = []

    @property
    def code(self) -> CodeType:
        return self._machine.decoded.code

    def resume(self, value: VariableTracker) -> Step:
        """Go on with the value as result of the `yield`."""
        self._machine.push(value)
        return self._go_on()

    def throw(self, exception: ExceptionVariable) -> Step:
        """Raise the exception at the `yield`."""
        machine = self._machine
        observed = ObservedException(exception)
        outside = len(machine.exc_info)
        machine.exc_info.extend(self._handling)
        exceptions.chain(machine, exception, exceptions.handled(machine))
        caught = unwind(machine, machine.inst, observed)
        self._set_aside(outside)
        if not caught:
            raise observed
        return self._go_on()

    def delegate(self) -> VariableTracker | None:
        """The iterator of the `yield from` the frame is suspended in."""
        machine = self._machine
        following = machine.decoded.instructions[machine.inst.index + 1]
        if following.opname != "RESUME" or following.arg & 3 < _AFTER_YIELD_FROM:
            return None
        return machine.stack[-1]

    def finish_delegate(self, value: VariableTracker) -> Step:
        """End that `yield from` with a value and go on (3.11: later versions have CLEANUP_THROW)."""
        machine = self._machine
        loop = machine.decoded.instructions[machine.inst.index - 1]  # SEND, then YIELD_VALUE
        assert loop.opname == "SEND"
        machine.pop()
        machine.push(value)
        machine.jump(loop)
        return self._go_on()

    def _go_on(self) -> Step:
        """Run on; the exceptions that the frame handles are set aside while it is suspended."""
        machine = self._machine
        outside = len(machine.exc_info)
        machine.exc_info.extend(self._handling)
        try:
            return machine.advance()
        finally:
            self._set_aside(outside)

    def _set_aside(self, outside: int) -> None:
        handled = self._machine.exc_info
        self._handling = handled[outside:]
        del handled[outside:]
