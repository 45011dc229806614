"""`torch.autograd.Function`: `forward` is interpreted to see that it can be; the graph gets the function as a whole."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Final

import torch
from torch.autograd.function import Function, FunctionCtx

from dynacheck import reasons
from dynacheck.handlers.registry import handles
from dynacheck.sources import type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.functions import ObjectVariable
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.tensor import TensorVariable

_PLAIN_SETUP: Final[Any] = type_lookup(Function, "setup_context")


@handles(vars(Function)["apply"].__func__)
def apply(
    tx: Tracer, cls: VariableTracker, *args: VariableTracker, **kwargs: VariableTracker
) -> VariableTracker:
    """`apply`. Without gradients it is what `forward` does; with them a node of the graph, as `forward` promises no
    more than its outputs."""
    if not isinstance(cls, ObjectVariable) or kwargs:
        tx.break_(reasons.UNKNOWN_CALL, what=f"{cls.describe()}.apply with keyword arguments")
    needed = [isinstance(a, TensorVariable) and a.ref.facts.requires_grad for a in args]
    differentiable = torch.is_grad_enabled() and any(needed)
    mark = tx.graph.position()
    context = UserObjectVariable(FunctionCtx)
    context.attrs["needs_input_grad"] = tx.tuple_of([tx.constant(n and differentiable) for n in needed])
    result = _forward(tx, cls, context, list(args))
    if not differentiable:
        return result
    if context.attrs.get("dirty_tensors") is not None:
        tx.break_(reasons.UNKNOWN_CALL, what=f"{cls.describe()}, which writes to its arguments,")
    tx.graph.forget(mark)
    return tx.record("call_function", _target(cls.value), args)


_targets: Final[weakref.WeakKeyDictionary[type, Callable[..., Any]]] = weakref.WeakKeyDictionary()


def _target(cls: type[Function]) -> Callable[..., Any]:
    """What the graph calls: a function under a name that generated code can have, one for a class."""
    found = _targets.get(cls)
    if found is None:
        held = weakref.ref(cls)  # the entry's guards hold for as long as the class is there

        def run(*args: Any) -> Any:
            known: Any = held()
            return known.apply(*args)

        run.__name__ = run.__qualname__ = f"{cls.__name__}_apply"
        run.__module__ = cls.__module__
        found = _targets[cls] = run
    return found


def _forward(
    tx: Tracer, cls: ObjectVariable, context: VariableTracker, args: list[VariableTracker]
) -> VariableTracker:
    forward = abstract.getattr_(tx, cls, "forward")
    previous = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)  # only metadata: the graph keeps the mode it has
    try:
        if type_lookup(cls.value, "setup_context") is _PLAIN_SETUP:
            return tx.call(forward, [context, *args])
        result = tx.call(forward, args)
        tx.call(abstract.getattr_(tx, cls, "setup_context"), [context, tx.tuple_of(args), result])
        return result
    finally:
        torch._C._set_grad_enabled(previous)
