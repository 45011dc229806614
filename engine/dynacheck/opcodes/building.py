"""Building, growing and unpacking containers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.calls import function_text
from dynacheck.opcodes.table import Machine, opcode
from dynacheck.variables import abstract, listing
from dynacheck.variables.base import VariableTracker
from dynacheck.variables.indices import new_slice
from dynacheck.variables.mappings import DictVariable, pairs_of
from dynacheck.variables.sequences import ListVariable, TupleVariable
from dynacheck.variables.sets import SetVariable
from dynacheck.versions import PY313


@opcode("BUILD_TUPLE")
def build_tuple(tx: Machine, inst: Instruction) -> None:
    tx.push(TupleVariable(tx.popn(inst.arg)))


@opcode("BUILD_LIST")
def build_list(tx: Machine, inst: Instruction) -> None:
    tx.push(ListVariable(tx.popn(inst.arg)))


@opcode("BUILD_SET", leaves=1)
def build_set(tx: Machine, inst: Instruction) -> None:
    tx.push(SetVariable.of(tx, tx.popn(inst.arg)))


@opcode("BUILD_MAP", leaves=1)
def build_map(tx: Machine, inst: Instruction) -> None:
    flat = tx.popn(2 * inst.arg)
    tx.push(DictVariable.of(tx, zip(flat[::2], flat[1::2])))


@opcode("BUILD_CONST_KEY_MAP", until=(3, 13), leaves=1)
def build_const_key_map(tx: Machine, inst: Instruction) -> None:
    keys: Iterable[Any] = tx.pop().realize(tx).as_constant(tx)
    values = tx.popn(inst.arg)
    tx.push(DictVariable.of(tx, zip([tx.constant(k) for k in keys], values)))


@opcode("BUILD_SLICE")
def build_slice(tx: Machine, inst: Instruction) -> None:
    tx.push(new_slice(tx, *tx.popn(inst.arg)))


@opcode("LIST_TO_TUPLE", until=(3, 11))
def list_to_tuple(tx: Machine, inst: Instruction) -> None:
    tx.push(TupleVariable(abstract.iterate(tx, tx.pop())))


# -- growing what a display or a comprehension builds


def _method(tx: Machine, owner: VariableTracker, name: str, *args: VariableTracker) -> None:
    tx.call(abstract.getattr_(tx, owner, name), list(args))


@opcode("LIST_APPEND")
def list_append(tx: Machine, inst: Instruction) -> None:
    item = tx.pop()
    _method(tx, tx.stack[-inst.arg], "append", item)


@opcode("SET_ADD")
def set_add(tx: Machine, inst: Instruction) -> None:
    item = tx.pop()
    _method(tx, tx.stack[-inst.arg], "add", item)


@opcode("MAP_ADD")
def map_add(tx: Machine, inst: Instruction) -> None:
    key, value = tx.popn(2)
    abstract.setitem(tx, tx.stack[-inst.arg], key, value)


@opcode("LIST_EXTEND", leaves=0)
def list_extend(tx: Machine, inst: Instruction) -> None:
    values = tx.pop().realize(tx)
    if not abstract.is_iterable(tx, values):
        message = f"Value after * must be an iterable, not {abstract.name_of(values)}"
        tx.raise_(TypeError, message)
    _method(tx, tx.stack[-inst.arg], "extend", values)


@opcode("SET_UPDATE", leaves=0)
def set_update(tx: Machine, inst: Instruction) -> None:
    values = tx.pop()
    _method(tx, tx.stack[-inst.arg], "update", values)


@opcode("DICT_UPDATE", leaves=0)
def dict_update(tx: Machine, inst: Instruction) -> None:
    """`{**mapping}`."""
    update = tx.pop().realize(tx)
    if not abstract.has(tx, update, "keys"):
        tx.raise_(TypeError, f"'{abstract.name_of(update)}' object is not a mapping")
    _method(tx, tx.stack[-inst.arg], "update", update)


@opcode("DICT_MERGE", leaves=0)
def dict_merge(tx: Machine, inst: Instruction) -> None:
    """`f(**mapping)`: the keys must be new."""
    update = tx.pop().realize(tx)
    target = tx.stack[-inst.arg].realize(tx)
    # the callable lies below the arguments, and since 3.13 below a NULL
    function = tx.stack[-(inst.arg + (3 if PY313 else 2))]
    if not abstract.has(tx, update, "keys"):
        name = abstract.name_of(update)
        message = f"{function_text(tx, function)} argument after ** must be a mapping, not {name}"
        tx.raise_(TypeError, message)
    assert isinstance(target, DictVariable)
    for key, value in pairs_of(tx, update):
        if target.lookup(tx, key) is not None:
            _repeated(tx, function, key)
        target.store(tx, key, value)


def _repeated(tx: Machine, function: VariableTracker, key: VariableTracker) -> None:
    name = key.realize(tx)
    if str not in name.get_type().__mro__:
        tx.raise_(TypeError, "keywords must be strings")
    shown = abstract.constant_of(tx, name, "a keyword")
    called = function_text(tx, function)
    tx.raise_(TypeError, f"{called} got multiple values for keyword argument '{shown}'")


# -- unpacking


def _by_arg(count: Callable[[int], int]) -> Callable[[Instruction], int]:
    return lambda inst: count(inst.arg)


@opcode("UNPACK_SEQUENCE", leaves=_by_arg(lambda n: n))
def unpack_sequence(tx: Machine, inst: Instruction) -> None:
    for item in reversed(listing.unpack(tx, tx.pop(), inst.arg)):
        tx.push(item)


@opcode("UNPACK_EX", leaves=_by_arg(lambda n: (n & 0xFF) + (n >> 8) + 1))
def unpack_ex(tx: Machine, inst: Instruction) -> None:
    head, rest, tail = listing.unpack_ex(tx, tx.pop(), inst.arg & 0xFF, inst.arg >> 8)
    for item in reversed([*head, ListVariable(rest), *tail]):
        tx.push(item)
