"""Splits a function before an instruction: a prefix that calls the resume function, without any tracing."""

import dataclasses
import sys
from functools import lru_cache
from types import CodeType, FunctionType

import resume_cases
from dynacheck.bytecode.assemble import assemble
from dynacheck.bytecode.build import Builder
from dynacheck.bytecode.copying import Copier
from dynacheck.bytecode.decode import DecodedCode, decode
from dynacheck.bytecode.flow import effect, flow
from dynacheck.bytecode.liveness import liveness
from dynacheck.bytecode.operands import ENDS
from dynacheck.translate.resume import (
    ResumeLayout,
    call_resume,
    resume_code,
    spill_stack,
    why_not_resumable,
)
from resume_cases import LOG

CASES_FILE = resume_cases.__file__


@lru_cache(maxsize=64)
def stack_kinds(decoded: DecodedCode) -> list[list[bool | None] | None]:
    """Before each instruction, whether each stack entry is NULL; None: that depends on the run."""
    result: list[list[bool | None] | None] = [None] * len(decoded)
    todo: list[tuple[int, list[bool | None]]] = [(0, [])]
    while todo:
        index, stack = todo.pop()
        if result[index] is not None:
            continue
        result[index] = stack
        instruction = decoded[index]
        handler = instruction.handler
        if handler is not None:
            kept = [*stack, *[False] * handler.depth][: handler.depth]
            todo.append((handler.target, kept + [False] * (handler.lasti + 1)))
        if instruction.target is not None:
            todo.append((instruction.target, after(stack, instruction, True)))
        if instruction.opcode not in ENDS:
            todo.append((index + 1, after(stack, instruction, False)))
    return result


def after(stack, instruction, jump):
    name, arg = instruction.opname, instruction.arg
    change = effect(instruction, jump)
    pair = [False, True] if sys.version_info >= (3, 13) else [True, False]
    if name == "PUSH_NULL":
        return [*stack, True]
    if name == "LOAD_FAST_AND_CLEAR":
        return [*stack, None]
    if name == "SWAP":
        stack = list(stack)
        stack[-1], stack[-arg] = stack[-arg], stack[-1]
        return stack
    if name == "COPY":
        return [*stack, stack[-arg]]
    if name == "LOAD_GLOBAL" and instruction.flag:
        return [*stack, *pair]
    if is_method(instruction):
        return stack[: len(stack) + change - 2] + pair
    if name.startswith("CALL"):
        return [*stack[: len(stack) + change - 1], False]
    return stack[: len(stack) + change] if change < 0 else stack + [False] * change


def is_method(instruction):
    return instruction.opname == "LOAD_METHOD" or (
        instruction.opname in ("LOAD_ATTR", "LOAD_SUPER_ATTR") and instruction.flag
    )


@lru_cache(maxsize=64)
def bound_locals(decoded: DecodedCode):
    """(surely bound, maybe bound) local names before each instruction."""
    names = decoded.slots
    start = frozenset(decoded.argument_names)
    must: list[frozenset[str] | None] = [None] * len(decoded)
    may: list[frozenset[str]] = [frozenset()] * len(decoded)
    todo = [(0, start, start)]
    while todo:
        index, sure, maybe = todo.pop()
        old = must[index]
        new_sure = sure if old is None else old & sure
        new_maybe = may[index] | maybe
        if old == new_sure and may[index] == new_maybe:
            continue
        must[index], may[index] = new_sure, new_maybe
        sure, maybe = new_sure, new_maybe
        instruction = decoded[index]
        name = instruction.opname
        values = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        if instruction.handler is not None:
            todo.append((instruction.handler.target, sure, maybe))
        if name.startswith("STORE_FAST"):
            # what an inlined comprehension puts back may be NULL: the local was unbound before
            stored = values[:1] if name == "STORE_FAST_LOAD_FAST" else values
            kinds = stack_kinds(decoded)[index] or []
            for value, kind in zip(stored, reversed(kinds)):
                sure = sure | {value} if kind is False else sure - {value}
                maybe = maybe | {value}
        elif name in ("DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
            sure, maybe = sure - set(values), maybe - set(values)
        for after in decoded.successors(index):
            if instruction.handler is None or after != instruction.handler.target:
                todo.append((after, sure, maybe))
    return must, may


def layout_at(code: CodeType, index: int, *, lifetimes: bool = False) -> ResumeLayout | str:
    """The layout of a frame before an instruction, or why a static one can't be had.

    It has the live locals; with `lifetimes` also those that are dead but stored or deleted later.
    """
    decoded = decode(code)
    why = why_not_resumable(code, index)
    if why is not None:
        return why
    kinds = stack_kinds(decoded)[index]
    if None in kinds or decoded[index - 1].opname == "PRECALL":
        return "the stack depends on the run"
    nulls = tuple(position for position, null in enumerate(kinds) if null)
    must, may = bound_locals(decoded)
    names = liveness(code).touched(index) if lifetimes else liveness(code).locals(index)
    live = [name for name in names if name in may[index]]
    if any(name not in must[index] for name in live):
        return "a live local may be unbound"
    return ResumeLayout(flow(decoded).depths[index], tuple(live), nulls)


def copy_prefix(copier: Copier, index: int, at_split) -> None:
    """Copy what can run before an instruction; methods are loaded bound, pending names left out."""
    decoded, builder = copier.decoded, copier.builder
    kept: set[int] = set()
    todo = [decoded.start]
    while todo:
        at = todo.pop()
        if at not in kept:
            kept.add(at)
            if at != index:
                todo.extend(decoded.successors(at))
    for at in sorted(kept):
        instruction = decoded[at]
        if at == index:
            builder.place(copier.label(index))
            builder.at(instruction.positions)
            at_split()
        elif instruction.opname == "KW_NAMES" and at + 1 == index:
            builder.nop()
        elif is_method(instruction):
            if instruction.is_jump_target:
                builder.place(copier.label(at))
            builder.at(instruction.positions)
            builder.cover = copier.cover(at)
            if instruction.opname == "LOAD_SUPER_ATTR":
                builder.emit("LOAD_SUPER_ATTR", instruction.arg & ~1)
            else:
                builder.load_attr(instruction.argval)
            builder.prepare_call()
            builder.cover = None
        else:
            copier.copy(instruction)


def split(code: CodeType, index: int, layout: ResumeLayout, through=None) -> CodeType:
    """The code of a prefix that calls the resume function; `through` rewrites the code of that in turn."""
    resume = resume_code(code, index, layout)
    if through is not None:
        resume = dataclasses.replace(resume, code=through(resume.code))
    builder = Builder(code)
    copier = Copier(builder, decode(code))

    def at_split():
        spilled = spill_stack(builder, layout.depth)
        call_resume(builder, resume, spilled)

    copy_prefix(copier, index, at_split)
    return assemble(builder)


def outcome(fn, args, kwargs):
    """What running a function does: result, or exception with its deepest line here, and the log."""
    LOG.clear()
    try:
        value = ("returned", repr(fn(*deep(args), **deep(kwargs))))
    except Exception as error:
        lines = []
        traceback = error.__traceback__
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == CASES_FILE:
                lines.append(traceback.tb_lineno)
            traceback = traceback.tb_next
        causes = type(error.__cause__), type(error.__context__)
        value = ("raised", type(error), str(error), lines[-1], *causes)
    return value, repr(LOG)


def deep(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(deep, value))
    if isinstance(value, dict):
        return {key: deep(item) for key, item in value.items()}
    return value


def with_code(fn, code):
    """The function (or bound method) with other code and the same cells."""
    plain = getattr(fn, "__func__", fn)
    new = FunctionType(code, plain.__globals__, plain.__name__, plain.__defaults__, plain.__closure__)
    new.__kwdefaults__ = plain.__kwdefaults__
    return new if plain is fn else new.__get__(fn.__self__)
