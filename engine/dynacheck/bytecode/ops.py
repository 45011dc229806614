"""What the builder appends and the assembler reads: operations with symbolic slots, labels and handlers."""

from typing import NamedTuple, TypeAlias

from dynacheck.bytecode.instruction import Positions


class Local(str):
    """The name of a local slot, as an operand; its number is known when the code is assembled."""

    __slots__ = ()


class Cell(str):
    """The name of a cell or free variable, as an operand."""

    __slots__ = ()


class Label:
    """A place in the code being built. A jump to a label that is already placed goes backward."""

    __slots__ = ("position",)

    def __init__(self) -> None:
        self.position: int | None = None
        """Index of the operation it stands before; None until placed."""


class Cover(NamedTuple):
    """The handler of an operation: where an exception goes and what is kept of the stack."""

    target: Label
    depth: int
    lasti: bool


Operand: TypeAlias = "int | Local | Cell | Label | tuple[Local | Cell, Local | Cell]"


class Op:
    """One operation: an instruction whose slots, target and handler are still symbolic."""

    __slots__ = ("arg", "cover", "opcode", "origin", "positions")

    def __init__(
        self,
        opcode: int,
        arg: Operand,
        positions: Positions,
        cover: Cover | None,
        origin: int | None = None,
    ) -> None:
        self.opcode = opcode
        self.arg = arg
        self.positions = positions
        self.cover = cover
        self.origin = origin
        """Index of the instruction it was copied from."""
