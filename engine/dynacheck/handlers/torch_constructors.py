"""Tensors made, told and converted by the name of their type: `torch.LongTensor`, `Tensor.new`, `Tensor.type`."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import torch

from dynacheck.handlers.registry import handles
from dynacheck.handlers.torch_tensors import special
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.sequences import SizeVariable
from dynacheck.variables.tensor import TensorVariable

TYPES: Final = type(torch.LongTensor)
_NAMES: Final = {
    torch.float32: "Float", torch.float64: "Double", torch.float16: "Half", torch.bfloat16: "BFloat16",
    torch.uint8: "Byte",
    torch.int8: "Char", torch.int16: "Short", torch.int32: "Int", torch.int64: "Long", torch.bool: "Bool",
    torch.complex64: "ComplexFloat", torch.complex128: "ComplexDouble",
}  # fmt: skip


def _spread(tx: Tracer, args: tuple[VariableTracker, ...]) -> list[VariableTracker]:
    """Arguments with a size as its numbers: in a graph it is a tuple, which would be data."""
    if len(args) == 1 and isinstance(args[0], SizeVariable):
        return [*args[0].items(tx)]
    return [*args]


def _make(cls: Any, tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    return tx.record("call_function", cls, _spread(tx, args), kwargs)


for _cls in (torch.Tensor, *(c for c in vars(torch).values() if isinstance(c, TYPES))):
    handles(_cls)(partial(_make, _cls))


@special("new")
def new(
    tx: Tracer, tensor: TensorVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    return tx.record("call_method", "new", [tensor, *_spread(tx, tuple(args))], kwargs)


@special("type")
def type_(
    tx: Tracer, tensor: TensorVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    wanted = getattr(args[0].realize(tx), "value", None) if args else None
    if isinstance(wanted, TYPES):
        args = [tx.constant(_name_of(wanted)), *args[1:]]  # a graph's code can't name the type
    if args or kwargs:
        return tx.record("call_method", "type", [tensor, *args], kwargs)
    return tx.constant(type_name(tensor))


def _name_of(cls: Any) -> str:
    return f"{cls.__module__}.{cls.__name__}"


def type_name(tensor: TensorVariable) -> str:
    """What `Tensor.type()` returns."""
    facts = tensor.ref.facts
    prefix = "torch." if facts.device.type == "cpu" else f"torch.{facts.device.type}."
    return f"{prefix}{_NAMES[facts.dtype]}Tensor"


def is_of_type(obj: VariableTracker | None, cls: Any) -> bool:
    """Whether an object is a tensor of a type like `torch.LongTensor`."""
    return isinstance(cls, TYPES) and isinstance(obj, TensorVariable) and type_name(obj) == _name_of(cls)
