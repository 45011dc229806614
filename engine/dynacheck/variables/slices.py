"""Slices and ranges."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from dynacheck.sources import CAttr, Node
from dynacheck.variables.abstract import equal, name_of, richcompare
from dynacheck.variables.base import NOT_IMPLEMENTED, NotConstant, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.coerce import integer, is_integer, natively, text
from dynacheck.variables.iterators import IndexIterator
from dynacheck.variables.methods import BuiltinObject, unhashable
from dynacheck.variables.results import python_value
from dynacheck.versions import PY312


class SliceVariable(BuiltinObject):
    """A slice of three trackers."""

    __slots__ = ("start", "step", "stop")
    python_type = slice

    def __init__(
        self, start: VariableTracker, stop: VariableTracker, step: VariableTracker, node: Node | None = None
    ) -> None:
        super().__init__(node)
        self.start = start
        self.stop = stop
        self.step = step

    @classmethod
    def sourced(cls, tx: Tracer, node: Node) -> SliceVariable:
        """A slice that existed before the frame."""
        parts = [tx.wrap(node.child(CAttr(name))) for name in ("start", "stop", "step")]
        return cls(parts[0], parts[1], parts[2], node)

    def sample(self) -> Any:
        return slice(None)

    def parts(self, tx: Tracer) -> list[VariableTracker]:
        """start, stop and step, realized."""
        return [p.realize(tx) for p in (self.start, self.stop, self.step)]

    def bounds(self, tx: Tracer) -> slice:
        """The slice as a Python slice of integers or None."""
        values: list[int | None] = []
        for part in self.parts(tx):
            if part.is_constant() and part.as_constant(tx) is None:
                values.append(None)
            elif is_integer(tx, part):
                values.append(integer(tx, part))
            else:
                tx.raise_(TypeError, "slice indices must be integers or None or have an __index__ method")
        return slice(*values)

    def is_constant(self) -> bool:
        return all(p.is_constant() for p in (self.start, self.stop, self.step))

    def as_constant(self, tx: Tracer) -> Any:
        return slice(*(p.as_constant(tx) for p in self.parts(tx)))

    def as_proxy(self, tx: Tracer) -> Any:
        return slice(*(p.as_proxy(tx) for p in self.parts(tx)))

    def as_meta(self, tx: Tracer) -> Any:
        return slice(*(p.as_meta(tx) for p in self.parts(tx)))

    def snapshot(self, tx: Tracer) -> Any:
        """A Python copy, when all parts are constants."""
        return slice(*(python_value(tx, p) for p in self.parts(tx)))

    def a_start(self, tx: Tracer) -> VariableTracker:
        return self.start

    def a_stop(self, tx: Tracer) -> VariableTracker:
        return self.stop

    def a_step(self, tx: Tracer) -> VariableTracker:
        return self.step

    def m_indices(self, tx: Tracer, length: VariableTracker, /) -> VariableTracker:
        found = natively(tx, self.bounds(tx).indices, integer(tx, length))
        return tx.constant(found)

    def nb_bool(self, tx: Tracer) -> bool:
        return True

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        if not isinstance(other, SliceVariable):
            return NOT_IMPLEMENTED
        for a, b in zip(self.parts(tx), other.parts(tx)):
            if not equal(tx, a, b):
                return richcompare(tx, op, a, b) if op not in ("==", "!=") else tx.constant(op == "!=")
        return tx.constant(op in ("==", "<=", ">="))

    def hash_key(self, tx: Tracer) -> Any:
        if not PY312:
            unhashable(tx, self)
        return slice(*(p.realize(tx).hash_key(tx) for p in self.parts(tx)))

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        return tx.constant(f"slice({', '.join(text(tx, p) for p in self.parts(tx))})")

    def children(self) -> Sequence[VariableTracker]:
        return (self.start, self.stop, self.step)

    def reconstruct(self, to: Rebuilder) -> None:
        for part in (self.start, self.stop, self.step):
            to.load(part)
        to.build_slice(3)
        to.remember(self)


class RangeVariable(BuiltinObject):
    """A range of known bounds. Invariant: a sourced one is guarded by its bounds."""

    __slots__ = ("value",)
    python_type = range

    def __init__(self, value: range, node: Node | None = None) -> None:
        super().__init__(node)
        self.value = value

    def sample(self) -> Any:
        return range(0)

    def describe(self) -> str:
        return repr(self.value)

    def is_constant(self) -> bool:
        return True

    def as_constant(self, tx: Tracer) -> Any:
        return self.value

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name in ("start", "stop", "step"):
            return tx.constant(getattr(self.value, name))
        return super().tp_getattro(tx, name)

    def sq_length(self, tx: Tracer) -> VariableTracker:
        return tx.constant(natively(tx, len, self.value))

    def nb_bool(self, tx: Tracer) -> bool:
        return bool(self.value)

    def mp_subscript(self, tx: Tracer, key: VariableTracker) -> VariableTracker:
        key = key.realize(tx)
        if isinstance(key, SliceVariable):
            return RangeVariable(natively(tx, operator.getitem, self.value, key.bounds(tx)))
        if not is_integer(tx, key):
            name = name_of(key)
            tx.raise_(TypeError, f"range indices must be integers or slices, not {name}")
        return tx.constant(natively(tx, operator.getitem, self.value, integer(tx, key)))

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker:
        item = item.realize(tx)
        try:
            return tx.constant(python_value(tx, item) in self.value)
        except NotConstant:
            return tx.constant(any(equal(tx, tx.constant(i), item) for i in self.value))

    def tp_iter(self, tx: Tracer) -> VariableTracker:
        return IndexIterator(self, type(iter(range(0))))

    def m___reversed__(self, tx: Tracer) -> VariableTracker:
        return IndexIterator(RangeVariable(self.value[::-1]), type(iter(range(0))))

    def m_count(self, tx: Tracer, item: VariableTracker, /) -> VariableTracker:
        return tx.constant(sum(equal(tx, tx.constant(i), item) for i in self.value))

    def m_index(self, tx: Tracer, item: VariableTracker, /) -> VariableTracker:
        place = next((n for n, i in enumerate(self.value) if equal(tx, tx.constant(i), item)), None)
        if place is None:
            tx.raise_(ValueError, f"{text(tx, item)} is not in range")
        return tx.constant(place)

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        if op not in ("==", "!=") or not isinstance(other, RangeVariable):
            return NOT_IMPLEMENTED
        return tx.constant((self.value == other.value) is (op == "=="))

    def hash_key(self, tx: Tracer) -> Any:
        return self.value

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        return tx.constant(repr(self.value))

    def reconstruct(self, to: Rebuilder) -> None:
        bounds = self.value
        to.call_helper(range, *(_pusher(to, n) for n in (bounds.start, bounds.stop, bounds.step)))
        to.remember(self)


def _pusher(to: Rebuilder, value: object) -> Callable[[], None]:
    return lambda: to.load_const(value)
