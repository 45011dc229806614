"""`match` statements, as `ceval.c`'s match_class and match_keys do."""

from __future__ import annotations

from typing import Final

from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes.table import Machine, opcode
from dynacheck.variables import abstract
from dynacheck.variables.base import ObservedException, VariableTracker
from dynacheck.variables.sequences import TupleVariable
from dynacheck.versions import PY312

_SEQUENCE: Final = 1 << 5
_MAPPING: Final = 1 << 6
_MATCH_SELF: Final = 1 << 22
"""Bits of `type.__flags__`: which patterns a type takes; whether a class pattern captures the subject."""


@opcode("GET_LEN", leaves=2)
def get_len(tx: Machine, inst: Instruction) -> None:
    tx.push(abstract.length(tx, tx.stack[-1]))


def _has_flag(tx: Machine, flag: int) -> VariableTracker:
    return tx.constant(bool(tx.stack[-1].realize(tx).get_type().__flags__ & flag))


@opcode("MATCH_MAPPING")
def match_mapping(tx: Machine, inst: Instruction) -> None:
    tx.push(_has_flag(tx, _MAPPING))


@opcode("MATCH_SEQUENCE")
def match_sequence(tx: Machine, inst: Instruction) -> None:
    tx.push(_has_flag(tx, _SEQUENCE))


class _Missing(VariableTracker):
    """The default that `get` is asked with: no value of the program."""

    __slots__ = ()


@opcode("MATCH_KEYS")
def match_keys(tx: Machine, inst: Instruction) -> None:
    """(subject, keys) get the values at the keys, or None, on top."""
    subject, keys = tx.stack[-2].realize(tx), abstract.iterate(tx, tx.stack[-1])
    get = abstract.getattr_(tx, subject, "get") if keys else None
    seen: list[object] = []
    values: list[VariableTracker] = []
    missing = _Missing()
    for key in keys:
        found = key.realize(tx).hash_key(tx)
        if found in seen:
            shown = abstract.constant_of(tx, abstract.repr_(tx, key), "repr()")
            tx.raise_(ValueError, f"mapping pattern checks duplicate key ({shown})")
        seen.append(found)
        assert get is not None
        value = tx.call(get, [key, missing])
        if value is missing:
            tx.push(tx.constant(None))
            return
        values.append(value)
    tx.push(TupleVariable(values))


@opcode("MATCH_CLASS")
def match_class(tx: Machine, inst: Instruction) -> None:
    """(subject, class, names) become the captured attributes, or None."""
    subject, cls, names = tx.popn(3)
    found = _class_pattern(tx, subject.realize(tx), cls.realize(tx), inst.arg, abstract.iterate(tx, names))
    tx.push(tx.constant(None) if found is None else TupleVariable(found))


def _class_pattern(
    tx: Machine, subject: VariableTracker, cls: VariableTracker, positional: int, names: list[VariableTracker]
) -> list[VariableTracker] | None:
    known = abstract.python_class(cls)
    if known is None:
        tx.raise_(TypeError, f"called match pattern must be a {'class' if PY312 else 'type'}")
    if not abstract.is_true(tx, tx.call(tx.builtin("isinstance"), [subject, cls])):
        return None
    seen: list[str] = []
    found: list[VariableTracker] = []
    if positional:
        by_position = _positional_names(tx, cls, known, positional)
        if by_position is None:
            found.append(subject)
        for name in by_position or ():
            value = _attribute(tx, subject, known, name, seen)
            if value is None:
                return None
            found.append(value)
    for named in names:
        value = _attribute(tx, subject, known, abstract.constant_of(tx, named, "a name"), seen)
        if value is None:
            return None
        found.append(value)
    return found


def _positional_names(tx: Machine, cls: VariableTracker, known: type, wanted: int) -> list[str] | None:
    """The attributes of the positional sub-patterns; None when the one sub-pattern is the subject itself."""
    absent = tx.constant(None)
    declared = abstract.getattr_default(tx, cls, "__match_args__", absent)
    itself = declared is absent and bool(known.__flags__ & _MATCH_SELF)
    args: list[VariableTracker] = []
    if declared is not absent:
        if declared.realize(tx).get_type() is not tuple:
            got = abstract.name_of(declared.realize(tx))
            tx.raise_(TypeError, f"{known.__name__}.__match_args__ must be a tuple (got {got})")
        args = abstract.iterate(tx, declared)
    allowed = 1 if itself else len(args)
    if allowed < wanted:
        plural = "" if allowed == 1 else "s"
        accepts = f"accepts {allowed} positional sub-pattern{plural} ({wanted} given)"
        tx.raise_(TypeError, f"{known.__name__}() {accepts}")
    if itself:
        return None
    names = []
    for arg in args[:wanted]:
        if arg.realize(tx).get_type() is not str:
            got = abstract.name_of(arg.realize(tx))
            tx.raise_(TypeError, f"__match_args__ elements must be strings (got {got})")
        names.append(str(abstract.constant_of(tx, arg, "a name")))
    return names


def _attribute(
    tx: Machine, subject: VariableTracker, known: type, name: str, seen: list[str]
) -> VariableTracker | None:
    """An attribute for a sub-pattern; None when the subject has none."""
    if name in seen:
        tx.raise_(TypeError, f"{known.__name__}() got multiple sub-patterns for attribute {name!r}")
    seen.append(name)
    try:
        return abstract.getattr_(tx, subject, name)
    except ObservedException as observed:
        if abstract.raised(observed, AttributeError):
            return None
        raise
