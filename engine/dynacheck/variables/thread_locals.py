"""`threading.local()`: its attributes are the items of a dict that each thread has for itself."""

from __future__ import annotations

import threading
from typing import Any

from dynacheck.accessors import Converted
from dynacheck.guards import TypeIs
from dynacheck.sources import Node
from dynacheck.variables.base import Rebuilder, Tracer, VariableTracker
from dynacheck.variables.mappings import DictVariable
from dynacheck.variables.wrap import wraps


def dict_of(local: Any) -> dict[str, Any] | None:
    """The calling thread's attributes (for guards and rewritten code)."""
    return local.__dict__ if type(local) is threading.local else None


class ThreadLocalVariable(VariableTracker):
    """An object of `threading.local` itself: a class derived from it may run code in each thread."""

    __slots__ = ()

    def get_type(self) -> type:
        return threading.local

    def items(self, tx: Tracer) -> DictVariable:
        """The dict of this thread."""
        assert self.node is not None
        found = tx.wrap(self.node.child(Converted(dict_of, "vars"))).realize(tx)
        assert isinstance(found, DictVariable)
        return found

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name == "__dict__":
            return self.items(tx)
        if hasattr(threading.local, name):
            return super().tp_getattro(tx, name)
        items, key = self.items(tx), tx.constant(name)
        if not items.sq_contains(tx, key).as_constant(tx):
            tx.raise_(AttributeError, f"'_thread._local' object has no attribute {name!r}")
        return items.mp_subscript(tx, key)

    def tp_setattro(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        items, key = self.items(tx), tx.constant(name)
        if value is None and not items.sq_contains(tx, key).as_constant(tx):
            tx.raise_(AttributeError, f"'_thread._local' object has no attribute {name!r}")
        items.mp_ass_subscript(tx, key, value)

    def nb_bool(self, tx: Tracer) -> bool:
        return True

    def reconstruct(self, to: Rebuilder) -> None:
        raise AssertionError("it came into the frame")


@wraps(threading.local)
def wrap_thread_local(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, TypeIs(threading.local))
    return ThreadLocalVariable(node)
