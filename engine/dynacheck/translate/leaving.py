"""What leaves a frame on its stack is looked at, read or not, as torch.compile does: so its guards are the frame's.

Numbers and strings that are returned, or that the instruction at a break takes, stay unread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dynacheck.opcodes.table import NULL
from dynacheck.variables.base import GraphBreak, LazyVariable, Tracer, VariableTracker
from dynacheck.variables.callables import PartialVariable
from dynacheck.variables.functions import BoundMethodVariable
from dynacheck.variables.mappings import DictVariable
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.sequences import SequenceVariable
from dynacheck.variables.wrap import UNREAD


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
            _look_at(tx, value, len(stack) - position <= taken, seen)


def _look_at(tx: Tracer, value: VariableTracker, unread: bool, seen: set[int]) -> None:
    if isinstance(value, LazyVariable) and value.real is None and unread and value.get_type() in UNREAD:
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
    if isinstance(value, SequenceVariable):
        return list(value.items(tx))
    if isinstance(value, DictVariable):
        return _values(tx, value)
    if isinstance(value, UserObjectVariable):
        return () if value.base is None else (value.base,)
    if isinstance(value, (BoundMethodVariable, PartialVariable)):
        return value.children()
    return ()


def _values(tx: Tracer, value: DictVariable) -> Iterable[VariableTracker]:
    """The values of a dict, those of a sourced one by the keys that it has now."""
    made = value.children()
    if value.node is None or value.entries is not None or value.cleared:
        return made
    found = (value.lookup(tx, tx.constant(key)) for key in value.node.peek() if type(key) in UNREAD)
    return [*(v for v in found if v is not None), *made]
