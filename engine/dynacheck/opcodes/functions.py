"""Making functions."""

from __future__ import annotations

from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.table import Machine, opcode
from dynacheck.variables import abstract
from dynacheck.variables.base import VariableTracker
from dynacheck.variables.cells import CellVariable
from dynacheck.variables.functions import UserFunctionVariable
from dynacheck.variables.mappings import DictVariable

_DEFAULTS, _KWDEFAULTS, _ANNOTATIONS, _CLOSURE, _ANNOTATE = 1, 2, 4, 8, 16


def _annotations(tx: Machine, flat: VariableTracker) -> VariableTracker:
    """`__annotations__` from names and values in turn."""
    items = abstract.iterate(tx, flat)
    return DictVariable.of(tx, zip(items[::2], items[1::2]))


@opcode("MAKE_FUNCTION", until=(3, 12))
def make_function_312(tx: Machine, inst: Instruction) -> None:
    flags = inst.arg
    code = tx.pop()
    closure = tx.pop() if flags & _CLOSURE else None
    annotations = _annotations(tx, tx.pop()) if flags & _ANNOTATIONS else None
    kwdefaults = tx.pop() if flags & _KWDEFAULTS else None
    defaults = tx.pop() if flags & _DEFAULTS else None
    tx.push(tx.make_function(code, defaults, kwdefaults, annotations, closure))


@opcode("MAKE_FUNCTION", since=(3, 13))
def make_function(tx: Machine, inst: Instruction) -> None:
    tx.push(tx.make_function(tx.pop(), None, None, None, None))


@opcode("SET_FUNCTION_ATTRIBUTE", since=(3, 13))
def set_function_attribute(tx: Machine, inst: Instruction) -> None:
    """Completes a function that MAKE_FUNCTION has just made."""
    value, fn = tx.popn(2)
    assert isinstance(fn, UserFunctionVariable)
    if inst.arg == _DEFAULTS:
        fn.defaults = tuple(abstract.iterate(tx, value))
    elif inst.arg == _KWDEFAULTS:
        fn.kwdefaults = tx.string_items(value)
    elif inst.arg == _ANNOTATIONS:
        fn.annotations = _annotations(tx, value)
    elif inst.arg == _ANNOTATE:
        fn.attributes["__annotate__"] = value
    else:
        fn._closure = tuple(cell for cell in abstract.iterate(tx, value) if isinstance(cell, CellVariable))
    tx.push(fn)
