"""Code objects as instructions: decoded once per code object, without torch."""

import weakref
from collections.abc import Iterator
from functools import cached_property
from types import CodeType
from typing import Final, NamedTuple

from dynacheck.bytecode.by_code import ByCode
from dynacheck.bytecode.instruction import NO_POSITIONS, Handler, Instruction, Positions
from dynacheck.bytecode.operands import (
    BACKWARD,
    CACHES,
    ENDS,
    EXTENDED_ARG,
    FLAG_MASK,
    HAS_ARG,
    JUMPS,
    OPMAP,
    OPNAME,
    RESOLVERS,
    RETURNS,
    slot_names,
)

_KW_NAMES: Final[int] = OPMAP.get("KW_NAMES", -1)
_CALLS: Final[frozenset[int]] = frozenset(OPMAP[name] for name in ("PRECALL", "CALL") if name in OPMAP)


class ExceptionEntry(NamedTuple):
    """A row of the exception table, in instruction indexes: start ≤ i < stop go to `handler`."""

    start: int
    stop: int
    handler: Handler


class DecodedCode:
    """The instructions of one code object and what can be asked about them.

    The code object is held weakly: a decoded form lives in a table that dies with its code.
    """

    def __init__(
        self,
        code: CodeType,
        instructions: tuple[Instruction, ...],
        by_offset: dict[int, int],
        exception_table: tuple[ExceptionEntry, ...],
    ) -> None:
        self._code = weakref.ref(code)
        self.instructions: Final = instructions
        self.by_offset: Final = by_offset
        """Index of the instruction at a byte offset; offsets of EXTENDED_ARG prefixes are included."""
        self.exception_table: Final = exception_table
        self.slots: Final = slot_names(code)
        """Names of the frame's slots: locals, cells, free variables."""

    @property
    def code(self) -> CodeType:
        """The code object.

        Raises:
            ReferenceError: it has died.
        """
        code = self._code()
        if code is None:
            raise ReferenceError("the decoded code object has died")
        return code

    def __len__(self) -> int:
        return len(self.instructions)

    def __getitem__(self, index: int) -> Instruction:
        return self.instructions[index]

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    @cached_property
    def acts_when_closed(self) -> bool:
        """Whether a generator of this code may have something to do when it is closed: a block, another iterator."""
        return any(i.opname in ("PUSH_EXC_INFO", "SEND") for i in self.instructions)

    @cached_property
    def loops(self) -> bool:
        """Whether the code jumps back."""
        return any("BACKWARD" in i.opname for i in self.instructions)

    @cached_property
    def nargs(self) -> int:
        """Number of argument slots: positional, keyword-only, `*args`, `**kwargs`."""
        code = self.code
        return (
            code.co_argcount
            + code.co_kwonlyargcount
            + bool(code.co_flags & 0x04)
            + bool(code.co_flags & 0x08)
        )

    @cached_property
    def argument_names(self) -> tuple[str, ...]:
        """Names of the argument slots, in slot order (as in `co_varnames`)."""
        return self.code.co_varnames[: self.nargs]

    @cached_property
    def cell_slots(self) -> frozenset[int]:
        """Slots that hold cells once the prologue has run: cell variables and free variables."""
        code = self.code
        cells = set(code.co_cellvars)
        first_free = len(self.slots) - len(code.co_freevars)
        own = (slot for slot in range(first_free) if self.slots[slot] in cells)
        return frozenset((*own, *range(first_free, len(self.slots))))

    @cached_property
    def start(self) -> int:
        """Index of the first instruction after the prologue (COPY_FREE_VARS, MAKE_CELL, …, RESUME)."""
        for instruction in self.instructions:
            if instruction.opname == "RESUME":
                return instruction.index + 1
        return 0

    def has_backedge(self, index: int) -> bool:
        """Return whether torch.compile would take a break at `index` for one in a loop body.

        The rule (measured on torch 2.13): from the instruction on, up to the first return in code order,
        some jump goes back before the instruction. In an inlined call torch asks it of every caller too. Torch leaves out
        the instruction itself: behind the test at the end of a `while` it makes a frame of each turn, inside of the one
        before, and some hundred turns exceed the recursion limit.

        Args:
            index: the instruction that can't be traced.

        Returns:
            Whether the frame must be skipped rather than split there.
        """
        instructions = self.instructions
        for i in range(index, len(instructions)):
            instruction = instructions[i]
            if instruction.opcode in RETURNS:
                return False
            target = instruction.target
            if target is not None and target < index:
                return True
        return False

    def in_loop(self, index: int) -> bool:
        """Return whether control flow can come back to the instruction within one run of the frame."""
        from_here = self._reachable(index)
        return index in from_here

    def _reachable(self, index: int) -> set[int]:
        """Indexes that can run after the instruction, exception edges included."""
        seen: set[int] = set()
        todo = list(self.successors(index))
        while todo:
            i = todo.pop()
            if i in seen:
                continue
            seen.add(i)
            todo.extend(self.successors(i))
        return seen

    def successors(self, index: int) -> Iterator[int]:
        """Yield the indexes that may run next: fall-through, jump target, exception handler."""
        instruction = self.instructions[index]
        if instruction.opcode not in ENDS:
            yield index + 1
        if instruction.target is not None:
            yield instruction.target
        if instruction.handler is not None:
            yield instruction.handler.target

    def handlers(self, index: int) -> tuple[Handler, ...]:
        """Return the handlers an exception raised at `index` meets, innermost first.

        The table is flat: what encloses a block is what covers the code of its handler.
        """
        found: list[Handler] = []
        handler = self.instructions[index].handler
        while handler is not None and handler not in found:
            found.append(handler)
            handler = self.instructions[handler.target].handler
        return tuple(found)


def _varints(table: bytes) -> Iterator[int]:
    value = 0
    for byte in table:
        value = (value << 6) | (byte & 63)
        if not byte & 64:
            yield value
            value = 0


def _exception_entries(code: CodeType, by_offset: dict[int, int], end: int) -> tuple[ExceptionEntry, ...]:
    entries = []
    numbers = _varints(code.co_exceptiontable)
    for start, length, target, depth_lasti in zip(numbers, numbers, numbers, numbers):
        stop = 2 * (start + length)
        handler = Handler(by_offset[2 * target], depth_lasti >> 1, bool(depth_lasti & 1))
        entries.append(ExceptionEntry(by_offset[2 * start], by_offset.get(stop, end), handler))
    return tuple(entries)


def _split(raw: bytes) -> tuple[list[tuple[int, int, int]], dict[int, int]]:
    """Split code bytes into (offset, opcode, arg) rows, and map offsets to row numbers."""
    rows: list[tuple[int, int, int]] = []
    by_offset: dict[int, int] = {}
    extended = offset = 0
    size = len(raw)
    caches = CACHES
    while offset < size:
        op = raw[offset]
        by_offset[offset] = len(rows)
        if op == EXTENDED_ARG:
            extended = (extended | raw[offset + 1]) << 8
            offset += 2
            continue
        rows.append((offset, op, extended | raw[offset + 1]))
        extended = 0
        offset += 2 + 2 * caches[op]
    return rows, by_offset


def _decode(code: CodeType) -> DecodedCode:
    rows, by_offset = _split(code.co_code)
    entries = _exception_entries(code, by_offset, len(rows))
    handlers: list[Handler | None] = [None] * len(rows)
    leads_to: set[int] = set()
    for entry in entries:
        handlers[entry.start : entry.stop] = [entry.handler] * (entry.stop - entry.start)
        leads_to.add(entry.handler.target)
    targets: list[int | None] = [None] * len(rows)
    for index, (offset, op, arg) in enumerate(rows):
        if op in JUMPS:
            distance = -arg if op in BACKWARD else arg
            target = by_offset[offset + 2 + 2 * (CACHES[op] + distance)]
            targets[index] = target
            leads_to.add(target)
    positions: list[Positions] = list(code.co_positions())
    slots = slot_names(code)
    instructions: list[Instruction] = []
    kwnames: tuple[str, ...] = ()
    for index, (offset, op, arg) in enumerate(rows):
        target_index = targets[index]
        argval: object
        resolver = RESOLVERS[op]
        if target_index is not None:
            argval = target_index
        elif resolver is not None:
            argval = resolver(arg, code, slots)
        elif op in HAS_ARG:
            argval = arg
        else:
            arg, argval = 0, None
        names: tuple[str, ...] = ()
        if op in _CALLS:
            names = kwnames
            if OPNAME[op] == "CALL":
                kwnames = ()
        elif op == _KW_NAMES:
            kwnames = argval  # type: ignore[assignment]
        unit = offset >> 1
        instructions.append(
            Instruction(
                index,
                offset,
                op,
                OPNAME[op],
                arg,
                argval,
                bool(arg & FLAG_MASK[op]),
                names,
                target_index,
                handlers[index],
                index in leads_to,
                positions[unit] if unit < len(positions) else NO_POSITIONS,
            )
        )
    return DecodedCode(code, tuple(instructions), by_offset, entries)


_decoded: ByCode[DecodedCode] = ByCode()


def decode(code: CodeType) -> DecodedCode:
    """Return the instructions of a code object, decoded once per object.

    Args:
        code: any code object; its specialised and instrumented instructions are read as their base forms.

    Returns:
        The decoded form; the same object for the same code object.

    >>> code = compile("a < b", "file", "eval")
    >>> [i.argval for i in decode(code) if i.opname in ("LOAD_NAME", "COMPARE_OP")]
    ['a', 'b', '<']
    """
    decoded = _decoded.get(code)
    if decoded is None:
        decoded = _decode(code)
        _decoded.set(code, decoded)
    return decoded
