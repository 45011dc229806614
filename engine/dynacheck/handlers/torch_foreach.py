"""What optimizers and gradient clipping do with lists of tensors, and with numbers that a graph has as tensors."""

from __future__ import annotations

from typing import Any

import torch

from dynacheck.handlers.registry import handles, replaces
from dynacheck.handlers.torch_tensors import special
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.tensor import TensorVariable


@replaces(torch._C._group_tensors_by_device_and_dtype)
def group_tensors_by_device_and_dtype(tensorlistlist: Any, with_indices: bool) -> Any:
    """Lists of tensors that belong together place by place, split by where the tensor of the first list lives; a list
    may be empty."""
    groups: Any = {}
    for index, tensor in enumerate(tensorlistlist[0]):
        key = (tensor.device, tensor.dtype)
        if key not in groups:
            groups[key] = ([[] for _ in tensorlistlist], [])
        lists, indices = groups[key]
        for kept, given in zip(lists, tensorlistlist, strict=True):
            if given:
                kept.append(given[index])
        if with_indices:
            indices.append(index)
    return groups


# -- factors that are tensors: eager operators read their values


def _add(self: Any, other: Any, alpha: Any) -> Any:
    return self.add_(other * alpha)


def _addcdiv(self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    return self.add_(tensor1 / tensor2 * value)


def _foreach_pow(self: Any, exponents: Any) -> Any:
    return torch._foreach_pow([self for _ in exponents], exponents)


@special("add_")
def add_(
    tx: Tracer, tensor: TensorVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    if len(args) == 1 and _is_tensor(tx, kwargs.get("alpha")):
        return tx.call_python(_add, tensor, args[0], kwargs["alpha"])
    return tx.record("call_method", "add_", [tensor, *args], kwargs)


@special("addcdiv_")
def addcdiv_(
    tx: Tracer, tensor: TensorVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    if len(args) == 2 and _is_tensor(tx, kwargs.get("value")):
        return tx.call_python(_addcdiv, tensor, *args, kwargs["value"])
    return tx.record("call_method", "addcdiv_", [tensor, *args], kwargs)


@handles(torch._foreach_pow)
def foreach_pow(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker | None:
    if len(args) == 2 and not kwargs and _is_tensor(tx, args[0]):
        return tx.call_python(_foreach_pow, *args)
    return None


def _is_tensor(tx: Tracer, value: VariableTracker | None) -> bool:
    return value is not None and isinstance(value.realize(tx), TensorVariable)
