"""Iterators of builtin types: their state lives in the tracker."""

from __future__ import annotations

from dynacheck.variables.base import Rebuilder, Tracer, VariableTracker


class IteratorVariable(VariableTracker):
    """An iterator made in the frame. Invariant: it never existed before the frame."""

    __slots__ = ()

    def tp_iter(self, tx: Tracer) -> VariableTracker:
        return self

    def nb_bool(self, tx: Tracer) -> bool:
        return True


class IndexIterator(IteratorVariable):
    """Iterates by index until the length is reached: lists, tuples, strings, ranges."""

    __slots__ = ("index", "kind", "sequence")

    def __init__(self, sequence: VariableTracker, kind: type) -> None:
        super().__init__()
        self.sequence: VariableTracker | None = sequence
        self.index = 0
        self.kind = kind

    def get_type(self) -> type:
        return self.kind

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        sequence = self.sequence
        if sequence is None:
            return None
        if self.index >= sequence.sq_length(tx).as_constant(tx):
            self.sequence = None
            return None
        item = sequence.mp_subscript(tx, tx.constant(self.index))
        self.index += 1
        return item

    def reconstruct(self, to: Rebuilder) -> None:
        raise NotImplementedError

    def children(self) -> tuple[VariableTracker, ...]:
        return () if self.sequence is None else (self.sequence,)
