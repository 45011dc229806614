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
    be called without arguments; all are where `locals()` and its like may be.
    """

    __slots__ = ("_cells", "_live", "_names", "_touched")

    def __init__(self, decoded: DecodedCode) -> None:
        self._names = decoded.slots
        self._cells = decoded.cell_slots
        self._live, self._touched = _solve(decoded)

    def _listed(self, mask: int, cells: bool) -> tuple[str, ...]:
        names = enumerate(self._names)
        return tuple(name for slot, name in names if mask >> slot & 1 and (slot in self._cells) is cells)

    def locals(self, index: int) -> tuple[str, ...]:
        """Return the names of live locals (not cells) before an instruction, in slot order."""
        return self._listed(self._live[index], False)

    def cells(self, index: int) -> tuple[str, ...]:
        """Return the names of live cells and free variables before an instruction, in slot order."""
        return self._listed(self._live[index], True)

    def touched(self, index: int) -> tuple[str, ...]:
        """Return the names of locals that are read, stored or deleted from an instruction on, in slot order.

        What such a local holds, live or not, dies when it is stored or deleted: to keep lifetimes, a frame's
        continuation has to own it.
        """
        return self._listed(self._touched[index], False)


def reads_first_argument(decoded: DecodedCode) -> bool:
    """Return whether calls in the code may read slot 0 unseen: `super()` without arguments does."""
    if "__class__" not in decoded.code.co_freevars or not decoded.nargs:
        return False
    return any(i.opname == "LOAD_GLOBAL" and i.argval == "super" for i in decoded)


LOOKERS: Final = frozenset({"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe"})
"""Functions that look at all locals of the frame that calls them."""


def looks_at_locals(decoded: DecodedCode) -> bool:
    """Return whether calls in the code may look at all locals."""
    return not LOOKERS.isdisjoint(decoded.code.co_names)


def looks_again(decoded: DecodedCode, index: int) -> bool:
    """Return whether the instructions from an index on name a function that looks at all locals."""
    return any(i.argval in LOOKERS for i in decoded.instructions[index:] if i.opname.startswith("LOAD_"))


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


def _solve(decoded: DecodedCode) -> tuple[list[int], list[int]]:
    """Return the masks of live and of touched slots; unreached instructions have none."""
    cells = decoded.cell_slots
    unseen = 0
    if reads_first_argument(decoded):
        unseen = 1 | 1 << len(decoded.slots) - 1 - decoded.slots[::-1].index("__class__")
    if looks_at_locals(decoded):
        unseen = (1 << len(decoded.slots)) - 1
    use, keep, touch = [], [], []
    for instruction in decoded:
        uses, kills = _uses_and_kills(instruction, cells)
        if instruction.opname.startswith("CALL"):
            uses |= unseen
        use.append(uses)
        keep.append(~kills)
        touch.append(uses | kills)
    return _backward(decoded, use, keep), _backward(decoded, touch, [-1] * len(touch))


def _backward(decoded: DecodedCode, use: list[int], keep: list[int]) -> list[int]:
    """Solve before = use | after & keep over all paths, exceptions included (those happen before a store)."""
    instructions = decoded.instructions
    count = len(instructions)
    masks = [0] * count
    changed = True
    while changed:
        changed = False
        for index in range(count - 1, -1, -1):
            instruction = instructions[index]
            out = 0
            if instruction.opcode not in ENDS and index + 1 < count:
                out = masks[index + 1]
            if instruction.target is not None:
                out |= masks[instruction.target]
            before = use[index] | out & keep[index]
            if instruction.handler is not None:
                before |= masks[instruction.handler.target]
            if before != masks[index]:
                masks[index] = before
                changed = True
    return masks


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
