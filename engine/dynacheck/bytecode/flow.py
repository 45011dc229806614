"""What control flow says about a place in the code: stack depth, exceptions being handled, blocks."""

import weakref
from collections.abc import Callable
from dis import stack_effect
from enum import StrEnum
from typing import Any, Final, NamedTuple

from dynacheck.bytecode.decode import DecodedCode
from dynacheck.bytecode.instruction import Handler, Instruction
from dynacheck.bytecode.operands import ENDS, HAS_ARG, OPMAP
from dynacheck.versions import PY313

_PRECALL: Final[int] = OPMAP.get("PRECALL", -1)
_CALL: Final[int] = OPMAP["CALL"]
_RETURN_GENERATOR: Final[int] = OPMAP["RETURN_GENERATOR"]
_PUSH_EXC_INFO: Final[int] = OPMAP["PUSH_EXC_INFO"]
_POP_EXCEPT: Final[int] = OPMAP["POP_EXCEPT"]
_CATCHING: Final = frozenset(("CHECK_EXC_MATCH", "CHECK_EG_MATCH", "POP_EXCEPT"))
UNREACHED: Final[int] = -1


class Flow(NamedTuple):
    """Facts about every instruction, by index; `UNREACHED` where control never comes."""

    depths: tuple[int, ...]
    """Number of stack values before the instruction."""
    handling: tuple[int, ...]
    """Number of exceptions being handled: `except`, `finally` and `with` handlers the instruction is in."""
    offsets: tuple[tuple[int, ...], ...]
    """Stack positions of saved instruction offsets, which a handler may re-raise with (`lasti`): no objects on 3.14."""


def effect(instruction: Instruction, jump: bool) -> int:
    """Return by how much an instruction changes the stack depth, on its jump or its fall-through."""
    op, arg = instruction.opcode, instruction.arg
    if op == _PRECALL:
        return 0
    if op == _CALL:
        return -1 - arg
    if op == _RETURN_GENERATOR:
        return 1
    return stack_effect(op, arg if op in HAS_ARG else None, jump=jump)


def flow(decoded: DecodedCode) -> Flow:
    """Return the flow facts of a code object, computed once.

    >>> from dynacheck.bytecode.decode import decode
    >>> code = compile("a + b", "file", "eval")
    >>> decoded = decode(code)
    >>> [flow(decoded).depths[i.index] for i in decoded if i.opname == "BINARY_OP"]
    [2]
    """
    found = _flows.get(decoded)
    if found is None:
        found = _flows[decoded] = _flow(decoded)
    return found


_STORED: Final[dict[str, Callable[[Any], tuple[object, ...]]]] = {
    "STORE_FAST": lambda name: (name,),
    "STORE_FAST_LOAD_FAST": lambda names: names[:1],
    "STORE_FAST_STORE_FAST": lambda names: names,
}
"""Names of the variables that an instruction stores, by its operand."""


class Comprehension(NamedTuple):
    """A comprehension that is part of its frame's code (PEP 709), up to where its loop has ended."""

    start: int
    """Index of the first instruction, which sets a variable aside; the iterator is on the stack."""
    stop: int
    """Index of the first instruction behind it: what was set aside is on the stack, and the result above."""
    aside: tuple[str, ...]
    """Names of the variables that are set aside."""
    stored: frozenset[object]
    """Names of the variables that it stores."""


def comprehension(decoded: DecodedCode, start: int) -> Comprehension | None:
    """Return the comprehension that begins with an instruction, or None if none does, or one that makes cells.

    Args:
        decoded: the code.
        start: the index of the instruction.
    """
    instructions = decoded.instructions
    index = start
    while instructions[index].opname == "LOAD_FAST_AND_CLEAR":
        index += 1
    aside = tuple(str(i.argval) for i in instructions[start:index])
    while instructions[index].opname in ("SWAP", "BUILD_LIST", "BUILD_SET", "BUILD_MAP"):
        index += 1
    loop = instructions[index]
    if not aside or loop.opname != "FOR_ITER" or loop.target is None:
        return None
    stop = loop.target + (2 if PY313 else 1)
    inside = instructions[start:stop]
    if any(i.opname == "MAKE_CELL" for i in inside):
        return None
    stored = (_STORED[i.opname](i.argval) for i in inside if i.opname in _STORED)
    return Comprehension(start, stop, aside, frozenset(name for names in stored for name in names))


def _flow(decoded: DecodedCode) -> Flow:
    instructions = decoded.instructions
    depths = [UNREACHED] * len(instructions)
    handling = [UNREACHED] * len(instructions)
    saved: list[tuple[int, ...]] = [()] * len(instructions)
    todo: list[tuple[int, int, int, tuple[int, ...]]] = [(0, 0, 0, ())]
    while todo:
        index, depth, handled, offsets = todo.pop()
        while depths[index] == UNREACHED:
            offsets = tuple(position for position in offsets if position < depth)
            depths[index], handling[index], saved[index] = depth, handled, offsets
            instruction = instructions[index]
            op = instruction.opcode
            handler = instruction.handler
            if handler is not None:
                kept = tuple(position for position in offsets if position < handler.depth)
                kept += (handler.depth,) * handler.lasti
                todo.append((handler.target, handler.depth + handler.lasti + 1, handled, kept))
            if op == _PUSH_EXC_INFO:
                handled += 1
            elif op == _POP_EXCEPT:
                handled -= 1
            if instruction.target is not None:
                todo.append((instruction.target, depth + effect(instruction, True), handled, offsets))
            if op in ENDS:
                break
            depth += effect(instruction, False)
            index += 1
    return Flow(tuple(depths), tuple(handling), tuple(saved))


_flows: weakref.WeakKeyDictionary[DecodedCode, Flow] = weakref.WeakKeyDictionary()


class BlockKind(StrEnum):
    """What put an exception handler there."""

    WITH = "with"
    ASYNC_WITH = "async with"
    EXCEPT = "except"
    """A `try` whose handler may end the exception: `except`, or a `finally` that returns or breaks."""
    FINALLY = "finally"
    CLEANUP = "cleanup"
    """Restores state and re-raises: inside a handler, around a comprehension or a generator's body."""


class Block(NamedTuple):
    """One block that an instruction is in."""

    kind: BlockKind
    handler: Handler

    @property
    def exit_position(self) -> int:
        """For `with`: the stack position (0 is the bottom) of the bound `__exit__`."""
        return self.handler.depth - EXIT_WIDTH


EXIT_WIDTH: Final[int] = 2 if "LOAD_SPECIAL" in OPMAP else 1
"""Stack values that the exit of a `with` block takes (3.14: the function and its self)."""


def block_kind(decoded: DecodedCode, handler: Handler) -> BlockKind:
    """Return what kind of block a handler belongs to."""
    instructions = decoded.instructions
    first = handler.target
    if instructions[first].opcode != _PUSH_EXC_INFO:
        return BlockKind.CLEANUP
    opname = instructions[first + 1].opname
    if opname == "WITH_EXCEPT_START":
        awaits = instructions[first + 2].opname == "GET_AWAITABLE"
        return BlockKind.ASYNC_WITH if awaits else BlockKind.WITH
    if opname == "POP_TOP" or _catches(decoded, first):
        return BlockKind.EXCEPT
    return BlockKind.FINALLY


def _catches(decoded: DecodedCode, first: int) -> bool:
    """Whether normal control flow from a handler's start meets a match of its exception, or its end."""
    level = flow(decoded).handling
    inside = level[first] + 1
    seen: set[int] = set()
    todo = [first + 1]
    while todo:
        index = todo.pop()
        if index in seen or level[index] < inside:
            continue
        seen.add(index)
        instruction = decoded[index]
        if level[index] == inside and instruction.opname in _CATCHING:
            return True
        if instruction.target is not None:
            todo.append(instruction.target)
        if instruction.opcode not in ENDS:
            todo.append(index + 1)
    return False


def caught_globals(decoded: DecodedCode, handler: Handler) -> list[str] | None:
    """Return the globals that name all that the `except` clauses of a handler catch.

    Args:
        decoded: the code.
        handler: the handler of a `try`.

    Returns: their names; None where a clause has anything else.
    """
    names: list[str] = []
    first = handler.target + 1
    while decoded[first].opname == "LOAD_GLOBAL" and decoded[first + 1].opname == "CHECK_EXC_MATCH":
        names.append(str(decoded[first].argval))
        otherwise = decoded[first + 2].target
        if otherwise is None:
            return None
        first = otherwise
    return names if decoded[first].opname == "RERAISE" else None


def blocks(decoded: DecodedCode, index: int) -> tuple[Block, ...]:
    """Return the blocks an instruction is in, outermost first.

    Inside a handler the handler's own clean-up is listed too; ask `flow(decoded).handling[index]` for whether
    an exception is being handled.

    Args:
        decoded: the code.
        index: the instruction.

    Returns:
        The blocks whose handlers an exception raised there meets.

    >>> from dynacheck.bytecode.decode import decode
    >>> def f(lock, x):
    ...     try:
    ...         with lock:
    ...             return -x
    ...     except KeyError:
    ...         pass
    >>> decoded = decode(f.__code__)
    >>> [str(b.kind) for i in decoded if i.opname == "UNARY_NEGATIVE" for b in blocks(decoded, i.index)]
    ['except', 'with']
    """
    instruction = decoded[index]
    found: list[Block] = []
    depth: int | None = None
    for handler in decoded.handlers(instruction.index):
        # a handler runs on more stack than its block keeps: what keeps more is the handler's clean-up
        if depth is not None and handler.depth > depth:
            continue
        kind = block_kind(decoded, handler)
        found.append(Block(kind, handler))
        depth = handler.depth if kind is not BlockKind.CLEANUP else depth
    found.reverse()
    return tuple(found)


def assertion(decoded: DecodedCode, jump: Instruction) -> tuple[bool, str | None]:
    """Whether a jump is that of an `assert`, and the text it fails with if that is known before it fails."""
    after = [i for i in decoded.instructions[jump.index + 1 : jump.index + 6] if i.opname != "PRECALL"]
    if not after or not (
        after[0].opname == "LOAD_ASSERTION_ERROR"
        or (after[0].opname == "LOAD_COMMON_CONSTANT" and after[0].argval is AssertionError)
    ):
        return False, None
    names = [i.opname for i in after]
    if names[1] == "RAISE_VARARGS":
        return True, "assertion error"
    text = after[1].argval
    known = names[1:4] == ["LOAD_CONST", "CALL", "RAISE_VARARGS"]
    return True, text if known and isinstance(text, str) else None
