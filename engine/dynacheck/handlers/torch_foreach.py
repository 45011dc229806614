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


def _addcmul(self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    return self.add_(tensor1 * tensor2 * value)


def _sum_with_quotient(self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    return self + tensor1 / tensor2 * value


def _full(size: Any, fill_value: Any, **kwargs: Any) -> Any:
    if kwargs.get("dtype") is None:  # that of a number of the kind, whatever the tensor's width
        whole = torch.bool if fill_value.dtype is torch.bool else torch.int64
        kwargs["dtype"] = torch.get_default_dtype() if fill_value.is_floating_point() else whole
    return torch.empty(size, **kwargs).fill_(fill_value)


def _foreach_pow(self: Any, exponents: Any) -> Any:
    return torch._foreach_pow([self for _ in exponents], exponents)


def _foreach_lerp(self: Any, ends: Any, weight: Any) -> Any:
    for tensor, end in zip(self, ends, strict=True):
        tensor.lerp_(end, weight)
    return self


def _with_tensor_factor(name: str, count: int, factor: str, instead: Any) -> None:
    """A method that writes to its tensor: another way, where its factor is a tensor."""

    @special(name)
    def method(
        tx: Tracer, tensor: TensorVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if len(args) == count and _is_tensor(tx, kwargs.get(factor)):
            return tx.call_python(instead, tensor, *args, kwargs[factor])
        return tx.record("call_method", name, [tensor, *args], kwargs)


_with_tensor_factor("add_", 1, "alpha", _add)
_with_tensor_factor("addcdiv_", 2, "value", _addcdiv)
_with_tensor_factor("addcmul_", 2, "value", _addcmul)


@handles(torch._foreach_lerp_)
def foreach_lerp_(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker | None:
    if len(args) == 3 and not kwargs and _is_tensor(tx, args[2]):
        return tx.call_python(_foreach_lerp, *args)
    return None


@handles(torch._foreach_pow)
def foreach_pow(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker | None:
    if len(args) == 2 and not kwargs and _is_tensor(tx, args[0]):
        return tx.call_python(_foreach_pow, *args)
    return None


@handles(torch.addcdiv)
def addcdiv(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker | None:
    if len(args) == 3 and set(kwargs) == {"value"} and _is_tensor(tx, kwargs["value"]):
        return tx.call_python(_sum_with_quotient, *args, kwargs["value"])
    return None


@handles(torch.full)
def full(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker | None:
    if len(args) == 1 and "fill_value" in kwargs:
        args = (*args, kwargs.pop("fill_value"))
    value = args[1].realize(tx) if len(args) == 2 else None
    if (
        isinstance(value, TensorVariable)
        and not value.ref.facts.shape
        and not value.ref.facts.dtype.is_complex
    ):
        return tx.call_python(_full, *args, **kwargs)
    return None


def _is_tensor(tx: Tracer, value: VariableTracker | None) -> bool:
    return value is not None and isinstance(value.realize(tx), TensorVariable)
