"""`obj.__dict__`: the same storage as the object's attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynacheck.guards.objects import KeysAre
from dynacheck.sources import CAttr, instance_dict
from dynacheck.variables.base import Rebuilder, Tracer, VariableTracker
from dynacheck.variables.mappings import DictVariable, Pair
from dynacheck.variables.methods import key_of
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.results import scalar


class InstanceDictVariable(DictVariable):
    """The instance dict of an object of a user class. Invariant: all data is the owner's; `entries` is a picture of it,
    brought up to date in place, so that live iterators over it notice changes.
    """

    __slots__ = ("owner",)

    def __init__(self, owner: UserObjectVariable) -> None:
        super().__init__({})
        self.owner = owner

    @property
    def keeper(self) -> VariableTracker:
        return self.owner

    def content(self, tx: Tracer) -> dict[Any, Pair]:
        owner = self.owner
        now: dict[Any, Pair] = {}
        if owner.node is not None:
            names = list(instance_dict(owner.value) or ())
            tx.guard(owner.node.child(CAttr("__dict__")), KeysAre(names))
            for name in names:
                if name not in owner.attrs:
                    now[name] = (tx.constant(name), tx.wrap(owner.dict_node(name)))
                elif owner.attrs[name] is not None and name not in owner.remade:
                    now[name] = (tx.constant(name), owner.attrs[name])  # type: ignore[assignment]
        for name, value in owner.attrs.items():
            if value is not None and owner.in_dict(name):
                now[name] = (tx.constant(name), value)
        entries = self.entries
        assert entries is not None
        if list(entries) != list(now):
            entries.clear()
        entries.update(now)
        return entries

    def lookup(self, tx: Tracer, key: VariableTracker) -> VariableTracker | None:
        key = key.realize(tx)
        if key is not scalar(key):
            self.unmodelled(tx, "looking up this key")  # it may compare in its own way
        if key.is_constant() and isinstance(name := key.as_constant(tx), str):
            return self.owner.instance_attribute(tx, name) if self.owner.in_dict(name) else None
        key_of(tx, key, "dict key")
        return None

    def sq_length(self, tx: Tracer) -> VariableTracker:
        return tx.constant(len(self.content(tx)))

    def store(self, tx: Tracer, key: VariableTracker, value: VariableTracker) -> None:
        key = key.realize(tx)
        if (
            not key.is_constant()
            or not isinstance(name := key.as_constant(tx), str)
            or not self.owner.in_dict(name)
        ):
            self.unmodelled(tx, "storing under this key")
        self.owner.store_attribute(tx, name, value)

    def delete(self, tx: Tracer, key: VariableTracker) -> None:
        self.owner.store_attribute(tx, key.realize(tx).as_constant(tx), None)

    def m_clear(self, tx: Tracer) -> None:
        for key, _ in list(self.content(tx).values()):
            self.delete(tx, key)
        self.content(tx)

    def children(self) -> Sequence[VariableTracker]:
        return (self.owner,)

    def reconstruct(self, to: Rebuilder) -> None:
        to.load(self.owner)
        to.load_attr("__dict__")
        to.remember(self)
