"""From a value of the frame to its tracker, with the guards that it needs: by exact type, through a table."""

from __future__ import annotations

import contextlib
import enum
import logging
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import nn

from dynacheck import reasons
from dynacheck.graph.facts import UnsupportedTensor
from dynacheck.guards import CodeIs, EnumIs, Is, Same, TypeIs, ValueIs
from dynacheck.guards.base import relate
from dynacheck.guards.held import is_made_anew
from dynacheck.sources import ABSENT, HEAP_TYPE, CAttr, Node, is_a, is_own_dict, type_lookup
from dynacheck.variables.base import GraphBreak, LazyVariable, Tracer, VariableTracker
from dynacheck.variables.cells import CellVariable
from dynacheck.variables.classes import ClassVariable, PythonModuleVariable
from dynacheck.variables.constant import ConstantVariable, is_constant_value
from dynacheck.variables.contexts import ContextMethodVariable, ContextVariable, ExitVariable
from dynacheck.variables.enums import EnumClassVariable, is_enum_class
from dynacheck.variables.exceptions import ExceptionVariable
from dynacheck.variables.functions import (
    BoundMethodVariable,
    HeldMethodVariable,
    ObjectMethodVariable,
    ObjectVariable,
    UserFunctionVariable,
)
from dynacheck.variables.loggers import LoggerVariable
from dynacheck.variables.modules import NNModuleVariable
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.optimizers import OptimizerVariable
from dynacheck.variables.scalars import ScalarObjectVariable, held
from dynacheck.variables.sequences import NamedTupleVariable, is_structseq, keeps_slots
from dynacheck.variables.subclasses import OpaqueTensorVariable, can_model, can_trace, dispatches

Wrapper = Callable[[Tracer, Node, Any], VariableTracker]
TABLE: Final[dict[type, Wrapper]] = {}
"""Wrappers by exact type; the families fill it (see `families.py`)."""


def wraps(*types_: type) -> Callable[[Wrapper], Wrapper]:
    """Register a wrapper for exact types."""

    def add(wrapper: Wrapper) -> Wrapper:
        for cls in types_:
            TABLE[cls] = wrapper
        return wrapper

    return add


IDENTITY_FREE: Final = frozenset(
    {int, float, str, bytes, bool, complex, type(None), type(...), tuple, frozenset, slice, range}
)


UNREAD: Final = frozenset({int, float, bool, str})
"""Types whose values pass through a frame without a guard of the value."""


def look_at_kind(tx: Tracer, value: VariableTracker) -> None:
    """Guard what tells a value's kind: all that wrapping guards, but of a number or a string only the type."""
    if isinstance(value, LazyVariable) and value.real is None and value.get_type() in UNREAD:
        tx.guard(value.node, TypeIs(value.get_type()))
        return
    with contextlib.suppress(GraphBreak):  # a kind of value without a model passes as it is
        value.realize(tx)


def wrap_value(tx: Tracer, node: Node) -> VariableTracker:
    """The tracker of the value at a node, guards installed.

    Args:
        tx: the translator.
        node: where the value is.

    Returns:
        Its tracker. Values met before by another path give the same tracker (the translator looks that up).
    """
    value = node.peek()
    if value is ABSENT:
        raise AssertionError(f"{node.path} leads nowhere")
    wrapper = TABLE.get(type(value))
    if wrapper is not None:
        return wrapper(tx, node, value)
    return _by_kind(tx, node, value)


def _by_kind(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    """Values whose exact type is in no table: by what they derive from. The object isn't asked for its `__class__`."""
    if is_a(value, torch.Tensor):
        return wrap_tensor(tx, node, value)
    if is_a(value, nn.Module):
        return wrap_module(tx, node, value)
    if is_a(value, torch.optim.Optimizer):
        tx.guard(node, TypeIs(type(value)))
        return OptimizerVariable(type(value), value, node)
    if is_a(value, type):
        return wrap_class(tx, node, value)
    if is_a(value, types.ModuleType) and not any(_has_hook(type(value), name) for name in _HOOKS):
        return wrap_python_module(tx, node, value)
    if is_a(value, BaseException):
        tx.guard(node, TypeIs(type(value)))
        return ExceptionVariable.sourced(node)
    if is_a(value, enum.Enum):
        tx.guard(node, EnumIs(value))
        return ConstantVariable(value, node)
    named = is_a(value, tuple) and (hasattr(type(value), "_fields") or is_structseq(type(value)))
    if named and keeps_slots(type(value)):
        tx.guard(node, TypeIs(type(value)))
        return NamedTupleVariable(type(value), None, tx.class_variable(type(value)), node)
    if is_constant_value(value):
        tx.guard(node, Is(value))
        return ConstantVariable(value, node)
    if callable(value) and is_a(value, OBJECT_TYPES):
        tx.guard(node, Is(value))
        return ObjectVariable(value, node)
    return wrap_user_object(tx, node, value)


_HOOKS: Final = ("__getattribute__", "__setattr__", "__delattr__")


def _has_hook(cls: type, name: str) -> bool:
    """Whether a class has code of the user's where attributes are read or written."""
    return isinstance(type_lookup(cls, name), types.FunctionType)


OBJECT_TYPES: Final = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    torch._ops.OpOverload,
    torch._ops.OpOverloadPacket,
    torch._ops.HigherOrderOperator,
)


@wraps(type(None), bool, str, bytes, complex, type(...), type(NotImplemented))
def wrap_constant(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, ValueIs(value))
    return ConstantVariable(value, node)


@wraps(int, float)
def wrap_number(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    """A symbol where the value's history or the user asks for one, else a constant."""
    symbol = tx.symbol_for_number(node, value)
    if symbol is not None:
        return symbol
    tx.guard(node, ValueIs(value))
    return ConstantVariable(value, node)


@wraps(torch.dtype, torch.layout, torch.memory_format, torch.device)
def wrap_torch_constant(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, ValueIs(value))
    return ConstantVariable(value, node)


@wraps(types.CodeType)
def wrap_code(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, Is(value))
    return ConstantVariable(value, node)


@wraps(torch.Tensor, nn.Parameter)
def wrap_tensor(tx: Tracer, node: Node, value: torch.Tensor) -> VariableTracker:
    """A tensor, guarded by its metadata; symbolic where its history or a mark asks for it."""
    cls = type(value)
    plain = cls in (torch.Tensor, nn.Parameter) or _is_plain_parameter(value)
    plain = plain or can_trace(cls)
    if not plain and not can_model(cls):
        if dispatches(cls):
            tx.guard(node, TypeIs(cls))
            return OpaqueTensorVariable(cls, value, node)
        tx.break_(reasons.TENSOR_KIND, what=f"A tensor of class {cls.__name__}")
    try:
        return tx.wrap_tensor(node, value) if plain else tx.wrap_subclass(node, value)
    except UnsupportedTensor as error:
        stop = tx.break_ if value.layout is torch.jagged else tx.give_up  # as torch
        stop(reasons.TENSOR_KIND, what=error.reason[:1].upper() + error.reason[1:])


def _is_plain_parameter(value: torch.Tensor) -> bool:
    """Whether an object of a subclass of Parameter (or a Buffer) behaves as a tensor does."""
    cls = type(value)
    if nn.Parameter not in cls.__mro__:
        return is_a(value, nn.Buffer)
    hook = type_lookup(cls, "__torch_function__")
    if not any(hook is type_lookup(base, "__torch_function__") for base in (torch.Tensor, nn.Parameter)):
        return False
    own = cls.__mro__[: cls.__mro__.index(nn.Parameter)]
    return not any(hasattr(torch.Tensor, n) and n not in _HARMLESS for base in own for n in vars(base))


_HARMLESS: Final = frozenset({
    "__module__", "__doc__", "__new__", "__init__", "__dict__", "__weakref__", "__annotations__", "__repr__",
    "__deepcopy__", "__reduce_ex__", "__torch_function__", "__setstate__", "__getstate__", "__slots__",
})  # fmt: skip
"""What a class derived from Parameter may define anew without being another kind of tensor."""


@wraps(types.FunctionType)
def wrap_function(tx: Tracer, node: Node, value: types.FunctionType) -> VariableTracker:
    """By identity where the function is one of a module or class, by `__code__` where it is made again and again."""
    if is_made_anew(value):
        tx.guard(node, CodeIs(value))
    else:
        tx.guard(node, Is(value))
    return UserFunctionVariable(value, node)


@wraps(types.MethodType)
def wrap_method(tx: Tracer, node: Node, value: types.MethodType) -> VariableTracker:
    tx.guard(node, TypeIs(types.MethodType))
    function, owner = tx.wrap(node.child(CAttr("__func__"))), tx.wrap(node.child(CAttr("__self__")))
    name = getattr(value, "__name__", None)
    if name in ("__enter__", "__exit__", "clone"):
        context = owner.realize(tx)
        if isinstance(context, ContextVariable):
            function.realize(tx)
            return (
                ExitVariable(context, node)
                if name == "__exit__"
                else ContextMethodVariable(context, name, node)
            )
    return BoundMethodVariable(function, owner, node)


@wraps(types.BuiltinFunctionType)
def wrap_builtin_function(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    """A C function, or a C method bound to an object."""
    owner = getattr(value, "__self__", None)
    name = value.__name__
    raw = type_lookup(owner, name) if isinstance(owner, type) else None
    inherited = isinstance(raw, types.ClassMethodDescriptorType) and raw.__objclass__ is not owner
    if isinstance(owner, torch.Tensor):
        tx.guard(node, TypeIs(types.BuiltinMethodType))
        return HeldMethodVariable(node)
    tx.guard(node, Is(value))  # as torch: a bound method is made anew by each attribute access
    if not inherited and (owner is None or isinstance(owner, (types.ModuleType, type))):
        return ObjectVariable(value, node)
    if not inherited and _binds_nothing(owner):
        return ObjectVariable(value, node)
    bound = tx.wrap(node.child(CAttr("__self__"))).realize(tx)
    if inherited or type(bound) in (ObjectVariable, UserObjectVariable):
        return ObjectMethodVariable(bound, name, node)
    return bound.tp_getattro(tx, name)


def _binds_nothing(owner: object) -> bool:
    """Whether the `__self__` of a C function is only how an extension made it: a capsule, a namespace of torch."""
    cls = type(owner)
    return cls.__name__ == "PyCapsule" or cls.__module__.startswith(("torch", "pybind11"))


@wraps(types.ModuleType)
def wrap_python_module(tx: Tracer, node: Node, value: types.ModuleType) -> VariableTracker:
    tx.guard(node, Is(value))
    return PythonModuleVariable(value, node)


@wraps(types.CellType)
def wrap_cell(tx: Tracer, node: Node, value: types.CellType) -> VariableTracker:
    found = tx.cell_of(node)
    assert isinstance(found, CellVariable)
    return found


@wraps(type)
def wrap_class(tx: Tracer, node: Node, value: type) -> VariableTracker:
    tx.guard(node, Is(value))
    return class_tracker(value, node)


def class_tracker(value: type, node: Node | None) -> VariableTracker:
    """The tracker of a class: handlers know builtin ones and torch's by themselves."""
    if is_enum_class(value):
        return EnumClassVariable(value, node)
    return ClassVariable(value, node) if is_user_class(value) else ObjectVariable(value, node)


def is_user_class(cls: type) -> bool:
    """Whether a class was made by Python code."""
    return bool(cls.__flags__ & HEAP_TYPE) and type.__dict__["__module__"].__get__(cls) != "builtins"


@wraps(property, staticmethod, classmethod, types.GenericAlias)
def wrap_descriptor(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, Is(value))
    return ObjectVariable(value, node)


@wraps(weakref.ProxyType, weakref.CallableProxyType)
def wrap_proxy(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.break_(reasons.UNKNOWN_VALUE, what="weakref.proxy", why="its attributes are another object's")


def wrap_module(tx: Tracer, node: Node, value: nn.Module) -> VariableTracker:
    """An nn.Module, structurally: its exact type here, what is read from it where it is read."""
    if isinstance(value, nn.RNNBase):
        tx.give_up(reasons.RNN, what=f"nn.{type(value).__name__}")
    if type(value) is torch.jit._script.RecursiveScriptModule:
        tx.give_up(reasons.UNKNOWN_VALUE, what="a scripted module", why="it isn't made of Python functions")
    if not value.__dict__:  # as torch: the frame is its `__init__`
        tx.give_up(reasons.UNKNOWN_VALUE, what=type(value).__name__, why="nn.Module.__init__ hasn't run")
    tx.guard(node, TypeIs(type(value)))
    return NNModuleVariable(value, node)


def wrap_user_object(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    """An object of a class written in Python (perhaps with a builtin base)."""
    cls = type(value)
    if issubclass(cls, threading.local):  # derived from it
        tx.break_(reasons.UNKNOWN_VALUE, what=cls.__name__, why="it may run code in each thread")
    tx.guard(node, TypeIs(cls))
    if issubclass(cls, logging.Logger):
        return LoggerVariable(cls, value, node)
    if (number := held(tx, node, value)) is not None:
        return ScalarObjectVariable(cls, value, node, number)
    made = UserObjectVariable(cls, value, node, tx.builtin_base(node, value))
    if is_own_dict(value):
        relate(tx.root, Same(), (node, node.child(CAttr("__dict__"))), tx.where())
        made.own_dict = True
    return made
