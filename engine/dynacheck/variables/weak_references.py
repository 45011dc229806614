"""Weak references."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from dynacheck.sources import Node
from dynacheck.variables import abstract
from dynacheck.variables.base import NOT_IMPLEMENTED, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.methods import BuiltinMethodVariable, BuiltinObject


def dead_reference() -> weakref.ref[Any]:
    """A weak reference to what is gone (used by rewritten code)."""
    return weakref.ref(type("gone", (), {})())


class WeakReferenceVariable(BuiltinObject):
    """A weak reference; its object, if it isn't dead, is alive while the frame runs."""

    __slots__ = ("callback", "dead", "target")
    python_type = weakref.ReferenceType

    def __init__(
        self, target: VariableTracker, node: Node | None = None, callback: VariableTracker | None = None
    ) -> None:
        super().__init__(node)
        self.target = target
        self.callback = callback
        """What is called when the object goes: of one made in the frame."""
        self.dead = False
        """What it referred to was made in the frame, and is gone."""

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name == "__call__":
            return BuiltinMethodVariable(self, name)
        return super().tp_getattro(tx, name)

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.constant(None) if self.dead else self.target

    def nb_bool(self, tx: Tracer) -> bool:
        return True

    def hash_key(self, tx: Tracer) -> Any:
        return (WeakReferenceVariable, self.target.realize(tx).hash_key(tx))

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        if op not in ("==", "!=") or not isinstance(other, WeakReferenceVariable):
            return NOT_IMPLEMENTED
        if self.dead or other.dead:
            return tx.constant((self is other) is (op == "=="))
        return abstract.richcompare(tx, op, self.target, other.target)

    def children(self) -> Sequence[VariableTracker]:
        held = () if self.dead else (self.target,)
        return held if self.callback is None else (*held, self.callback)

    def reconstruct(self, to: Rebuilder) -> None:
        if self.dead:
            to.call_helper(dead_reference)
        else:
            callback = self.callback
            also = [] if callback is None else [lambda: to.load(callback)]
            to.call_helper(weakref.ref, lambda: to.load(self.target), *also)
        to.remember(self)
