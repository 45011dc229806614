"""`nn.Module` objects: parameters, buffers and submodules are found where `nn.Module.__getattr__` looks."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from dynacheck.guards import Is
from dynacheck.sources import ABSENT, DictAttr, Node, type_lookup
from dynacheck.variables import class_writes
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.mappings import DictVariable
from dynacheck.variables.objects import UserObjectVariable

CONTAINERS = ("_parameters", "_buffers", "_modules")
HOOKS = ("_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks")
_OF_ALL = {name: f"_global{name}" for name in HOOKS}
_MODULE_GETATTR = nn.Module.__getattr__
_MODULE_SETATTR = nn.Module.__setattr__
_MODULE_CALL = nn.Module.__call__


def is_lazy(module: nn.Module) -> bool:
    """Whether a module gets its parameters, and the class that it is meant to be, when it is called first."""
    return hasattr(module, "_initialize_hook")


class NNModuleVariable(UserObjectVariable):
    """An `nn.Module`.

    Invariant: guarded structurally: its exact type, what was read from it and the absence of hooks; never its id.
    Parameters and buffers are graph inputs.
    """

    __slots__ = ("_hooks_guarded",)

    value: nn.Module

    def __init__(self, value: nn.Module, node: Node) -> None:
        super().__init__(type(value), value, node)
        self._hooks_guarded = False

    def missing_attribute(self, tx: Tracer, name: str, node: Node) -> VariableTracker:
        if type_lookup(self.cls, "__getattr__") is not _MODULE_GETATTR:
            return super().missing_attribute(tx, name, node)
        tx.guard_absent(node)
        return self.fallback(tx, name)

    def fallback(self, tx: Tracer, name: str) -> VariableTracker:
        if type_lookup(self.cls, "__getattr__") is not _MODULE_GETATTR:
            return super().fallback(tx, name)
        tx.guard(self.class_attribute(tx, "__getattr__")[1], Is(_MODULE_GETATTR))
        found = self.registered(tx, name)
        if found is not None:
            return found
        for container in CONTAINERS:
            if self.changed(tx, container) is None:
                tx.guard_absent(self.container(container).key(name))
        tx.raise_(AttributeError, f"{self.cls.__name__!r} object has no attribute {name!r}")

    def registered(self, tx: Tracer, name: str) -> VariableTracker | None:
        """A parameter, buffer or submodule of that name, as `nn.Module.__getattr__` finds it."""
        attributes = self.value.__dict__
        for container in CONTAINERS:
            changed = self.changed(tx, container)
            if changed is not None:
                found = changed.lookup(tx, tx.constant(name))
                if found is not None:
                    return found
            elif name in attributes.get(container, ()):
                node = self.container(container).key(name)
                if container != "_modules":
                    tx.graph.meet(node)
                return tx.wrap(node)
        return None

    def changed(self, tx: Tracer, container: str) -> DictVariable | None:
        """The tracker of a container that the frame has written to: it, not the module, knows what is there."""
        put = self.attrs.get(container)
        if put is not None:
            real = put.realize(tx)
            return real if isinstance(real, DictVariable) else self.unmodelled(tx, f"another {container}")
        tracker = tx.known(self.value.__dict__.get(container))
        if isinstance(tracker, DictVariable) and (tracker.writes or tracker.cleared):
            return tracker
        return None

    def container(self, name: str) -> Node:
        """The dict of parameters, buffers or submodules."""
        assert self.node is not None
        return self.node.named(DictAttr, name)

    def generic_getattr(self, tx: Tracer, name: str) -> VariableTracker:
        # A parameter's name is nowhere on the class and not in the instance dict: skip to where it is.
        if (
            name not in self.attrs
            and name not in self.value.__dict__
            and type_lookup(self.cls, name) is ABSENT
            and type_lookup(self.cls, "__getattr__") is _MODULE_GETATTR
            and class_writes.stored(tx, self.cls, name) is None
        ):
            found = self.registered(tx, name)
            if found is not None:
                assert self.node is not None
                tx.guard_absent(self.node.named(DictAttr, name))
                tx.guard_absent(self.class_attribute(tx, name)[1])
                tx.guard(self.class_attribute(tx, "__getattr__")[1], Is(_MODULE_GETATTR))
                return found
        return super().generic_getattr(tx, name)

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if type_lookup(self.cls, "__call__") is not _MODULE_CALL:
            return super().tp_call(tx, args, kwargs)
        return tx.call_module(self, args, kwargs)

    def has_plain_call(self, tx: Tracer) -> bool:
        """Whether calling it is `nn.Module.__call__` with no hooks: then a call is `forward`."""
        if type_lookup(self.cls, "__call__") is not _MODULE_CALL or "_call_impl" in self.value.__dict__:
            return False
        if type_lookup(self.cls, "_call_impl") is not nn.Module._call_impl:
            return False
        modules = torch.nn.modules.module
        if modules._global_forward_hooks or modules._global_forward_pre_hooks:
            return False
        if modules._global_backward_hooks or modules._global_backward_pre_hooks:
            return False
        if any(self.changed(tx, hooks) is not None for hooks in HOOKS):
            return False
        attributes = self.value.__dict__
        return attributes.get("_compiled_call_impl") is None and not any(attributes.get(h) for h in HOOKS)

    def guard_no_hooks(self, tx: Tracer) -> None:
        """Assume that nobody registers hooks (torch doesn't notice; we do)."""
        if not self._hooks_guarded:
            self._hooks_guarded = True
            for name in HOOKS:
                tx.guard_length(self.container(name), 0)
                tx.guard_length(tx.root.module("torch.nn.modules.module").attr(_OF_ALL[name]), 0)
            tx.guard(self.class_attribute(tx, "__call__")[1], Is(_MODULE_CALL))

    def tp_setattro(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        custom = type_lookup(self.cls, "__setattr__")
        if value is None or custom is not _MODULE_SETATTR:
            super().tp_setattro(tx, name, value)
            return
        tx.store_module_attribute(self, name, value)

    def is_registered(self, tx: Tracer, name: str) -> str | None:
        """The container that has the name, or None."""
        for container in CONTAINERS:
            changed = self.changed(tx, container)
            if changed is not None:
                if changed.lookup(tx, tx.constant(name)) is not None:
                    return container
            elif name in self.value.__dict__.get(container, ()):
                return container
        return None

    def hash_key(self, tx: Tracer) -> Any:
        return self
