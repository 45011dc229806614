"""Globals and attributes."""

from __future__ import annotations

import builtins
from typing import Any

from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.table import NULL, Machine, opcode, unsupported
from dynacheck.variables import abstract
from dynacheck.variables.handing_on import looked_at

unsupported(
    "it belongs to class bodies, modules and annotation scopes, which aren't translated",
    "LOAD_NAME",
    "STORE_NAME",
    "DELETE_NAME",
    "LOAD_CLASSDEREF",
    "LOAD_LOCALS",
    "LOAD_FROM_DICT_OR_DEREF",
    "LOAD_FROM_DICT_OR_GLOBALS",
    "SETUP_ANNOTATIONS",
)


@opcode("LOAD_GLOBAL", until=(3, 12))
def load_global_312(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    value = tx.load_global(name)
    if inst.flag:
        tx.push(NULL)
    tx.push(value)


@opcode("LOAD_GLOBAL", since=(3, 13))
def load_global(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    tx.push(tx.load_global(name))
    if inst.flag:
        tx.push(NULL)


@opcode("STORE_GLOBAL", leaves=0)
def store_global(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    tx.store_global(name, tx.pop())


@opcode("DELETE_GLOBAL", leaves=0)
def delete_global(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    tx.store_global(name, None)


@opcode("LOAD_ATTR", until=(3, 11), leaves=1)
def load_attr_311(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    tx.push(abstract.getattr_(tx, tx.pop(), name))


@opcode("LOAD_METHOD", until=(3, 11), leaves=2)
def load_method(tx: Machine, inst: Instruction) -> None:
    """The attribute over a NULL: what CPython leaves when the attribute is no plain method."""
    name: Any = inst.argval
    value = abstract.getattr_(tx, tx.pop(), name)
    tx.push(NULL)
    tx.push(value)


def one_or_method(inst: Instruction) -> int:
    """What an attribute load leaves: with its flag set, a NULL beside the attribute."""
    return 2 if inst.flag else 1


@opcode("LOAD_ATTR", since=(3, 12), until=(3, 12), leaves=one_or_method)
def load_attr_312(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    value = abstract.getattr_(tx, tx.pop(), name)
    if inst.flag:
        tx.push(NULL)
    tx.push(value)


@opcode("LOAD_ATTR", since=(3, 13), leaves=one_or_method)
def load_attr(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    tx.push(abstract.getattr_(tx, tx.pop(), name))
    if inst.flag:
        tx.push(NULL)


def one_attribute(inst: Instruction) -> int | None:
    """What LOAD_SUPER_ATTR leaves; its method form can't be run by itself."""
    return None if inst.flag else 1


@opcode("LOAD_SUPER_ATTR", since=(3, 12), until=(3, 12), leaves=one_attribute)
def load_super_attr_312(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    owner, cls, self_ = tx.popn(3)
    value = abstract.getattr_(tx, tx.call(owner, [cls, self_]), name)
    if inst.flag:
        tx.push(NULL)
    tx.push(value)


@opcode("LOAD_SUPER_ATTR", since=(3, 13), leaves=one_attribute)
def load_super_attr(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    owner, cls, self_ = tx.popn(3)
    tx.push(abstract.getattr_(tx, tx.call(owner, [cls, self_]), name))
    if inst.flag:
        tx.push(NULL)


@opcode("STORE_ATTR", leaves=0)
def store_attr(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    value, owner = tx.popn(2)
    abstract.setattr_(tx, owner, name, looked_at(tx, value))  # as torch looks at it


@opcode("DELETE_ATTR", leaves=0)
def delete_attr(tx: Machine, inst: Instruction) -> None:
    name: Any = inst.argval
    abstract.delattr_(tx, tx.pop(), name)


@opcode("LOAD_ASSERTION_ERROR", until=(3, 13))
def load_assertion_error(tx: Machine, inst: Instruction) -> None:
    tx.push(tx.object(builtins.AssertionError))


@opcode("LOAD_BUILD_CLASS")
def load_build_class(tx: Machine, inst: Instruction) -> None:
    tx.push(tx.builtin("__build_class__"))
