"""Copies of original instructions into a builder, with their handlers, positions and jumps."""

from collections.abc import Collection
from types import CodeType
from typing import Final

from dynacheck.bytecode.assemble import Shape, assemble_shape
from dynacheck.bytecode.build import Builder
from dynacheck.bytecode.decode import DecodedCode, decode
from dynacheck.bytecode.instruction import Instruction
from dynacheck.bytecode.operands import CELLS, LOCALS, OPMAP, PAIRS
from dynacheck.bytecode.ops import Cell, Cover, Label, Local, Op, Operand

_PLAIN: Final[dict[int, tuple[int, ...]]] = {
    OPMAP[name]: tuple(OPMAP[part] for part in parts)
    for name, parts in {
        "LOAD_FAST_BORROW": ("LOAD_FAST",),
        "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
        "LOAD_FAST_BORROW_LOAD_FAST_BORROW": ("LOAD_FAST", "LOAD_FAST"),
        "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
        "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
    }.items()
    if name in OPMAP
}
"""What to copy instead, where slots get other numbers."""


class Copier:
    """Appends instructions of one decoded code object to a builder; labels are shared between its calls.

    The builder's template must be that code object, or have its names and constants at the same indexes.

    Args:
        builder: where to append.
        decoded: what to copy from.
        verbatim: keep fused pairs and borrowing loads: only where slots keep their numbers and what is loaded
            stays where it was.
    """

    def __init__(self, builder: Builder, decoded: DecodedCode, *, verbatim: bool = False) -> None:
        self.builder = builder
        self.decoded = decoded
        self.verbatim = verbatim
        self.labels: dict[int, Label] = {}
        self._covers: dict[tuple[int, int, bool], Cover] = {}

    def label(self, index: int) -> Label:
        """Return the label of an original instruction; placed when that instruction is copied."""
        label = self.labels.get(index)
        if label is None:
            label = self.labels[index] = Label()
        return label

    def cover(self, index: int) -> Cover | None:
        """Return the handler that covers an original instruction."""
        handler = self.decoded[index].handler
        if handler is None:
            return None
        cover = self._covers.get(handler)
        if cover is None:
            cover = self._covers[handler] = Cover(self.label(handler.target), handler.depth, handler.lasti)
        return cover

    def operand(self, instruction: Instruction) -> Operand:
        """Return the symbolic operand of an instruction."""
        op, arg = instruction.opcode, instruction.arg
        if instruction.target is not None:
            return self.label(instruction.target)
        if op in LOCALS or op in CELLS:
            return self._slot(arg)
        if op in PAIRS:
            return self._slot(arg >> 4), self._slot(arg & 15)
        return arg

    def _slot(self, slot: int) -> "Local | Cell":
        name = self.decoded.slots[slot]
        return Cell(name) if slot in self.decoded.cell_slots else Local(name)

    def copy(self, instruction: Instruction, *, handler: bool = True) -> None:
        """Append one instruction.

        Args:
            instruction: of the decoded code object.
            handler: keep its exception handler; otherwise the builder's current one covers it.
        """
        builder = self.builder
        index = instruction.index
        if instruction.is_jump_target or index in self.labels:
            builder.place(self.label(index))
        cover = self.cover(index) if handler else builder.cover
        positions, opcode = instruction.positions, instruction.opcode
        operand = self.operand(instruction)
        if not self.verbatim and opcode in _PLAIN:
            operands = operand if isinstance(operand, tuple) else (operand,)
            for plain, part in zip(_PLAIN[opcode], operands):
                builder.ops.append(Op(plain, part, positions, cover, index))
        else:
            builder.ops.append(Op(opcode, operand, positions, cover, index))

    def copy_range(self, start: int, stop: int, *, only: Collection[int] | None = None) -> None:
        """Append instructions start ≤ i < stop (of `only`, if given) in order, with their handlers."""
        for index in range(start, stop):
            if only is None or index in only:
                self.copy(self.decoded[index])


def rebuild(code: CodeType) -> CodeType:
    """Return an equal code object, taken apart and put together again.

    >>> def add(a, b=1):
    ...     return a + b
    >>> rebuild(add.__code__) == add.__code__
    True
    """
    builder = Builder(code)
    copier = Copier(builder, decode(code), verbatim=True)
    copier.copy_range(0, len(copier.decoded))
    return assemble_shape(
        builder.ops,
        Shape.of(code),
        code,
        names=builder.names,
        consts=builder.consts,
        stacksize=code.co_stacksize,
    )
