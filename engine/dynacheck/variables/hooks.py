"""Hooks of modules: each registration gives a hook another id, so places in the tables are guarded instead of ids.
Hooks of tensors that came into the frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from dynacheck.accessors import KeyAt, dict_keys_of
from dynacheck.guards.base import relate
from dynacheck.guards.objects import ANY_KEY, KeysAre
from dynacheck.guards.relations import Same
from dynacheck.sources import DictAttr, Node
from dynacheck.variables.base import CantRebuild, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.mappings import OrderedDictVariable, Pair, ValueAt
from dynacheck.variables.tensor import TensorMethodVariable, TensorVariable

_TABLES: Final = {
    "_forward_hooks": ("_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
    "_forward_pre_hooks": ("_forward_pre_hooks_with_kwargs",),
    "_backward_hooks": (),
    "_backward_pre_hooks": (),
}
"""Tables of hooks by id, and the tables that say of some of these ids how their hooks are called."""

_TABLE_OF: Final = {name: table for table, names in _TABLES.items() for name in (table, *names)}


class HookTableVariable(OrderedDictVariable):
    """Hooks by id, or what is said about some of them. Invariant: what is guarded is at which places of the module's
    table the ids are."""

    __slots__ = ()

    def content(self, tx: Tracer) -> dict[Any, Pair]:
        if self.entries is None and not self.cleared and not self.writes:
            assert self.node is not None
            ids = list(dict_keys_of(self.node.peek()))
            tx.guard(self.node, KeysAre(ANY_KEY for _ in ids))
            self._places(tx, ids)
            self.entries = {
                key: (tx.constant(key), tx.wrap(self.node.child(ValueAt(i)))) for i, key in enumerate(ids)
            }
        return super().content(tx)

    def lookup(self, tx: Tracer, key: VariableTracker) -> VariableTracker | None:
        self.content(tx)
        return super().lookup(tx, key)

    def _places(self, tx: Tracer, ids: list[int]) -> None:
        """Guard which places of the module's table have these ids, where not all have."""
        assert self.node is not None and self.node.parent is not None
        assert isinstance(self.node.accessor, DictAttr)
        table = self.node.parent.child(DictAttr(_TABLE_OF[self.node.accessor.name]))
        places = {key: i for i, key in enumerate(dict_keys_of(table.peek()))}
        if len(ids) < len(places):
            for i, key in enumerate(ids):
                nodes = table.child(KeyAt(places[key])), self.node.child(KeyAt(i))
                relate(tx.root, Same(), nodes, tx.where())


def is_hook_table(node: Node) -> bool:
    """Whether a node is a module's table of hooks whose ids needn't be known."""
    accessor, parent = node.accessor, node.parent
    if not isinstance(accessor, DictAttr) or accessor.name not in _TABLE_OF or parent is None:
        return False
    module = parent.peek()
    if not isinstance(module, nn.Module):
        return False
    table = _TABLE_OF[accessor.name]
    if module.__dict__.get("_forward_hooks_always_called"):
        return False
    hooks = set(map(id, module.__dict__[table]))
    return all(hooks.issuperset(map(id, module.__dict__.get(name, ()))) for name in _TABLES[table])


class TensorHookVariable(VariableTracker):
    """The handle of a hook on a tensor that came into the frame: registered with the frame's side effects, since
    gradients flow only later.

    Args:
        tensor: the tensor.
        method: which kind of hook.
        hook: the hook.
    """

    __slots__ = ("hook", "method", "tensor")
    python_type = RemovableHandle

    def __init__(self, tensor: TensorVariable, method: str, hook: VariableTracker) -> None:
        super().__init__()
        self.tensor = tensor
        self.method = method
        self.hook = hook

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        return TensorMethodVariable(self, name) if name == "remove" else super().tp_getattro(tx, name)

    def call_method(
        self, tx: Tracer, name: str, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """`remove()`: it is never registered then."""
        tx.effects.forget(self)
        return tx.constant(None)

    def children(self) -> Sequence[VariableTracker]:
        return (self.tensor, self.hook)

    def reconstruct(self, to: Rebuilder) -> None:
        if self.tensor.ref.storage.written:
            raise CantRebuild("a hook on a tensor that is written to afterwards")
        loads = [lambda: to.load(self.tensor), lambda: to.load_const(self.method), lambda: to.load(self.hook)]
        to.call_helper(_register, *loads)
        to.remember(self)

    def write_back(self, to: Rebuilder) -> None:
        to.load(self)  # which registers it if nothing has yet
        to.pop()


class GraphHookVariable(VariableTracker):
    """The handle of a hook that the graph registers, on a tensor made in it."""

    __slots__ = ()
    python_type = RemovableHandle

    def reconstruct(self, to: Rebuilder) -> None:
        raise CantRebuild("the handle of a hook on a tensor made in the frame")


class GivenHandleVariable(VariableTracker):
    """The handle of a hook that wasn't registered in the frame: what it does is left to Python."""

    __slots__ = ()
    python_type = RemovableHandle

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        return TensorMethodVariable(self, name) if name == "remove" else super().tp_getattro(tx, name)

    def call_method(
        self, tx: Tracer, name: str, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """Break."""
        self.unmodelled(tx, method=repr(name))


def _register(tensor: torch.Tensor, method: str, hook: Any) -> RemovableHandle:
    handle: RemovableHandle = getattr(tensor, method)(hook)
    return handle
