"""The dicts behind classes and modules, as the frame reads them."""

from __future__ import annotations

import gc
from typing import Any, Final

from dynacheck.reasons import UNKNOWN_OPERATION
from dynacheck.sources import CAttr, Converted, Node
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.mappings import DictVariable, Pair

LOCALS: Final = "dicts that locals() gave"
"""Where the state of an attempt has them, by frame."""


def namespace_of(cls: type) -> Any:
    """The dict behind a class's `__dict__` (used by guards and rewritten code)."""
    return gc.get_referents(type.__dict__["__dict__"].__get__(cls))[0]


def class_namespace(tx: Tracer, cls: type) -> DictVariable:
    """The dict of a class, which nothing writes to but through the class."""
    found = tx.wrap(tx.class_node(cls).child(Converted(namespace_of, "vars"))).realize(tx)
    assert isinstance(found, DictVariable)
    return found


class ModuleNamespaceVariable(DictVariable):
    """The `__dict__` of a module. Invariant: the frame writes neither through it nor to the module's attributes."""

    __slots__ = ("module",)

    def __init__(self, module: Any, node: Node) -> None:
        super().__init__(None, node.child(CAttr("__dict__")))
        self.module = module

    def _as_it_was(self, tx: Tracer) -> None:
        """Break where the frame has changed the module."""
        if self.module.attrs or tx.effects.writes_globals(self.module.value.__dict__):
            tx.break_(
                UNKNOWN_OPERATION,
                operation="reading",
                what=f"the changed namespace of {self.module.describe()}",
            )

    def content(self, tx: Tracer) -> dict[Any, Pair]:
        self._as_it_was(tx)
        return super().content(tx)

    def lookup(self, tx: Tracer, key: VariableTracker) -> VariableTracker | None:
        self._as_it_was(tx)
        return super().lookup(tx, key)

    def changing(self, tx: Tracer) -> None:
        tx.break_(UNKNOWN_OPERATION, operation="writing", what=f"the namespace of {self.module.describe()}")
