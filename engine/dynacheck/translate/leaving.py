"""What leaves a frame on its stack is looked at, read or not, as torch.compile does: so its guards are the frame's.

Numbers and strings in what is returned, or in what the instruction at a break takes, stay unread. But whether a container
that has to be built is a constant is found out by reading its items in order, up to the first that is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from dynacheck.opcodes.table import NULL
from dynacheck.sources import dict_keys_of
from dynacheck.variables.base import GraphBreak, LazyVariable, Tracer, VariableTracker
from dynacheck.variables.callables import PartialVariable
from dynacheck.variables.cells import CellVariable
from dynacheck.variables.deques import DequeVariable
from dynacheck.variables.functions import (
    BoundMethodVariable,
    ObjectMethodVariable,
    UserFunctionVariable,
)
from dynacheck.variables.handing_on import looked_at
from dynacheck.variables.instance_dicts import InstanceDictVariable
from dynacheck.variables.mappings import DictVariable
from dynacheck.variables.methods import BuiltinMethodVariable
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.sequences import SequenceVariable
from dynacheck.variables.sets import AbstractSetVariable
from dynacheck.variables.symbolic import UnreadTextVariable
from dynacheck.variables.wrap import UNREAD

CONTAINERS: Final = (SequenceVariable, DictVariable, AbstractSetVariable)
_HOLDERS: Final = (BoundMethodVariable, BuiltinMethodVariable, ObjectMethodVariable, PartialVariable)


def look_at(tx: Tracer, stack: Sequence[VariableTracker], taken: int) -> None:
    """Guard what is on the stack of a frame that ends or is split.

    Args:
        tx: the frame.
        stack: its stack.
        taken: how many values on top the next instruction takes.
    """
    seen: set[int] = set()
    for position, value in enumerate(stack):
        if value is not NULL:
            if value.get_type() in (int, float):  # on the stack itself they are read: they may be symbols
                value = looked_at(tx, value)
            _look_at(tx, value, len(stack) - position <= taken, seen)


def look_at_renamed(tx: Tracer, kept: Iterable[tuple[str, VariableTracker]]) -> None:
    """Read numbers that a break hands on under another name than they came by, as torch does.

    Args:
        tx: the frame.
        kept: the variables that are needed behind the break.
    """
    for name, value in kept:
        if value.get_type() in (int, float) and value.node is not None and value.node.path != f"L[{name!r}]":
            looked_at(tx, value)


def _look_at(tx: Tracer, value: VariableTracker, unread: bool, seen: set[int]) -> None:
    if isinstance(value, LazyVariable) and value.real is None and unread and value.get_type() in UNREAD:
        return
    if isinstance(value, UnreadTextVariable) and value.stays_unread():
        return
    try:
        value = value.realize(tx)
        parts = () if id(value) in seen else _parts(tx, value)
    except GraphBreak:  # a kind of value without a model passes as it is
        return
    seen.add(id(value))
    for part in parts:
        _look_at(tx, part, unread, seen)


def _parts(tx: Tracer, value: VariableTracker) -> Iterable[VariableTracker]:
    """What a container holds; attributes of objects aren't looked at."""
    if isinstance(value, (SequenceVariable, AbstractSetVariable)):
        return list(value.items(tx))
    if isinstance(value, DictVariable):
        return _values(tx, value)
    if isinstance(value, UserObjectVariable):
        return () if value.base is None else (value.base,)
    if isinstance(value, _HOLDERS):
        return value.children()
    return ()


def _values(tx: Tracer, value: DictVariable) -> Iterable[VariableTracker]:
    """The values of a dict, those of a sourced one by the keys that it has now."""
    made = value.children()
    if value.node is None or value.entries is not None or value.cleared:
        return made
    keys = dict_keys_of(value.node.peek())
    found = (value.lookup(tx, tx.constant(key)) for key in keys if type(key) in UNREAD)
    return [*(v for v in found if v is not None), *made]


def read_what_is_built(tx: Tracer, values: Sequence[VariableTracker], effects: Sequence[Any]) -> None:
    """Read what deciding how to build values reads, in all that leaves a frame.

    Args:
        tx: the frame.
        values: what it returns, or what goes on behind a break.
        effects: what was changed; see `SideEffects.items`.
    """
    stored = [c for item in effects if not isinstance(item, CONTAINERS) for c in item.children()]
    for value in stored:
        if not (isinstance(value, LazyVariable) and value.real is None and value.get_type() in UNREAD):
            looked_at(tx, value)
    changed = {item for item in effects if isinstance(item, VariableTracker)}
    seen: set[int] = set()
    for value in (*values, *stored, *changed):
        _rebuild(tx, value, changed, seen)


def read_constant(tx: Tracer, value: VariableTracker, within: tuple[VariableTracker, ...] = ()) -> bool:
    """Read a value as far as it takes to know whether it is a constant, and tell.

    Args:
        tx: the frame.
        value: the value.
        within: what it is in; what contains itself is no constant.
    """
    value = looked_at(tx, value)
    held = parts(tx, value)
    if held is None or value in within:
        return held is None and value.is_constant()
    return all(read_constant(tx, part, (*within, value)) for part in held)


def parts(tx: Tracer, value: VariableTracker) -> Iterator[VariableTracker] | None:
    """What a container holds, in order; a sequence is guarded by its length. None for what is no container."""
    if isinstance(value, DequeVariable):
        return iter(value.children())
    if isinstance(value, SequenceVariable):
        return iter(tuple(value.items(tx)))
    if isinstance(value, InstanceDictVariable):
        return None
    if isinstance(value, DictVariable):
        return _pairs(tx, value)
    if isinstance(value, AbstractSetVariable):
        return iter(value.items(tx))
    if isinstance(value, UserFunctionVariable) and value.value is None:
        return _cells(value)
    return None


def _pairs(tx: Tracer, value: DictVariable) -> Iterator[VariableTracker]:
    """Keys and values; of a dict that wasn't read as a whole, those that it has now, which is no assumption."""
    if value.entries is not None:
        for pair in list(value.entries.values()):
            yield from pair
        return
    assert value.node is not None
    written = dict(value.writes)
    for key in () if value.cleared else list(dict.keys(value.node.peek())):
        if key in written:
            continue
        if type(key) not in (*UNREAD, type(None)):
            return
        yield tx.constant(key)
        yield tx.wrap(value.node.key(key))
    for write in written.values():
        if write.value is not None:
            yield write.key
            yield write.value


def _cells(function: UserFunctionVariable) -> Iterator[VariableTracker]:
    """What a function made in the frame has in its cells."""
    for cell in function.children():
        if isinstance(cell, CellVariable) and cell.contents is not None:
            yield cell.contents


def _rebuild(tx: Tracer, value: VariableTracker, changed: set[VariableTracker], seen: set[int]) -> None:
    """Read what deciding how to build a value reads, in everything that has to be built for it."""
    if isinstance(value, LazyVariable):
        if value.real is None:
            return
        value = value.real
    if id(value) in seen or (value.node is not None and value not in changed):
        return
    seen.add(id(value))
    if parts(tx, value) is not None:
        read_constant(tx, value)
    for child in value.children():
        _rebuild(tx, child, changed, seen)
