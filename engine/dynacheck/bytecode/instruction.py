"""One decoded instruction, with its operand resolved and version details normalised."""

from typing import Final, NamedTuple, TypeAlias

Positions: TypeAlias = tuple[int | None, int | None, int | None, int | None]
"""(line, end line, column, end column), as `CodeType.co_positions` yields them."""

NO_POSITIONS: Final[Positions] = (None, None, None, None)


class Handler(NamedTuple):
    """Where an exception raised by an instruction goes (one exception-table entry)."""

    target: int
    """Index of the handler's first instruction."""
    depth: int
    """Number of stack values kept; the rest is popped."""
    lasti: bool
    """Whether the offset of the raising instruction is pushed before the exception."""


class Instruction:
    """One instruction of a code object, un-specialised. Immutable; compared and hashed by identity.

    `argval` is, by opcode:

    * constants, names, locals, cells: the constant, the name;
    * fused local pairs (3.13+ `LOAD_FAST_LOAD_FAST`, …): a tuple of two names;
    * jumps: the index of the target (as `target`);
    * `COMPARE_OP`, `BINARY_OP`, `IS_OP`, `CONTAINS_OP`: the operator's symbol (`"<"`, `"+="`, `"is not"`);
    * `FORMAT_VALUE` (to 3.12): (conversion, has format spec); `CONVERT_VALUE` (3.13+): conversion; a
      conversion is `"s"`, `"r"`, `"a"` or None;
    * `CALL_INTRINSIC_1`, `CALL_INTRINSIC_2`, `LOAD_SPECIAL`: the name; `LOAD_COMMON_CONSTANT`: the object;
    * otherwise the same as `arg`.
    """

    __slots__ = (
        "arg",
        "argval",
        "flag",
        "handler",
        "index",
        "is_jump_target",
        "kwnames",
        "lineno",
        "offset",
        "opcode",
        "opname",
        "positions",
        "target",
    )

    index: Final[int]
    """Position in `DecodedCode.instructions`."""
    offset: Final[int]
    """Byte offset of the instruction itself (after its EXTENDED_ARG prefixes)."""
    opcode: Final[int]
    opname: Final[str]
    arg: Final[int]
    """The raw operand, EXTENDED_ARG folded in; 0 when there is none."""
    argval: Final[object]
    flag: Final[bool]
    """The operand's extra bit: LOAD_GLOBAL pushes NULL; LOAD_ATTR and LOAD_SUPER_ATTR load a method (3.12+);
    COMPARE_OP makes a bool (3.13+); CALL_FUNCTION_EX has keyword arguments."""
    kwnames: Final[tuple[str, ...]]
    """PRECALL and CALL to 3.12: the names that a KW_NAMES before it set."""
    target: Final[int | None]
    """Index of the jump target, for instructions that may jump."""
    handler: Final[Handler | None]
    """The innermost exception-table entry that covers the instruction."""
    is_jump_target: Final[bool]
    """Whether a jump or an exception-table entry leads here."""
    lineno: Final[int | None]
    positions: Final[Positions]

    def __init__(
        self,
        index: int,
        offset: int,
        opcode: int,
        opname: str,
        arg: int,
        argval: object,
        flag: bool,
        kwnames: tuple[str, ...],
        target: int | None,
        handler: Handler | None,
        is_jump_target: bool,
        positions: Positions,
    ) -> None:
        self.index = index
        self.offset = offset
        self.opcode = opcode
        self.opname = opname
        self.arg = arg
        self.argval = argval
        self.flag = flag
        self.kwnames = kwnames
        self.target = target
        self.handler = handler
        self.is_jump_target = is_jump_target
        self.lineno = positions[0]
        self.positions = positions

    def __repr__(self) -> str:
        detail = "" if self.argval is None else f" {self.argval!r}"
        return f"<{self.index} {self.opname}{detail} line {self.lineno}>"
