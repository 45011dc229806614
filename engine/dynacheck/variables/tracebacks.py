"""Tracebacks of exceptions raised while tracing: what they passed, made into real ones where they leave the frame."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from types import CodeType, FunctionType, TracebackType
from typing import Any, Final, NamedTuple

from dynacheck import _C
from dynacheck.bytecode.assemble import Shape, assemble_shape, prologue
from dynacheck.bytecode.build import Builder
from dynacheck.bytecode.instruction import Instruction
from dynacheck.sources import Node
from dynacheck.variables.base import Rebuilder, Tracer, VariableTracker

_NO_FRAME: Final = 0x04 | 0x08 | 0x20 | 0x80 | 0x200
"""Flags that a stand-in hasn't: arguments, generators."""


class Place(NamedTuple):
    """An instruction that an exception passed."""

    code: CodeType
    instruction: Instruction


class TracebackVariable(VariableTracker):
    """A traceback. Handlers may pass it on.

    Args:
        places: what the exception passed in the frame and in what it calls, outermost first.
        rest: the traceback behind them, of an exception that existed before; None if there is none.
        node: the traceback's source, if it existed before.
    """

    __slots__ = ("places", "rest")
    python_type = types.TracebackType

    def __init__(
        self, places: Sequence[Place] = (), rest: VariableTracker | None = None, node: Node | None = None
    ) -> None:
        super().__init__(node)
        self.places = tuple(places)
        self.rest = rest

    def passed(self, place: Place) -> TracebackVariable:
        """The traceback with one more entry."""
        rest = self.rest if self.node is None else self
        return TracebackVariable((place, *self.places), rest)

    def nb_bool(self, tx: Tracer) -> bool:
        return True

    def children(self) -> Sequence[VariableTracker]:
        return () if self.rest is None else (self.rest,)

    def reconstruct(self, to: Rebuilder) -> None:
        codes = tuple(map(stand_in, self.places))
        lines = tuple(p.instruction.lineno or p.code.co_firstlineno for p in self.places)
        rest = self.rest
        to.call_helper(
            make_traceback,
            lambda: to.load_const(codes),
            lambda: to.load_const(lines),
            lambda: to.load_const(None) if rest is None else to.load(rest),
        )
        to.remember(self)


def stand_in(place: Place) -> CodeType:
    """Code whose frame looks as the place's does in a traceback: file, name, position. It returns its frame."""
    code = place.code
    builder = Builder(code)
    builder.at(place.instruction.positions)
    builder.null_first()
    builder.load_const(sys._getframe)
    builder.null_last()
    builder.call(0)
    builder.return_value()
    shape = Shape(
        name=code.co_name,
        qualname=code.co_qualname,
        firstlineno=code.co_firstlineno,
        flags=code.co_flags & ~_NO_FRAME,
        argcount=0,
        posonlyargcount=0,
        kwonlyargcount=0,
        arguments=(),
        locals=(),
        cellvars=(),
        freevars=(),
    )
    ops = prologue(shape) + builder.ops
    made = assemble_shape(ops, shape, code, names=(), consts=builder.consts)
    _C.state(made).skip = True
    return made


def make_traceback(
    codes: tuple[CodeType, ...], lines: tuple[int, ...], rest: TracebackType | None
) -> TracebackType | None:
    """A traceback of stand-ins (used by rewritten code).

    Args:
        codes: the stand-ins, outermost first.
        lines: their lines.
        rest: the traceback behind them.
    """
    globals_: dict[str, Any] = {}
    for code, line in zip(reversed(codes), reversed(lines)):
        frame: types.FrameType = FunctionType(code, globals_)()
        rest = TracebackType(rest, frame, frame.f_lasti, line)
    return rest
