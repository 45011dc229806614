"""Hooks of modules: each registration gives a hook another id, so places in the tables are guarded instead of ids."""

from __future__ import annotations

from typing import Any, Final

from torch import nn

from dynacheck.accessors import dict_keys_of
from dynacheck.guards.objects import ANY_KEY, KeysAre
from dynacheck.sources import DictAttr, Node
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.mappings import OrderedDictVariable, Pair, ValueAt

_TABLES: Final = {
    "_forward_hooks": ("_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
    "_forward_pre_hooks": ("_forward_pre_hooks_with_kwargs",),
    "_backward_hooks": (),
    "_backward_pre_hooks": (),
}
"""Tables of hooks by id, and the tables that say of some of these ids how their hooks are called."""

_TABLE_OF: Final = {name: table for table, names in _TABLES.items() for name in (table, *names)}


class HookTableVariable(OrderedDictVariable):
    """Hooks by id, or what is said about them. Invariant: all ids of the module's table are in this one, or none."""

    __slots__ = ()

    def content(self, tx: Tracer) -> dict[Any, Pair]:
        if self.entries is None and not self.cleared and not self.writes:
            assert self.node is not None
            ids = list(dict_keys_of(self.node.peek()))
            tx.guard(self.node, KeysAre(ANY_KEY for _ in ids))
            self.entries = {
                key: (tx.constant(key), tx.wrap(self.node.child(ValueAt(i)))) for i, key in enumerate(ids)
            }
        return super().content(tx)

    def lookup(self, tx: Tracer, key: VariableTracker) -> VariableTracker | None:
        self.content(tx)
        return super().lookup(tx, key)


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
    hooks = module.__dict__[table]
    sizes = [len(module.__dict__.get(name, ())) for name in _TABLES[table]]
    return all(size in (0, len(hooks)) for size in sizes)
