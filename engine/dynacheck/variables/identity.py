"""What `id()` gives: a number known only when the rewritten code runs, that compares like its owner."""

from __future__ import annotations

from typing import Any

from dynacheck.variables import abstract
from dynacheck.variables.base import NOT_IMPLEMENTED, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.methods import BuiltinObject


class IdentityVariable(BuiltinObject):
    """The identity of an object. Only comparing and hashing are modelled."""

    __slots__ = ("owner",)
    python_type = int

    def __init__(self, owner: VariableTracker) -> None:
        super().__init__()
        self.owner = owner

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        if op not in ("==", "!=") or not isinstance(other, IdentityVariable):
            if issubclass(other.get_type(), (int, float)):
                self.unmodelled(tx, f"{op} with a number")
            return NOT_IMPLEMENTED
        return tx.constant(abstract.is_(tx, self.owner, other.owner) is (op == "=="))

    def nb_bool(self, tx: Tracer) -> bool:
        return True

    def hash_key(self, tx: Tracer) -> Any:
        if self.owner.node is not None:
            self.unmodelled(tx, "hash()")  # of a number that a dict from elsewhere may hold
        return (IdentityVariable, self.owner)

    def sq_length(self, tx: Tracer) -> VariableTracker:
        tx.raise_(TypeError, "object of type 'int' has no len()")

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        self.unmodelled(tx, "repr()")

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.owner,)

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(id, lambda: to.load(self.owner))
