"""Calls."""

from __future__ import annotations

from typing import Any

from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.table import NULL, Machine, opcode
from dynacheck.variables import abstract
from dynacheck.variables.base import ObservedException, VariableTracker
from dynacheck.variables.listing import listed
from dynacheck.variables.mappings import pairs_of


@opcode("PRECALL", until=(3, 11))
def precall(tx: Machine, inst: Instruction) -> None:
    """Only specialises."""


@opcode("KW_NAMES", until=(3, 12))
def kw_names(tx: Machine, inst: Instruction) -> None:
    names: Any = inst.argval
    tx.kw_names = names


def _call(
    tx: Machine, fn: VariableTracker, args: list[VariableTracker], names: tuple[str, ...]
) -> VariableTracker:
    split = len(args) - len(names)
    return tx.call(fn, args[:split], dict(zip(names, args[split:])))


@opcode("CALL", until=(3, 12), leaves=1)
def call_312(tx: Machine, inst: Instruction) -> None:
    """The stack is (NULL, callable) or (method, self), then the arguments."""
    args = tx.popn(inst.arg)
    method, owner = tx.popn(2)
    names = inst.kwnames
    if method is NULL:
        found = _call(tx, owner, args, names)
    else:
        found = _call(tx, method, [owner, *args], names)
    tx.kw_names = ()
    tx.push(found)


@opcode("CALL", since=(3, 13), leaves=1)
def call(tx: Machine, inst: Instruction) -> None:
    """The stack is callable, then NULL or self, then the arguments."""
    args = tx.popn(inst.arg)
    fn, owner = tx.popn(2)
    tx.push(tx.call(fn, args if owner is NULL else [owner, *args]))


@opcode("CALL_KW", since=(3, 13), leaves=1)
def call_kw(tx: Machine, inst: Instruction) -> None:
    names: tuple[str, ...] = tx.pop().realize(tx).as_constant(tx)
    args = tx.popn(inst.arg)
    fn, owner = tx.popn(2)
    tx.push(_call(tx, fn, args if owner is NULL else [owner, *args], names))


def function_text(tx: Machine, fn: VariableTracker) -> str:
    """How errors of starred calls name a callable: `_PyObject_FunctionStr`."""
    parts: dict[str, Any] = {}
    for name in ("__qualname__", "__module__"):
        try:
            found = abstract.getattr_(tx, fn, name).realize(tx)
        except ObservedException:
            continue
        if found.is_constant():
            parts[name] = found.as_constant(tx)
    if "__qualname__" not in parts:
        return str(abstract.constant_of(tx, abstract.str_(tx, fn), "str()"))
    module = parts.get("__module__")
    prefix = "" if module in (None, "builtins") else f"{module}."
    return f"{prefix}{parts['__qualname__']}()"


def _starred(tx: Machine, fn: VariableTracker, values: VariableTracker) -> list[VariableTracker]:
    given = values.realize(tx)
    if not abstract.is_iterable(tx, given):
        name = abstract.name_of(given)
        tx.raise_(TypeError, f"{function_text(tx, fn)} argument after * must be an iterable, not {name}")
    return listed(tx, given)


def _keywords(tx: Machine, fn: VariableTracker, values: VariableTracker) -> dict[str, VariableTracker]:
    given = values.realize(tx)
    if not abstract.has(tx, given, "keys"):
        name = abstract.name_of(given)
        tx.raise_(TypeError, f"{function_text(tx, fn)} argument after ** must be a mapping, not {name}")
    found = {}
    for key, value in pairs_of(tx, given):
        if str not in key.realize(tx).get_type().__mro__:
            tx.raise_(TypeError, "keywords must be strings")
        found[str(abstract.constant_of(tx, key, "a keyword"))] = value
    return found


@opcode("CALL_FUNCTION_EX", until=(3, 12), leaves=1)
def call_function_ex_312(tx: Machine, inst: Instruction) -> None:
    named = tx.pop() if inst.flag else None
    _, fn, values = tx.popn(3)
    kwargs = {} if named is None else _keywords(tx, fn, named)
    tx.push(tx.call(fn, _starred(tx, fn, values), kwargs))


@opcode("CALL_FUNCTION_EX", since=(3, 13), until=(3, 13), leaves=1)
def call_function_ex_313(tx: Machine, inst: Instruction) -> None:
    named = tx.pop() if inst.flag else None
    fn, _, values = tx.popn(3)
    kwargs = {} if named is None else _keywords(tx, fn, named)
    tx.push(tx.call(fn, _starred(tx, fn, values), kwargs))


@opcode("CALL_FUNCTION_EX", since=(3, 14), leaves=1)
def call_function_ex(tx: Machine, inst: Instruction) -> None:
    fn, _, values, named = tx.popn(4)
    kwargs = {} if named is NULL else _keywords(tx, fn, named)
    tx.push(tx.call(fn, _starred(tx, fn, values), kwargs))
