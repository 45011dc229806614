"""Methods of builtin objects that were loaded but not called yet: `[].append`, `"".join`."""

from __future__ import annotations

from types import BuiltinMethodType
from typing import Any

from dynacheck.sources import Node
from dynacheck.variables.base import Rebuilder, Tracer, VariableTracker


class BuiltinMethodVariable(VariableTracker):
    """A builtin method bound to a tracker. Invariant: `owner` has `call_method(tx, name, args, kwargs)`."""

    __slots__ = ("name", "owner")

    python_type = BuiltinMethodType

    def __init__(self, owner: VariableTracker, name: str, node: Node | None = None) -> None:
        super().__init__(node)
        self.owner = owner
        self.name = name

    def describe(self) -> str:
        return f"the method {self.name!r} of {self.owner.describe()}"

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        owner: Any = self.owner
        result: VariableTracker = owner.call_method(tx, self.name, args, kwargs)
        return result

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name == "__self__":
            return self.owner
        if name in ("__name__", "__qualname__"):
            kind = self.owner.get_type().__name__
            return tx.constant(self.name if name == "__name__" else f"{kind}.{self.name}")
        return super().tp_getattro(tx, name)

    def nb_bool(self, tx: Tracer) -> bool:
        return True

    def reconstruct(self, to: Rebuilder) -> None:
        to.load(self.owner)
        to.load_attr(self.name)

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.owner,)
