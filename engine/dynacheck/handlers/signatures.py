"""`inspect.signature` of functions that the trace depends on by identity or code."""

from __future__ import annotations

import inspect
from typing import Any

from dynacheck.handlers.registry import handles
from dynacheck.variables.base import CantRebuild, Tracer, VariableTracker
from dynacheck.variables.functions import BoundMethodVariable, CallableVariable, UserFunctionVariable
from dynacheck.variables.mappings import DictVariable


class SignatureVariable(CallableVariable):
    """A signature, or one of its parameters: an immutable description of a function."""

    __slots__ = ("function", "value")

    def __init__(self, value: Any, function: VariableTracker) -> None:
        super().__init__()
        self.value = value
        self.function = function

    def get_type(self) -> type:
        return type(self.value)

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        value = self.value
        if name == "parameters" and isinstance(value, inspect.Signature):
            pairs = [
                (tx.constant(k), SignatureVariable(v, self.function)) for k, v in value.parameters.items()
            ]
            return DictVariable.of(tx, pairs)
        if name in ("name", "kind") and isinstance(value, inspect.Parameter):
            return tx.constant(getattr(value, name))
        if name in ("empty", "default", "annotation") and getattr(value, name) is inspect.Parameter.empty:
            return tx.object(inspect.Parameter.empty)
        return super().tp_getattro(tx, name)

    def reconstruct(self, to: Any) -> None:
        if isinstance(self.value, inspect.Parameter):
            raise CantRebuild("a parameter of a signature")
        to.call_helper(inspect.signature, lambda: to.load(self.function))


def _signature(function: VariableTracker) -> inspect.Signature | None:
    if isinstance(function, UserFunctionVariable):
        if function.value is not None:
            return inspect.signature(function.value)
        return None
    if isinstance(function, BoundMethodVariable):
        inner = getattr(function.function, "real", None) or function.function
        found = _signature(inner)
        if found is None:
            return None
        parameters = list(found.parameters.values())
        if parameters and parameters[0].kind in (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
        ):
            parameters = parameters[1:]
        return found.replace(parameters=parameters)
    return None


@handles(inspect.signature)
def signature(tx: Tracer, obj: VariableTracker, **options: VariableTracker) -> VariableTracker | None:
    if options:
        return None
    if isinstance(obj, BoundMethodVariable):
        obj.function.realize(tx)
    found = _signature(obj)
    return None if found is None else SignatureVariable(found, obj)
