"""Which locals may still be read: before every instruction of a code object."""

from types import CodeType
from typing import Final

from dynacheck.bytecode.by_code import ByCode
from dynacheck.bytecode.decode import DecodedCode, decode
from dynacheck.bytecode.instruction import Instruction
from dynacheck.bytecode.operands import CELLS, ENDS, LOCALS, OPMAP, PAIRS

_STORES: Final[frozenset[int]] = frozenset(
    OPMAP[name] for name in ("STORE_FAST", "STORE_FAST_MAYBE_NULL") if name in OPMAP and OPMAP[name] < 256
)


class Liveness:
    """The live slots before each instruction of a code object, as bit masks.

    A slot is live if some path, exception handlers included, reads it, deletes it or captures its cell before
    it is stored. Cells are never killed by a store: others may hold them. Slot 0 is live where `super()` may
    be called without arguments.
    """

    __slots__ = ("_cells", "_masks", "_names")

    def __init__(self, decoded: DecodedCode) -> None:
        self._names = decoded.slots
        self._cells = decoded.cell_slots
        self._masks = _solve(decoded)

    def slots(self, index: int) -> tuple[int, ...]:
        """Return the live slots before an instruction, ascending."""
        mask = self._masks[index]
        return tuple(slot for slot in range(len(self._names)) if mask >> slot & 1)

    def locals(self, index: int) -> tuple[str, ...]:
        """Return the names of live locals (not cells) before an instruction, in slot order."""
        return tuple(self._names[slot] for slot in self.slots(index) if slot not in self._cells)

    def cells(self, index: int) -> tuple[str, ...]:
        """Return the names of live cells and free variables before an instruction, in slot order."""
        return tuple(self._names[slot] for slot in self.slots(index) if slot in self._cells)


def reads_first_argument(decoded: DecodedCode) -> bool:
    """Return whether calls in the code may read slot 0 unseen: `super()` without arguments does."""
    if "__class__" not in decoded.code.co_freevars or not decoded.nargs:
        return False
    return any(i.opname == "LOAD_GLOBAL" and i.argval == "super" for i in decoded)


def _uses_and_kills(instruction: Instruction, cells: frozenset[int]) -> tuple[int, int]:
    """Return the masks of slots that an instruction needs, and that it overwrites without need of them."""
    op, arg = instruction.opcode, instruction.arg
    if op in _STORES:
        bit = 1 << arg
        return (bit, 0) if arg in cells else (0, bit)
    if op in LOCALS or op in CELLS:
        return 1 << arg, 0
    if op in PAIRS:
        first, second = 1 << (arg >> 4), 1 << (arg & 15)
        name = instruction.opname
        if name == "STORE_FAST_LOAD_FAST":
            return (0 if first == second else second), first
        if name == "STORE_FAST_STORE_FAST":
            return 0, first | second
        return first | second, 0
    return 0, 0


def _solve(decoded: DecodedCode) -> list[int]:
    """Solve the backward data-flow equations; unreached instructions have none live."""
    instructions = decoded.instructions
    cells = decoded.cell_slots
    count = len(instructions)
    use, keep = [0] * count, [-1] * count
    unseen = 0
    if reads_first_argument(decoded):
        unseen = 1 | 1 << len(decoded.slots) - 1 - decoded.slots[::-1].index("__class__")
    for instruction in instructions:
        uses, kills = _uses_and_kills(instruction, cells)
        if instruction.opname.startswith("CALL"):
            uses |= unseen
        use[instruction.index], keep[instruction.index] = uses, ~kills
    live = [0] * count
    changed = True
    while changed:
        changed = False
        for index in range(count - 1, -1, -1):
            instruction = instructions[index]
            out = 0
            if instruction.opcode not in ENDS and index + 1 < count:
                out = live[index + 1]
            if instruction.target is not None:
                out |= live[instruction.target]
            before = use[index] | out & keep[index]
            if instruction.handler is not None:
                before |= live[instruction.handler.target]
            if before != live[index]:
                live[index] = before
                changed = True
    return live


_solved: ByCode[Liveness] = ByCode()


def liveness(code: CodeType) -> Liveness:
    """Return the liveness of a code object's locals, computed once per object.

    >>> def f(a, b):
    ...     c = a
    ...     return c
    >>> live = liveness(f.__code__)
    >>> live.locals(0), live.locals(len(decode(f.__code__)) - 1)
    (('a',), ())
    """
    found = _solved.get(code)
    if found is None:
        found = Liveness(decode(code))
        _solved.set(code, found)
    return found
