"""Tensors of classes that a program derives from `torch.Tensor`, without storage of their own.

The graph computes with plain tensors; the class is what the interpreter dispatches on (`__torch_function__`) and what
rewritten code gives results. Objects that are no tensors may have a `__torch_function__` too.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any, Final

import torch

from dynacheck.graph.facts import TensorRef, is_wrapper
from dynacheck.reasons import TENSOR_KIND
from dynacheck.sources import ABSENT, DictAttr, Node, instance_dict, type_lookup
from dynacheck.variables.base import Rebuilder, Tracer, VariableTracker
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.tensor import Overloaded, TensorMethodVariable, TensorVariable, class_attribute

DISABLED: Final = "torch function of subclasses disabled"
"""In a tracer's state: how often dispatch to subclasses is switched off."""


class Disabled:
    """No dispatch to subclasses in the block."""

    def __init__(self, tx: Tracer) -> None:
        self.tx = tx

    def __enter__(self) -> None:
        self.tx.state[DISABLED] = self.tx.state.get(DISABLED, 0) + 1

    def __exit__(self, *exception: object) -> None:
        self.tx.state[DISABLED] -= 1


def as_plain(tensor: torch.Tensor) -> torch.Tensor:
    """The data of an object of a subclass, as a plain tensor (called by graphs)."""
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return tensor  # what a backend traces with
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.as_subclass(torch.Tensor)


def as_subclass(tensor: torch.Tensor, cls: Any) -> torch.Tensor:
    """An object of a subclass with a tensor's data (used by rewritten code)."""
    with torch._C.DisableTorchFunctionSubclass():
        made: torch.Tensor = tensor.as_subclass(cls)
        return made


def can_model(cls: type) -> bool:
    """Whether a class of tensors is one of these: the program's, dispatching by `__torch_function__` alone."""
    programs = issubclass(cls, torch.Tensor) and cls.__module__.split(".")[0] != "torch"
    return programs and not dispatches(cls) and not issubclass(cls, torch.nn.Parameter)


def dispatches(cls: type) -> bool:
    """Whether a class of tensors has a `__torch_dispatch__` of its own."""
    return type_lookup(cls, "__torch_dispatch__") is not type_lookup(torch.Tensor, "__torch_dispatch__")


def can_trace(cls: Any) -> bool:
    """Whether a class of tensors hands operators on to the tensors it is made of, by `__torch_dispatch__`."""
    return is_wrapper(cls)


def has_own_hook(cls: Any) -> bool:
    """Whether a class has a `__torch_function__` of its own."""
    hook = type_lookup(cls, "__torch_function__")
    inherited = hook is type_lookup(torch.Tensor, "__torch_function__")
    return not inherited and cls.__torch_function__ is not torch._C._disabled_torch_function_impl


class WrapperVariable(TensorVariable):
    """A tensor made of others (a traceable wrapper): one value of the graph, whose class the fake tensors run.

    Its own methods and attributes are operations of the graph, as in torch. What the class's `__torch_function__` asks
    for is interpreted; the graph then runs without asking again.
    """

    __slots__ = ()

    def overloads(self, tx: Tracer) -> bool:
        """Whether operations on it are dispatched to its class now."""
        return has_own_hook(self.ref.facts.cls) and not tx.state.get(DISABLED)

    def as_meta(self, tx: Tracer) -> Any:
        if self.overloads(tx):
            raise Overloaded
        tx.graph.dispatched |= has_own_hook(self.ref.facts.cls)
        return self.ref

    def call_method(
        self, tx: Tracer, name: str, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        inherited = type_lookup(self.ref.facts.cls, name) is type_lookup(torch.Tensor, name)
        if inherited and self.overloads(tx):
            return tx.torch_function("call_method", name, [self, *args], dict(kwargs))
        with Disabled(tx):
            return super().call_method(tx, name, args, kwargs)

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        raw: Any = type_lookup(self.ref.facts.cls, name)
        inherited = raw is type_lookup(torch.Tensor, name)
        if name in self.attrs or (inherited and raw is not ABSENT):
            if name in self.attrs or callable(raw) or name == "__class__" or not self.overloads(tx):
                return super().tp_getattro(tx, name)
            return tx.torch_function("call_function", getattr, [self, tx.constant(name)], {})
        if self.node is not None and name in (instance_dict(self.node.peek()) or {}):
            return tx.wrap(self.node.child(DictAttr(name)))
        if isinstance(raw, FunctionType):
            return TensorMethodVariable(self, name)
        if raw is ABSENT and self.node is not None:
            return super().tp_getattro(tx, name)
        if raw is ABSENT or isinstance(raw, property):
            with Disabled(tx):
                return tx.record("call_function", getattr, [self, tx.constant(name)])
        self.unmodelled(tx, f"the attribute {name!r}")


def tensor_tracker(ref: TensorRef, proxy: Any, node: Node | None = None) -> TensorVariable:
    """The tracker of a tensor that is a value of the graph."""
    return (WrapperVariable if is_wrapper(ref.facts.cls) else TensorVariable)(ref, proxy, node)


class StrippedVariable(TensorVariable):
    """The data of a sourced object of a subclass."""

    __slots__ = ("_of",)

    def __init__(self, of: Node, ref: Any) -> None:
        super().__init__(ref)
        self._of = of

    def as_proxy(self, tx: Tracer) -> Any:
        if self._proxy is None:
            given = tx.graph_node(tx.graph_input(self._of, self.ref), self.ref)
            self._proxy = tx.graph_call(as_plain, [given])
        return tx.graph_node(self._proxy, self.ref)


class SubclassTensorVariable(TensorVariable):
    """A tensor of a subclass.

    Args:
        plain: its data.
        cls: its class.
        node: where it comes from.
    """

    __slots__ = ("cls", "plain")

    def __init__(self, plain: TensorVariable, cls: type, node: Node | None = None) -> None:
        super().__init__(plain.ref, None, node)
        self.plain = plain
        self.cls = cls

    def get_type(self) -> type:
        return self.cls

    def overloads(self, tx: Tracer) -> bool:
        """Whether operations on it are dispatched to its class now."""
        return not tx.state.get(DISABLED)

    def as_proxy(self, tx: Tracer) -> Any:
        return self.plain.as_proxy(tx)

    def as_meta(self, tx: Tracer) -> Any:
        if self.overloads(tx):
            raise Overloaded
        return self.ref

    def call_method(
        self, tx: Tracer, name: str, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if self.overloads(tx):
            return tx.torch_function("call_method", name, [self, *args], dict(kwargs))
        return self.plain.call_method(tx, name, args, kwargs)

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        raw: Any = type_lookup(self.cls, name)
        own = raw is not type_lookup(torch.Tensor, name)
        if own and raw is not ABSENT:
            return self._class_attribute(tx, name, raw)
        if name in self.attrs or name == "__class__" or raw is ABSENT or not self.overloads(tx):
            return super().tp_getattro(tx, name)
        if callable(raw) or name in ("__dict__", "__module__", "__doc__"):
            return super().tp_getattro(tx, name)
        return tx.torch_function("call_function", getattr, [self, tx.constant(name)], {})

    def _class_attribute(self, tx: Tracer, name: str, raw: Any) -> VariableTracker:
        """What the class, not `torch.Tensor`, has under a name."""
        found = class_attribute(tx, self, self.cls, name, raw)
        if found is None:
            self.unmodelled(tx, f"the attribute {name!r}")
        return found

    def children(self) -> Sequence[VariableTracker]:
        return [self.plain, *super().children()]

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(as_subclass, lambda: to.load(self.plain), lambda: to.load_class(self.cls))
        to.remember(self)


class OpaqueTensorVariable(UserObjectVariable):
    """A tensor of a class that dispatches operators and doesn't say what it is made of: an object with attributes."""

    __slots__ = ()

    def as_meta(self, tx: Tracer) -> Any:
        tx.give_up(TENSOR_KIND, what=f"A tensor of class {self.cls.__name__}")

    def call_method(
        self, tx: Tracer, name: str, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return self.as_meta(tx)  # type: ignore[no-any-return]
