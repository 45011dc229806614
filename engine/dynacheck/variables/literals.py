"""The trackers of plain containers of constants that have no source."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Final

import torch

from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.deques import DequeVariable
from dynacheck.variables.mappings import DictVariable, OrderedDictVariable
from dynacheck.variables.results import CONTAINERS, result
from dynacheck.variables.sequences import ListVariable, SizeVariable, TupleVariable
from dynacheck.variables.sets import FrozenSetVariable, SetVariable
from dynacheck.variables.slices import RangeVariable, SliceVariable


def _items(tx: Tracer, value: Any) -> list[VariableTracker]:
    return [result(tx, item) for item in value]


def _pairs(tx: Tracer, value: Any) -> list[tuple[VariableTracker, VariableTracker]]:
    return [(result(tx, k), result(tx, v)) for k, v in value.items()]


def _tuple(tx: Tracer, value: Any) -> VariableTracker:
    """One tuple is one tracker, wherever code loads it: equal constants of a module are one object."""
    found = tx.known(value)
    if found is None:
        found = TupleVariable(_items(tx, value))
        tx.meet(value, found)
    return found


_MAKERS: Final[dict[type, Callable[[Tracer, Any], VariableTracker]]] = {
    tuple: _tuple,
    list: lambda tx, v: ListVariable(_items(tx, v)),
    torch.Size: lambda tx, v: SizeVariable(_items(tx, v)),
    slice: lambda tx, v: SliceVariable(result(tx, v.start), result(tx, v.stop), result(tx, v.step)),
    range: lambda tx, v: RangeVariable(v),
    set: lambda tx, v: SetVariable.of(tx, _items(tx, v)),
    frozenset: lambda tx, v: FrozenSetVariable.of(tx, _items(tx, v)),
    dict: lambda tx, v: DictVariable.of(tx, _pairs(tx, v)),
    OrderedDict: lambda tx, v: OrderedDictVariable.of(tx, _pairs(tx, v)),
    deque: lambda tx, v: DequeVariable(_items(tx, v), v.maxlen),
}
CONTAINERS.update(_MAKERS)
