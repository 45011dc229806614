"""Resume functions: code objects that run the rest of a function from one of its instructions on."""

import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Final

from dynacheck.bytecode.assemble import CONTINUES, Shape, assemble_shape, prologue
from dynacheck.bytecode.build import Builder
from dynacheck.bytecode.by_code import ByCode
from dynacheck.bytecode.copying import Copier
from dynacheck.bytecode.decode import DecodedCode, decode
from dynacheck.bytecode.flow import UNREACHED, flow
from dynacheck.bytecode.liveness import reads_first_argument
from dynacheck.bytecode.operands import OPMAP
from dynacheck.bytecode.ops import Cover, Op
from dynacheck.versions import PY314, SKIPS_POP_AFTER_LOOP

_VARARGS: Final = 0x04
_VARKEYWORDS: Final = 0x08
_GENERATORS: Final = 0x20 | 0x80 | 0x200


@dataclass(frozen=True, slots=True)
class ResumeLayout:
    """What of a frame a resume function starts with.

    Stack positions count from the bottom, 0.
    """

    depth: int
    """Stack depth before the instruction to resume at."""
    locals: tuple[str, ...] = ()
    """Locals (not cells) that are bound and passed; all others start unbound."""
    nulls: tuple[int, ...] = ()
    """Stack positions that hold NULL: made anew, not passed."""
    blocks: tuple[int, ...] = ()
    """Stack positions of the exits of `with` blocks to enter again, outermost first."""
    carried: tuple[str | int, ...] = ()
    """Names, and stack positions, that lead to iterators whose place is known."""
    as_is: bool = False
    """Whether it is never translated: a frame that can't be split behind a break is left before it for good."""


@dataclass(frozen=True, slots=True)
class ResumeCode:
    """A resume function's code, and what its arguments are.

    The arguments, all positional, are in this order: the value of `leading` if there is one, the stack values
    at `stack`, the locals named by `locals`, and for each block of the layout a callable without arguments
    that enters it. Free variables are all cells of the original frame; the caller shares its own with it.
    """

    code: CodeType
    layout: ResumeLayout
    index: int
    """The instruction of the original code it resumes at."""
    leading: str | None
    """The original's first argument, if the rest may call `super()` without arguments: that reads slot 0."""
    stack: tuple[int, ...]
    locals: tuple[str, ...]

    @property
    def argcount(self) -> int:
        """Number of arguments."""
        return self.code.co_argcount


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the instructions of a resume code come from."""

    _code: "weakref.ref[CodeType]"
    indexes: tuple[int | None, ...] = field(repr=False)
    """By index in the resume code: the index in the original code; None in the prologue and its last NOP."""
    resumed_at: int
    """The original index where it starts."""
    stack: tuple[int, ...] = ()
    """Stack positions of its stack arguments, there."""
    depth: int = 0
    """Stack depth there."""
    carried: frozenset[str] = frozenset()
    """Names that lead to iterators whose place was known where the frame was split."""
    as_is: bool = False
    """Whether it is never translated."""

    @property
    def code(self) -> CodeType | None:
        """The function's code that was split first, itself no resume code; None once it has died."""
        return self._code()


_resumes: ByCode[dict[tuple[int, ResumeLayout], ResumeCode]] = ByCode()
_origins: ByCode[Origin] = ByCode()
_sides: ByCode[tuple[int, bool]] = ByCode()


def origin(code: CodeType) -> Origin | None:
    """Return where a resume code comes from; None for any other code object."""
    return _origins.get(code)


def side(code: CodeType) -> tuple[int, bool] | None:
    """For a resume code that goes on behind a branch on a tensor: the branch's line, and on which side it is."""
    return _sides.get(code)


def note_side(code: CodeType, line: int, truth: bool) -> None:
    """Say that a resume code goes on behind a branch.

    Args:
        code: the resume code.
        line: the branch's.
        truth: whether it goes on where the condition is true.
    """
    _sides.set(code, (line, truth))


def attribute(code: CodeType, index: int) -> tuple[CodeType, int | None]:
    """Return the original code object and index of an instruction.

    Args:
        code: any code object.
        index: one of its instructions.

    Returns:
        For a resume code the code that was split and the index there (None for its prologue); for any other
        the arguments.
    """
    found = _origins.get(code)
    original = None if found is None else found.code
    if found is None or original is None:
        return code, index
    return original, found.indexes[index]


def _place(code: CodeType, index: int) -> tuple[CodeType, int | None]:
    """The original code object and index where a resume function goes on; a NOP that lands there stands for it."""
    original, at = attribute(code, index)
    if at is None and index + 1 < len(decode(code)) and decode(code)[index].opname == "NOP":
        return attribute(code, index + 1)
    return original, at


def why_not_resumable(code: CodeType, index: int) -> str | None:
    """Return why no resume function can start at an instruction, or None if one can.

    Whether one should (loops, `try`) is for the caller to say.

    >>> why_not_resumable((lambda: (yield)).__code__, 0)
    'a generator or coroutine'
    """
    original, at = _place(code, index)
    if original.co_flags & _GENERATORS:
        return "a generator or coroutine"
    if at is None:
        return "in the prologue of a resume function"
    if original is not code and attribute(code, index - 1)[1] == at:
        return "the second half of a fused pair of loads or stores"
    decoded = decode(original)
    if at < decoded.start:
        return "in the prologue of a function"
    facts = flow(decoded)
    if decoded[at].opname == "END_FOR" or (SKIPS_POP_AFTER_LOOP and decoded[at - 1].opname == "END_FOR"):
        return "an instruction that FOR_ITER jumps past"
    if facts.depths[at] == UNREACHED:
        return "code that is never reached"
    if facts.handling[at]:
        return "in a handler, with an exception being handled"
    if facts.offsets[at] and PY314:
        return "at the edge of a handler, with an instruction offset on the stack"
    return None


def resume_code(parent: CodeType, index: int, layout: ResumeLayout) -> ResumeCode:
    """Return the code that runs the rest of a frame from an instruction on: one object per place and layout.

    The code of a resume function of a resume function is the original function's: ways that lead to one place
    share what is compiled behind it, as with torch.

    Args:
        parent: the code object that is split; may be a resume code.
        index: the instruction of it to run first.
        layout: what the frame holds there.

    Returns:
        The resume code; the same object for the same original, index there and layout.

    Raises:
        ValueError: no resume function can start there, or the layout doesn't fit the code.
    """
    why = why_not_resumable(parent, index)
    if why is not None:
        raise ValueError(f"{parent.co_qualname} can't be resumed at instruction {index}: {why}")
    original, at = _place(parent, index)
    assert at is not None
    made = _resumes.get(original)
    if made is None:
        made = {}
        _resumes.set(original, made)
    found = made.get((at, layout))
    if found is None:
        found = made[at, layout] = _Maker(original, at, layout).make()
    return found


def reachable(decoded: DecodedCode, start: int) -> set[int]:
    """Return the indexes control can come to from an instruction, itself included."""
    seen: set[int] = set()
    todo = [start]
    while todo:
        index = todo.pop()
        if index not in seen:
            seen.add(index)
            todo.extend(decoded.successors(index))
    return seen


class _Maker:
    """Makes one resume code."""

    def __init__(self, original: CodeType, index: int, layout: ResumeLayout) -> None:
        self.original = original
        self.index = index
        self.layout = layout
        self.decoded = decode(original)
        self.builder = Builder(original)
        self.copier = Copier(self.builder, self.decoded)
        self.kept = reachable(self.decoded, index)
        self.cells = original.co_cellvars + original.co_freevars
        self.leading = self.first_argument()
        self.stack = tuple(pos for pos in range(layout.depth) if pos not in layout.nulls)
        self.locals = tuple(name for name in layout.locals if name != self.leading)
        self.check()

    def check(self) -> None:
        layout, decoded = self.layout, self.decoded
        depth = flow(decoded).depths[self.index]
        if layout.depth != depth:
            raise ValueError(
                f"the stack holds {depth} values at instruction {self.index}, not {layout.depth}"
            )
        own = {
            name
            for slot, name in enumerate(decoded.slots[: self.original.co_nlocals])
            if slot not in decoded.cell_slots
        }
        if not own.issuperset(self.locals) or len(set(layout.locals)) != len(layout.locals):
            raise ValueError(f"not distinct locals of {self.original.co_qualname}: {layout.locals}")

    def first_argument(self) -> str | None:
        """The name of slot 0, if the rest of the code may read it behind the scenes and it is bound."""
        decoded = self.decoded
        if not reads_first_argument(decoded):
            return None
        name = decoded.slots[0]
        return name if 0 in decoded.cell_slots or name in self.layout.locals else None

    def shape(self) -> Shape:
        line = self.line()
        stack = [f"___stack{number}" for number in range(len(self.stack))]
        enters = [f"___enter{number}" for number in range(len(self.layout.blocks))]
        leading = [] if self.leading is None else [self.leading]
        arguments = (*leading, *stack, *self.locals, *enters)
        taken = {*arguments, *self.original.co_cellvars}
        others = tuple(name for name in self.original.co_varnames if name not in taken)
        return Shape(
            name=self.original.co_name,  # tracebacks and log records show it
            qualname=self.original.co_qualname,
            firstlineno=line,
            flags=self.original.co_flags & ~(_VARARGS | _VARKEYWORDS),
            argcount=len(arguments),
            posonlyargcount=0,
            kwonlyargcount=0,
            arguments=arguments,
            locals=others,
            cellvars=self.original.co_cellvars,
            freevars=self.cells,
            shared=True,
        )

    def line(self) -> int:
        """The line of the instruction, or of the nearest one that has a line."""
        for index in (*range(self.index, len(self.decoded)), *range(self.index, -1, -1)):
            line = self.decoded[index].lineno
            if line is not None:
                return line
        return self.original.co_firstlineno

    def make(self) -> ResumeCode:
        shape = self.shape()
        builder = self.builder
        builder.const_index(CONTINUES)
        builder.at(shape.firstlineno)
        self.rebuild_stack()
        kwnames = self.decoded[self.index].kwnames
        if kwnames:
            builder.emit("KW_NAMES", builder.const_index(kwnames))
        landing = builder.label()
        if min(self.kept) != self.index:
            builder.jump(landing)
        self.copier.copy_range(0, self.index, only=self.kept)
        builder.place(landing)
        self.land()
        self.copier.copy_range(self.index, len(self.decoded), only=self.kept)
        start = prologue(shape)
        code = assemble_shape(
            start + builder.ops,
            shape,
            self.original,
            names=builder.names,
            consts=builder.consts,
            base=len(start),
            stacksize=max(self.original.co_stacksize, self.layout.depth + 3),
        )
        indexes = (None,) * len(start) + tuple(op.origin for op in builder.ops)
        _origins.set(
            code,
            Origin(
                weakref.ref(self.original),
                indexes,
                self.index,
                self.stack,
                self.layout.depth,
                frozenset(map(self.argument, self.layout.carried)),
                self.layout.as_is,
            ),
        )
        return ResumeCode(code, self.layout, self.index, self.leading, self.stack, self.locals)

    def argument(self, held: str | int) -> str:
        """The argument for a local or a stack position."""
        return held if isinstance(held, str) else f"___stack{self.stack.index(held)}"

    def land(self) -> None:
        """Put a NOP with the same handler before the first instruction.

        3.13 looks for the handler of an exception from a callee at the code unit before the call.
        """
        cover = self.copier.cover(self.index)
        if cover is not None:
            positions = self.decoded[self.index].positions
            self.builder.ops.append(Op(OPMAP["NOP"], 0, positions, cover))

    def rebuild_stack(self) -> None:
        """Push the stack from the arguments, entering blocks on the way."""
        builder, layout = self.builder, self.layout
        enters = {position: number for number, position in enumerate(layout.blocks)}
        number = 0
        for position in range(layout.depth):
            if position in layout.nulls:
                builder.push_null()
            else:
                builder.take_fast(f"___stack{number}")
                number += 1
            if position in enters:
                self.enter(position, enters[position])

    def enter(self, position: int, number: int) -> None:
        """Call a block's enter callable, covered by what encloses the block."""
        builder = self.builder
        builder.cover = self.enclosing(position)
        builder.null_first()
        builder.take_fast(f"___enter{number}")
        builder.null_last()
        builder.call(0)
        builder.pop()
        builder.cover = None

    def enclosing(self, position: int) -> Cover | None:
        """The handler around a block whose exit is at a stack position: the innermost that keeps no exit."""
        for handler in self.decoded.handlers(self.index):
            if handler.depth <= position:
                return Cover(self.copier.label(handler.target), handler.depth, handler.lasti)
        return None


def load_resume(builder: Builder, resume: ResumeCode) -> None:
    """Push the resume function, ready to be called; its closure is made of the frame's own cells.

    Args:
        builder: appends to code of the frame that was split.
        resume: what to call.
    """
    builder.null_first()
    builder.make_function(resume.code, resume.code.co_freevars)
    builder.null_last()


def spill_stack(builder: Builder, depth: int, prefix: str = "___spilled") -> list[str]:
    """Pop the whole stack into locals.

    Args:
        builder: where to append.
        depth: number of values, NULLs included.
        prefix: of the names of the locals.

    Returns:
        The locals' names, by stack position; those of NULLs are left unbound.
    """
    names = [f"{prefix}{position}" for position in range(depth)]
    for name in reversed(names):
        builder.store_fast(name)
    return names


def call_resume(
    builder: Builder, resume: ResumeCode, spilled: Sequence[str], enters: Sequence[str] = ()
) -> None:
    """Call a resume function with the frame's values and return what it returns.

    Nothing the resume function was given stays referenced by this frame.

    Args:
        builder: appends to code of the frame that was split.
        resume: what to call.
        spilled: names of locals that hold the stack values, by stack position.
        enters: names of locals that hold the enter callables.
    """
    load_resume(builder, resume)
    if resume.leading is not None:
        if resume.leading in resume.layout.locals:
            builder.take_fast(resume.leading)
        else:
            builder.load_deref(resume.leading)
    for position in resume.stack:
        builder.take_fast(spilled[position])
    for name in (*resume.locals, *enters):
        builder.take_fast(name)
    raised = builder.label()
    with builder.covered(raised, 0):
        builder.call(resume.argcount)
    builder.return_value()
    with builder.finally_handler(raised):
        builder.null_first()
        builder.load_const(leave_out)
        builder.null_last()
        builder.call(0)
        builder.pop()


def leave_out() -> None:
    """What a resume function raises goes on as if from the frame that called it (used by rewritten code, while that is
    handled): one function is one entry of the traceback."""
    error = sys.exc_info()[1]
    entry = None if error is None else error.__traceback__
    if error is not None and entry is not None and entry.tb_next is not None:
        error.__traceback__ = entry.tb_next
