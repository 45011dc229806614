"""Dicts with a default factory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from dynacheck.sources import CAttr, Node
from dynacheck.variables import abstract
from dynacheck.variables.base import Rebuilder, Tracer, VariableTracker
from dynacheck.variables.coerce import text
from dynacheck.variables.mappings import DictVariable, Pair, raise_key_error


def set_factory(owner: Any, factory: Any) -> None:
    """Give an object of a subclass its `default_factory` (used by rewritten code)."""
    vars(defaultdict)["default_factory"].__set__(owner, factory)


class DefaultDictVariable(DictVariable):
    """A defaultdict."""

    __slots__ = ("_factory",)
    python_type = defaultdict
    writable = ("default_factory",)

    def __init__(
        self,
        entries: dict[Any, Pair] | None,
        node: Node | None = None,
        factory: VariableTracker | None = None,
    ) -> None:
        super().__init__(entries, node)
        self._factory = factory

    def factory(self, tx: Tracer) -> VariableTracker:
        """`default_factory`."""
        if self._factory is None:
            if self.node is None:
                self._factory = tx.constant(None)
            else:
                self._factory = tx.wrap(self.node.child(CAttr("default_factory")))
        return self._factory

    def a_default_factory(self, tx: Tracer) -> VariableTracker:
        return self.factory(tx)

    def missing(self, tx: Tracer, key: VariableTracker) -> VariableTracker:
        factory = self.factory(tx).realize(tx)
        if abstract.is_none(tx, factory):
            raise_key_error(tx, key)
        value = tx.call(factory, [])
        self.store(tx, key, value)
        return value

    def m___missing__(self, tx: Tracer, key: VariableTracker, /) -> VariableTracker:
        return self.missing(tx, key)

    def m___init__(
        self,
        tx: Tracer,
        factory: VariableTracker | None = None,
        other: VariableTracker | None = None,
        /,
        **named: VariableTracker,
    ) -> None:
        if factory is not None:
            real = factory.realize(tx)
            if not abstract.is_none(tx, real) and not abstract.has(tx, real, "__call__"):
                tx.raise_(TypeError, "first argument must be callable or None")
        self._factory = factory
        self.m_update(tx, other, **named)

    def same_kind(self, tx: Tracer, entries: dict[Any, Pair]) -> DictVariable:
        return DefaultDictVariable(entries, None, self.factory(tx))

    def m___copy__(self, tx: Tracer) -> VariableTracker:
        return self.m_copy(tx)

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        return tx.constant(f"defaultdict({text(tx, self.factory(tx))}, {self.listing(tx)})")

    def children(self) -> Sequence[VariableTracker]:
        held = super().children()
        return held if self._factory is None else [*held, self._factory]

    def fill(self, to: Rebuilder, owner: VariableTracker) -> None:
        super().fill(to, owner)
        if self._factory is not None:
            factory = self._factory
            to.call_helper(set_factory, lambda: to.load(owner), lambda: to.load(factory))
            to.pop()

    def push_empty(self, to: Rebuilder) -> None:
        factory = self._factory
        if factory is None:
            to.call_helper(defaultdict)
        else:
            to.call_helper(defaultdict, lambda: to.load(factory))
