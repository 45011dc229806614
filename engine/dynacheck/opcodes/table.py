"""The opcode table: one handler per opcode and range of versions, and what a handler may do (`Machine`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from dynacheck.bytecode.decode import DecodedCode
from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.known import OPCODES
from dynacheck.variables.base import Rebuilder, Tracer, VariableTracker
from dynacheck.variables.cells import CellVariable

Version: TypeAlias = tuple[int, int]
FIRST: Version = (3, 11)
LAST: Version = (3, 14)


class Machine(Tracer, Protocol):
    """A frame being interpreted: what an opcode handler may do, beyond what every tracer may.

    Attributes:
        stack: trackers; `NULL` stands for CPython's NULL (an empty place under a callable).
        locals: bound local variables by name; an unbound one is missing.
        cells: the frame's cells by name, as far as they were made or read.
        kw_names: pending keyword names (KW_NAMES of 3.11 and 3.12).
        decoded: the instructions of the frame's code.
    """

    stack: list[VariableTracker]
    locals: dict[str, VariableTracker]
    cells: dict[str, CellVariable]
    kw_names: tuple[str, ...]
    decoded: DecodedCode

    def push(self, value: VariableTracker) -> None: ...
    def pop(self) -> VariableTracker: ...
    def popn(self, n: int) -> list[VariableTracker]:
        """The top n values, deepest first."""

    def jump(self, inst: Instruction) -> None:
        """Go on at the instruction's target."""

    def jump_to(self, index: int) -> None: ...
    def branch(self, inst: Instruction, condition: VariableTracker, when: bool, keep: bool = False) -> None:
        """Jump to the target when the condition's truth equals `when`; with `keep` the condition stays on the
        stack if it jumps (JUMP_IF_x_OR_POP). The condition is already popped. A truth that only the graph
        knows breaks here, with both sides as resume functions."""

    def return_value(self, value: VariableTracker) -> None:
        """The frame returns."""

    def yield_value(self, value: VariableTracker) -> None:
        """The generator frame is suspended with this value; when resumed, what was sent is on the stack."""

    def return_generator(self) -> None:
        """RETURN_GENERATOR: the frame's caller gets a generator tracker that owns this frame."""

    def sets_aside(self, inst: Instruction) -> None:
        """LOAD_FAST_AND_CLEAR: a comprehension that is part of the frame's code may begin here."""

    # names
    def load_global(self, name: str) -> VariableTracker: ...
    def store_global(self, name: str, value: VariableTracker | None) -> None: ...
    def cell(self, name: str) -> CellVariable:
        """The CellVariable of a cell or free variable."""

    def make_cell(self, name: str) -> None:
        """MAKE_CELL: the local of that name (if bound) moves into a new cell."""

    def builtin(self, name: str) -> VariableTracker:
        """The tracker of a builtin by name (LOAD_BUILD_CLASS, LOAD_ASSERTION_ERROR, ...)."""

    # exceptions
    @property
    def exc_info(self) -> list[VariableTracker]:
        """The exceptions that this frame is handling, innermost last."""

    # with blocks: remembered for breaks; WITH_EXCEPT_START and the normal exit call the exit that was pushed
    def enter_with(self, manager: VariableTracker) -> None:
        """BEFORE_WITH: pops nothing (the manager is already popped); pushes exit and the result of enter."""

    def special_method(self, owner: VariableTracker, name: str) -> VariableTracker:
        """LOAD_SPECIAL (3.14): `__enter__` or `__exit__` of a manager, bound. Entering remembers it."""

    # functions and imports
    def make_function(
        self,
        code: VariableTracker,
        defaults: VariableTracker | None,
        kwdefaults: VariableTracker | None,
        annotations: VariableTracker | None,
        closure: VariableTracker | None,
    ) -> VariableTracker: ...
    def string_items(self, value: VariableTracker) -> dict[str, VariableTracker]:
        """The items of a dict whose keys are strings."""

    def import_name(
        self, name: str, fromlist: VariableTracker, level: VariableTracker
    ) -> VariableTracker: ...
    def import_from(self, module: VariableTracker, name: str) -> VariableTracker: ...


class _Null(VariableTracker):
    """CPython's NULL on the value stack."""

    __slots__ = ()

    def reconstruct(self, to: Rebuilder) -> None:
        raise AssertionError("NULL is pushed by PUSH_NULL, not loaded")

    def __repr__(self) -> str:
        return "<NULL>"


NULL = _Null()

Handler: TypeAlias = Callable[[Any, Instruction], None]
LETTING_GO: Final = (
    "STORE_", "DELETE_", "RETURN_", "POP_TOP", "POP_EXCEPT", "POP_ITER", "END_FOR", "END_SEND", "BINARY_STORE",
)  # fmt: skip
"""What the opcodes that end a statement's hold on values begin with."""


@dataclass(frozen=True, slots=True)
class Row:
    """One registered handler.

    Args:
        name: opcode name.
        since: first version it serves.
        until: last version it serves.
        leaves: values the instruction leaves in the place of its operands when it is run natively after a
            graph break, or a function of the instruction that tells; None: no break can be taken at it.
        handler: the handler.
        lets_go: whether it may drop the last reference to a value.
    """

    name: str
    since: Version
    until: Version
    leaves: int | Callable[[Instruction], int | None] | None
    handler: Handler
    lets_go: bool

    def left_by(self, inst: Instruction) -> int | None:
        """How many values the instruction leaves; None when the frame can't be split at it."""
        return self.leaves(inst) if callable(self.leaves) else self.leaves


_rows: dict[str, list[Row]] = {}
UNSUPPORTED: dict[str, str] = {}
"""Opcodes no handler serves, each with the reason."""

MORE = frozenset({"CHECK_EG_MATCH"})
"""Opcodes with handlers that torch has none for: it breaks at them."""

_NAMES: frozenset[str] = frozenset().union(*OPCODES.values())


def opcode(
    *names: str,
    since: Version = FIRST,
    until: Version = LAST,
    leaves: int | Callable[[Instruction], int | None] | None = None,
) -> Callable[[Handler], Handler]:
    """Register a handler for opcodes of a range of versions.

    Args:
        *names: opcode names.
        since: first version.
        until: last version.
        leaves: how many values the instruction leaves when run natively; None if no break can be taken there.

    Raises:
        ValueError: no supported version has the opcode, or another handler serves it already.
    """

    def add(handler: Handler) -> Handler:
        for name in names:
            if name not in _NAMES:
                raise ValueError(f"{name} is no opcode of a supported version")
            rows = _rows.setdefault(name, [])
            for row in rows:
                if row.since <= until and since <= row.until:
                    raise ValueError(f"{name} has two handlers for {max(row.since, since)}")
            rows.append(Row(name, since, until, leaves, handler, name.startswith(LETTING_GO)))
        return handler

    return add


def unsupported(reason: str, *names: str) -> None:
    """Declare opcodes that no handler serves, in any version.

    Args:
        reason: why; completes "The instruction X isn't supported: ".
        *names: opcode names.

    Raises:
        ValueError: no supported version has the opcode.
    """
    for name in names:
        if name not in _NAMES:
            raise ValueError(f"{name} is no opcode of a supported version")
        UNSUPPORTED[name] = reason


def table(version: Version) -> dict[str, Row]:
    """The handlers of one version, by opcode name."""
    names = OPCODES[version]
    return {
        name: row
        for name, rows in _rows.items()
        for row in rows
        if name in names and row.since <= version <= row.until
    }
