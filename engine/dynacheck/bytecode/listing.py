"""A readable listing of code objects, for logs."""

from types import CodeType

from dynacheck.bytecode.decode import decode
from dynacheck.bytecode.instruction import Instruction
from dynacheck.bytecode.operands import CONSTS

_WIDEST_OPERAND = 60
_PLAIN = frozenset((int, float, complex, bool, str, bytes, type(None), type(Ellipsis)))


def _constant(value: object) -> str:
    """A constant's repr if that runs no user code, else its type."""
    if isinstance(value, CodeType):
        return f"<code {value.co_qualname}>"
    if type(value) is tuple:
        return "(" + ", ".join(map(_constant, value)) + ("," if len(value) == 1 else "") + ")"
    return repr(value) if type(value) in _PLAIN else f"<{type(value).__name__}>"


def _operand(instruction: Instruction) -> str:
    if instruction.target is not None:
        return f"to {instruction.target}"
    value = instruction.argval
    if value is None and instruction.opcode not in CONSTS:
        return ""
    if instruction.opcode in CONSTS:
        text = _constant(value)
    elif isinstance(value, tuple):
        text = ", ".join(map(str, value))
    else:
        text = str(value)
    if len(text) > _WIDEST_OPERAND:
        text = text[: _WIDEST_OPERAND - 1] + "…"
    notes = []
    if instruction.flag and instruction.opname == "LOAD_GLOBAL":
        notes.append("+ NULL")
    elif instruction.flag and instruction.opname in ("LOAD_ATTR", "LOAD_SUPER_ATTR"):
        notes.append("method")
    if instruction.kwnames and instruction.opname == "CALL":
        notes.append("names " + ", ".join(instruction.kwnames))
    return f"{text} ({'; '.join(notes)})" if notes else text


def listing(code: CodeType) -> str:
    """Return the instructions of a code object, one a line.

    A line has the source line where it changes, `>` at jump targets, the index, opcode, operand, and the
    handler that covers the instruction. Objects among the constants are shown by type only, so no user code
    runs.

    Args:
        code: the code object; code objects among its constants aren't listed.

    Returns:
        Lines of text.

    >>> print(listing(compile("x", "<file>", "eval")).splitlines()[0])
    <module> (<file>:1)
    """
    decoded = decode(code)
    lines = [f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"]
    line: int | None = None
    for instruction in decoded:
        shown = ""
        if instruction.lineno is not None and instruction.lineno != line:
            line = instruction.lineno
            shown = str(line)
        mark = ">" if instruction.is_jump_target else " "
        operand = _operand(instruction)
        text = f"{shown:>5} {mark}{instruction.index:>4} {instruction.opname:<22} {operand}"
        handler = instruction.handler
        if handler is not None:
            lasti = " lasti" if handler.lasti else ""
            text = f"{text:<60} ! {handler.target} keeps {handler.depth}{lasti}"
        lines.append(text.rstrip())
    return "\n".join(lines)
