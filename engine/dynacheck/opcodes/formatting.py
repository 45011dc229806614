"""f-strings."""

from __future__ import annotations

from typing import Any

from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.table import Machine, opcode, unsupported
from dynacheck.variables import abstract
from dynacheck.variables.strings import of_sizes
from dynacheck.variables.symbolic import UnreadTextVariable, joined

unsupported("template strings aren't modelled", "BUILD_TEMPLATE", "BUILD_INTERPOLATION")


@opcode("FORMAT_VALUE", until=(3, 12), leaves=1)
def format_value(tx: Machine, inst: Instruction) -> None:
    shape: Any = inst.argval
    conversion, has_spec = shape
    spec = tx.pop() if has_spec else None
    value = tx.pop()
    unread = None if conversion or has_spec else of_sizes(tx, value)
    tx.push(unread or abstract.format_value(tx, value, conversion, spec))


@opcode("CONVERT_VALUE", since=(3, 13), leaves=1)
def convert_value(tx: Machine, inst: Instruction) -> None:
    conversion: Any = inst.argval
    convert = {"s": abstract.str_, "r": abstract.repr_, "a": abstract.ascii_}[conversion]
    tx.push(convert(tx, tx.pop()))


@opcode("FORMAT_SIMPLE", since=(3, 13), leaves=1)
def format_simple(tx: Machine, inst: Instruction) -> None:
    value = tx.pop()
    tx.push(of_sizes(tx, value) or abstract.format_value(tx, value))


@opcode("FORMAT_WITH_SPEC", since=(3, 13), leaves=1)
def format_with_spec(tx: Machine, inst: Instruction) -> None:
    value, spec = tx.popn(2)
    tx.push(abstract.format_value(tx, value, None, spec))


@opcode("BUILD_STRING", leaves=1)
def build_string(tx: Machine, inst: Instruction) -> None:
    parts = tx.popn(inst.arg)
    unread = [isinstance(part, UnreadTextVariable) and part.function is not format for part in parts]
    # as torch: numbers in text of several parts are looked at, what shows a shape isn't
    parts = [part if kept else part.realize(tx) for part, kept in zip(parts, unread, strict=True)]
    if any(unread) and all(kept or part.is_constant() for part, kept in zip(parts, unread, strict=True)):
        tx.push(UnreadTextVariable.of(tx, joined, parts))
        return
    if all(part.is_constant() for part in parts):
        tx.push(tx.constant("".join(part.as_constant(tx) for part in parts)))
        return
    whole = parts[0]
    for part in parts[1:]:
        whole = abstract.binary(tx, "+", whole, part)
    tx.push(whole)
