"""`types.MappingProxyType`: a mapping that can only be read."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Final

from dynacheck.sources import Node
from dynacheck.variables import abstract
from dynacheck.variables.base import NOT_IMPLEMENTED, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.coerce import text
from dynacheck.variables.mappings import DictVariable
from dynacheck.variables.methods import BuiltinMethodVariable

_READING: Final = frozenset(
    ("get", "keys", "values", "items", "copy", "__contains__", "__getitem__", "__len__", "__reversed__")
)


def proxied(proxy: MappingProxyType[Any, Any]) -> Any:
    """The mapping that a proxy reads."""
    return next(iter(gc.get_referents(proxy)), None)


class MappingProxyVariable(VariableTracker):
    """A proxy of a dict."""

    __slots__ = ("mapping",)
    python_type = MappingProxyType

    def __init__(self, mapping: DictVariable, node: Node | None = None) -> None:
        super().__init__(node)
        self.mapping = mapping

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name in _READING:
            return BuiltinMethodVariable(self.mapping, name)
        if not hasattr(MappingProxyType, name):
            tx.raise_(AttributeError, f"'mappingproxy' object has no attribute {name!r}")
        return super().tp_getattro(tx, name)

    def nb_bool(self, tx: Tracer) -> bool:
        return self.mapping.nb_bool(tx)

    def sq_length(self, tx: Tracer) -> VariableTracker:
        return self.mapping.sq_length(tx)

    def mp_subscript(self, tx: Tracer, key: VariableTracker) -> VariableTracker:
        return self.mapping.mp_subscript(tx, key)

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker:
        return self.mapping.sq_contains(tx, item)

    def tp_iter(self, tx: Tracer) -> VariableTracker:
        return abstract.get_iter(tx, self.mapping)

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        inner = other.mapping if isinstance(other, MappingProxyVariable) else other
        return self.mapping.tp_richcompare(tx, op, inner)

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        if op != "|":
            return NOT_IMPLEMENTED
        one, other = (v.mapping if isinstance(v, MappingProxyVariable) else v for v in (left, right))
        return abstract.binary(tx, op, one, other)

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        return tx.constant(f"mappingproxy({text(tx, self.mapping)})")

    def tp_str(self, tx: Tracer) -> VariableTracker:
        return abstract.str_(tx, self.mapping)

    def children(self) -> Sequence[VariableTracker]:
        return (self.mapping,)

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(MappingProxyType, lambda: to.load(self.mapping))
        to.remember(self)
