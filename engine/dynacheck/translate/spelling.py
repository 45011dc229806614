"""Values in the user's words where a path of the engine's would show: stack slots of resume functions,
closure cells."""

from __future__ import annotations

import dis
import linecache
import re
from types import CodeType, FunctionType

from dynacheck.bytecode.decode import decode
from dynacheck.bytecode.instruction import Instruction
from dynacheck.guards import Failure
from dynacheck.places import is_library
from dynacheck.sources import (
    ABSENT,
    CAttr,
    DictAttr,
    FrameView,
    Item,
    Key,
    Node,
    instance_dict,
    type_lookup,
)
from dynacheck.translate.resume import origin

_SLOT = re.compile(r"___stack(\d+)")
_LEAVES_NOTHING = (
    "STORE_",
    "DELETE_",
    "POP_",
    "JUMP",
    "NOP",
    "RESUME",
    "PRECALL",
    "KW_NAMES",
    "SWAP",
    "PUSH_NULL",
)
_STORES = ("STORE_FAST", "STORE_DEREF", "STORE_NAME", "STORE_GLOBAL")


def spelled(failure: Failure, frame: FrameView) -> str:
    """The value that a failed guard is about, as the user spells it.

    Args:
        failure: the guard.
        frame: the frame that it failed on.
    """
    path = failure.user_path
    if "___stack" in path:
        path = in_words(path, frame.func.__code__)
        if path.endswith(".__self__"):  # a method is on the stack: what it is a method of
            path = path.removesuffix(".__self__").rpartition(".")[0] or path
    for node in failure.installed.nodes:
        if ".__closure__[" in path:
            path = _free_variable(path, node, frame)
        if "['" in path:
            path = _answered(path, node, frame)
    return path


def in_words(text: str, code: CodeType) -> str:
    """A message about a frame of `code`, with the user's words for what was on its stack at a break."""
    return _SLOT.sub(lambda match: _slot(code, int(match[1])), text) if "___stack" in text else text


def _slot(code: CodeType, slot: int) -> str:
    """What the user calls a value that was on the stack at a break: the name it is stored under, or its
    expression."""
    came = origin(code)
    original = None if came is None else came.code
    if came is None or original is None:
        return "a value on the stack"
    if slot >= len(came.stack):
        return "a value on the stack"
    position = came.stack[slot]
    instructions = decode(original).instructions
    after = instructions[came.resumed_at]
    if position == came.depth - 1 and after.opname in _STORES:
        return str(after.argval)
    producer = _producer(instructions, came.resumed_at, position, came.depth)
    return (producer and _expression(original, producer)) or "a value on the stack"


def _producer(
    instructions: tuple[Instruction, ...], end: int, position: int, depth: int
) -> Instruction | None:
    """The instruction that left the value at a stack position, on the straight way to `end`."""
    for inst in reversed(instructions[:end]):
        arg = inst.arg if inst.opcode >= dis.HAVE_ARGUMENT else None
        try:
            before = depth - dis.stack_effect(inst.opcode, arg, jump=False)
        except ValueError:
            return None
        if depth == position + 1 and not inst.opname.startswith(_LEAVES_NOTHING):
            return inst
        depth = before
    return None


def _expression(code: CodeType, inst: Instruction) -> str:
    """The source text of the expression that an instruction ends, if it is on one line."""
    line, end_line, start, end = inst.positions
    if line is None or line != end_line or start is None or end is None:
        return ""
    text = linecache.getline(code.co_filename, line).encode()[start:end].decode(errors="replace")
    return text if len(text) <= 60 else text[:57] + "..."


def _answered(path: str, node: Node, frame: FrameView) -> str:
    """`cfg._c['gain']` as `cfg.gain`, where `__getattr__` of `cfg` looks in `_c` for what `cfg` itself hasn't."""
    step: Node | None = node
    while step is not None and step.parent is not None:
        kept, owner = step.parent, step.parent.parent
        key = step.accessor.key if isinstance(step.accessor, Key) else None
        if type(key) is str and isinstance(kept.accessor, DictAttr) and owner is not None:
            value = owner.fetch(frame)
            asked = type_lookup(type(value), "__getattr__")
            own = type_lookup(type(value), key) is not ABSENT or key in (instance_dict(value) or ())
            if isinstance(asked, FunctionType) and not is_library(asked.__code__.co_filename) and not own:
                path = path.replace(step.user_path, f"{owner.user_path}.{key}")
        step = kept
    return path


def _free_variable(path: str, node: Node, frame: FrameView) -> str:
    """`cb.__closure__[1]` as `shift of cb`."""
    step: Node | None = node
    while step is not None and step.parent is not None:
        holder = step.parent
        if (
            isinstance(step.accessor, Item)
            and holder.accessor == CAttr("__closure__")
            and holder.parent is not None
        ):
            function = holder.parent.fetch(frame)
            names = () if function is ABSENT else function.__code__.co_freevars
            if step.accessor.index < len(names):
                start = f"{holder.parent.user_path}.__closure__[{step.accessor.index}]"
                owner = holder.parent.user_path.rpartition(".")[2]
                if not owner.isidentifier():
                    owner = function.__name__
                return f"{path.replace(start, names[step.accessor.index])} of {owner}"
        step = holder
    return path
