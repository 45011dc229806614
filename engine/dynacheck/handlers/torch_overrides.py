"""`__torch_function__`: operations on subclasses of tensors, and on objects that stand in for them, go to their classes.

Which function a class is asked for, with which arguments, is found by trying the operation on stand-ins that say what
they are asked: torch's own dispatch decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import GetSetDescriptorType
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode, get_default_nowrap_functions

from dynacheck import reasons
from dynacheck.graph.runs import invoke
from dynacheck.graph.throwaway import without_function_modes
from dynacheck.handlers import structures
from dynacheck.handlers.registry import handles
from dynacheck.handlers.torch_tensors import special
from dynacheck.sources import type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.contexts import ContextVariable
from dynacheck.variables.functions import ObjectVariable
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.sequences import ListVariable, NamedTupleVariable, TupleVariable
from dynacheck.variables.subclasses import (
    DISABLED,
    Disabled,
    SubclassTensorVariable,
    WrapperVariable,
    can_model,
    can_trace,
)
from dynacheck.variables.tensor import TensorVariable
from dynacheck.variables.walk import reachable

_BOUND: Any = torch.Tensor.__torch_function__
_DEFAULT: Final[Any] = _BOUND.__func__


class _Asked(BaseException):
    """A stand-in was asked for an operation."""

    def __init__(self, func: Any, args: Any, kwargs: Any) -> None:
        super().__init__()
        self.func, self.args_, self.kwargs = func, args, kwargs or {}


class _Probe(torch.Tensor):
    """Stands for a tensor of a subclass."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise _Asked(func, args, kwargs)


class _ProbeMode(TorchFunctionMode):
    """Stands for a mode."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise _Asked(func, args, kwargs)


class _ObjectProbe:
    """Stands for an object that has a `__torch_function__`."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise _Asked(func, args, kwargs)


def is_overloaded(tx: Tracer, value: VariableTracker) -> bool:
    """Whether operations with a value go to its class."""
    kinds = (SubclassTensorVariable, WrapperVariable, UserObjectVariable)
    return isinstance(value, kinds) and value.overloads(tx)


def hook_of(cls: type) -> Any:
    """The function behind a class's `__torch_function__`."""
    raw: Any = type_lookup(cls, "__torch_function__")
    return getattr(raw, "__func__", raw)


def dispatch(
    tx: Tracer, op: str, target: Any, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """An operation on values of which some are overloaded.

    Args:
        tx: the translator.
        op: "call_function" or "call_method".
        target: the function or the method's name.
        args: positional arguments.
        kwargs: keyword arguments.

    Returns:
        What the classes' `__torch_function__` gives.
    """
    args = [a.realize(tx) for a in args]
    kwargs = {k: v.realize(tx) for k, v in kwargs.items()}
    if tx.function_modes:
        return _through_mode(tx, op, target, args, kwargs)
    held = list(reachable([*args, *kwargs.values()]))
    types = _types(tx, held)
    if all(hook_of(cls) is _DEFAULT for cls in types):
        first = next((cls for cls in types if all(issubclass(cls, other) for other in types)), None)
        if first is not None:
            return _converted(tx, _plainly(tx, op, target, args, kwargs), first, _getter(tx, target, args))
    asked = _ask(tx, op, target, args, kwargs)
    if asked is None:
        return _plainly(tx, op, target, args, kwargs)
    func, given, named = asked
    return ask_classes(tx, tx.object(func), types, given, named)


def _through_mode(
    tx: Tracer, op: str, target: Any, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """Ask the innermost mode that the frame has entered; what it calls goes to the next one."""
    modes = tx.function_modes
    asked = _ask(tx, op, target, args, kwargs, through=_ProbeMode)
    if asked is None:
        held, modes[:] = list(modes), []
        try:
            return _plainly(tx, op, target, args, kwargs)
        finally:
            modes[:] = held
    func, given, named = asked
    types = tx.tuple_of([tx.class_variable(cls) for cls in _types(tx, list(reachable([given, named])))])
    mode = modes.pop()
    try:
        hook = abstract.getattr_(tx, mode, "__torch_function__")
        found = tx.call(hook, [tx.object(func), types, given, named]).realize(tx)
    finally:
        modes.append(mode)
    if found.is_constant() and found.as_constant(tx) is NotImplemented:
        tx.raise_(TypeError, "a mode's __torch_function__ returned NotImplemented")
    return found


def ask_classes(
    tx: Tracer, func: VariableTracker, types: Sequence[type], args: VariableTracker, kwargs: VariableTracker
) -> VariableTracker:
    """Ask one class after another; TypeError in the program when none answers."""
    classes = [tx.class_variable(cls) for cls in types]
    for cls in classes:
        hook = abstract.getattr_(tx, cls, "__torch_function__")
        found = tx.call(hook, [func, tx.tuple_of(classes), args, kwargs]).realize(tx)
        if not (found.is_constant() and found.as_constant(tx) is NotImplemented):
            return found
    tx.raise_(
        TypeError,
        f"no implementation found for '{func.describe()}' on types that implement __torch_function__",
    )


def _types(tx: Tracer, held: Sequence[VariableTracker]) -> list[type]:
    """The overloaded types among values, subclasses before their bases, else in order."""
    found: list[type] = []
    for value in reversed(held):
        cls = value.get_type()
        if is_overloaded(tx, value) and cls not in found:
            place = next((i for i, other in enumerate(found) if issubclass(cls, other)), len(found))
            found.insert(place, cls)
    return found


def _getter(tx: Tracer, target: Any, args: Sequence[VariableTracker]) -> Any:
    """The getter that an attribute access is."""
    if target is not getattr:
        return None
    return getattr(torch.Tensor, args[1].as_constant(tx), None)


def _plainly(
    tx: Tracer, op: str, target: Any, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """The operation without asking classes."""
    first = args[0] if args else None
    with Disabled(tx):
        if isinstance(first, TensorVariable) and op == "call_method":
            return first.call_method(tx, target, list(args[1:]), kwargs)
        if isinstance(first, TensorVariable) and target is getattr:
            return first.tp_getattro(tx, args[1].as_constant(tx))
        return tx.record(op, target, args, kwargs)


def _converted(tx: Tracer, value: VariableTracker, cls: type, getter: Any = None) -> VariableTracker:
    """A result as `torch.Tensor.__torch_function__` gives it: tensors as objects of the class."""
    if getter is not None and getter.__get__ in get_default_nowrap_functions():
        return value
    real = value.realize(tx)
    if isinstance(real, TensorVariable):
        return real if issubclass(real.get_type(), cls) else subclassed(tx, real, cls)
    if real.get_type() in (tuple, list) or isinstance(real, NamedTupleVariable):
        leaves, shape = structures.flatten(tx, real)
        return structures.unflatten(tx, shape, [_converted(tx, leaf, cls) for leaf in leaves])
    return real


def subclassed(tx: Tracer, value: TensorVariable, cls: type) -> VariableTracker:
    """A tensor's data as an object of a class."""
    plain = value.plain if isinstance(value, SubclassTensorVariable) else value
    if cls is torch.Tensor and plain is value:
        return plain
    if plain is not value or plain.node is not None:
        with Disabled(tx):
            plain = tx.record("call_function", torch.ops.aten.alias.default, [plain])  # type: ignore[assignment]
    return plain if cls is torch.Tensor else tx.subclassed(plain, cls)


def _ask(
    tx: Tracer,
    op: str,
    target: Any,
    args: Sequence[VariableTracker],
    kwargs: dict[str, VariableTracker],
    through: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> tuple[Any, VariableTracker, VariableTracker] | None:
    """The function and arguments that torch's dispatch asks for; None if it asks for nothing."""
    trackers: dict[int, VariableTracker] = {}
    keep: list[Any] = []

    def stand_in(value: VariableTracker) -> Any:
        if isinstance(value, TensorVariable):
            made: Any = torch.empty(())
            if is_overloaded(tx, value):
                made = made.as_subclass(_Probe)
        elif isinstance(value, UserObjectVariable):
            made = _ObjectProbe()
        elif isinstance(value, (TupleVariable, ListVariable)):
            return type(value).python_type(stand_in(item.realize(tx)) for item in value.items(tx))
        else:
            made = value.as_meta(tx)
        keep.append(made)
        trackers[id(made)] = value
        return made

    def back(value: Any) -> VariableTracker:
        found = trackers.get(id(value))
        if found is not None:
            return found
        if type(value) in (tuple, list):
            items = [back(item) for item in value]
            return TupleVariable(items) if type(value) is tuple else ListVariable(items)
        return tx.object(value)

    given = [stand_in(a) for a in args]
    named = {k: stand_in(v) for k, v in kwargs.items()}
    try:
        with without_function_modes(), through():
            invoke(op, target, given, named)
    except _Asked as asked:
        pairs = {key: back(value) for key, value in asked.kwargs.items()}
        return asked.func, back(asked.args_), tx.string_dict(pairs)
    return None


def construct(
    tx: Tracer, cls: type, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker | None:
    """A new object of a subclass, with a tensor's data or made of tensors; None if that isn't what is asked."""
    if can_trace(cls) and any(isinstance(a.realize(tx), TensorVariable) for a in args):
        if tx.env is None:
            tx.need_symbols()
        return tx.record("call_function", cls, args, kwargs)
    if not can_model(cls) or cls is torch.Tensor or len(args) != 1 or kwargs:
        return None
    data = args[0].realize(tx)
    own = [type_lookup(cls, name) is not type_lookup(torch.Tensor, name) for name in ("__new__", "__init__")]
    if any(own) or not isinstance(data, TensorVariable) or isinstance(data, SubclassTensorVariable):
        return None
    made = tx.record("call_method", "detach", [data])
    assert isinstance(made, TensorVariable)
    return tx.subclassed(made, cls)


def attribute_of(value: Any) -> str | None:
    """The attribute of tensors that a getter (`torch.Tensor.shape.__get__`) gets, or None."""
    owner = getattr(value, "__self__", None)
    if getattr(value, "__name__", "") != "__get__" or not isinstance(owner, (GetSetDescriptorType, property)):
        return None
    name = owner.__name__ if isinstance(owner, GetSetDescriptorType) else getattr(owner.fget, "__name__", "")
    return name if getattr(torch.Tensor, name, None) is owner else None


# -- what programs call
@special("as_subclass")
def as_subclass(
    tx: Tracer, tensor: TensorVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    cls = abstract.python_class(args[0].realize(tx)) if len(args) == 1 and not kwargs else None
    if cls is None or not (can_model(cls) or cls is torch.Tensor):
        tx.break_(reasons.UNKNOWN_CALL, what="Tensor.as_subclass of this class")
    with Disabled(tx):  # another object, over the same data
        made = tx.record("call_function", torch.ops.aten.alias.default, [tensor])
    assert isinstance(made, TensorVariable)
    return made if cls is torch.Tensor else tx.subclassed(made, cls)


@handles(_DEFAULT)
def default_torch_function(
    tx: Tracer, cls: VariableTracker, func: VariableTracker, types: VariableTracker,
    args: VariableTracker | None = None, kwargs: VariableTracker | None = None,
) -> VariableTracker | None:  # fmt: skip
    """`torch.Tensor.__torch_function__`."""
    if not isinstance(cls, ObjectVariable):
        return None
    given = [] if args is None else abstract.iterate(tx, args)
    named = {} if kwargs is None or abstract.is_none(tx, kwargs) else tx.string_items(kwargs)
    for other in abstract.iterate(tx, types):
        found = abstract.python_class(other.realize(tx))
        if found is None or not issubclass(cls.value, found):
            return tx.constant(NotImplemented)
    with Disabled(tx):
        result = tx.call(func, given, named)
    if getattr(func, "value", None) in get_default_nowrap_functions():
        return result
    return _converted(tx, result, cls.value)


@handles(torch._C._disabled_torch_function_impl)
def disabled_torch_function(
    tx: Tracer, func: VariableTracker, types: VariableTracker,
    args: VariableTracker | None = None, kwargs: VariableTracker | None = None,
) -> VariableTracker:  # fmt: skip
    """What classes with a `__torch_dispatch__` have in place of `torch.Tensor.__torch_function__`."""
    given = [] if args is None else abstract.iterate(tx, args)
    named = {} if kwargs is None or abstract.is_none(tx, kwargs) else tx.string_items(kwargs)
    with Disabled(tx):
        return tx.call(func, given, named)


@handles(torch._C._is_torch_function_enabled)
def is_torch_function_enabled(tx: Tracer) -> VariableTracker:
    return tx.constant(torch._C._is_torch_function_enabled() and not tx.state.get(DISABLED))


class DisabledVariable(ContextVariable):
    """`torch._C.DisableTorchFunctionSubclass()`."""

    __slots__ = ()

    def enter(self, tx: Tracer) -> VariableTracker:
        Disabled(tx).__enter__()
        return tx.constant(None)

    def leave(self, tx: Tracer) -> None:
        Disabled(tx).__exit__()

    def enter_call(self) -> tuple[Any, tuple[Any, ...]]:
        return self.cls, ()

    def clone(self) -> ContextVariable:
        return DisabledVariable(self.cls)


_disable: Any = torch._C.DisableTorchFunctionSubclass


@handles(_disable)
def disable_subclasses(tx: Tracer) -> VariableTracker:
    return DisabledVariable(_disable)


@handles(
    torch.overrides.has_torch_function,
    torch.overrides.has_torch_function_unary,
    torch.overrides.has_torch_function_variadic,
)
def has_torch_function(tx: Tracer, *args: VariableTracker) -> VariableTracker:
    return tx.constant(any(is_overloaded(tx, value) for value in reachable(args)))


@handles(torch.overrides.handle_torch_function)
def handle_torch_function(
    tx: Tracer,
    public_api: VariableTracker,
    relevant_args: VariableTracker,
    *args: VariableTracker,
    **kwargs: VariableTracker,
) -> VariableTracker:
    types = _types(tx, list(reachable([relevant_args])))
    return ask_classes(tx, public_api, types, tx.tuple_of(args), tx.string_dict(kwargs))


@handles(torch._C._push_on_torch_function_stack)
def push_mode(tx: Tracer, mode: VariableTracker) -> VariableTracker:
    tx.function_modes.append(mode)
    return tx.constant(None)


@handles(torch._C._pop_torch_function_stack)
def pop_mode(tx: Tracer) -> VariableTracker:
    if not tx.function_modes:
        tx.break_(reasons.UNKNOWN_CALL, what="taking off a mode that the frame didn't enter")
    return tx.function_modes.pop()
