"""Operators whose metadata plain meta tensors tell: the same on every device, and without autocast.

Fake tensors take milliseconds for some of these (their kernels are written in Python), meta tensors
microseconds. An operator belongs here only if its C++ meta kernel gives what eager gives on strided tensors
of any device; the tests hold the list to real runs in every variant, and the sweep over the operator database
goes through it too.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, Final

import torch

from dynacheck.graph.facts import TensorRef
from dynacheck.graph.fromfacts import getter
from dynacheck.graph.state import default_device

_METHODS_AND_FUNCTIONS: Final = (
    # products
    "linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "__matmul__",
    # shapes
    "view", "reshape", "view_as", "reshape_as", "transpose", "permute", "t", "swapaxes", "swapdims",
    "movedim", "flatten", "unflatten", "unsqueeze", "squeeze", "expand", "expand_as", "narrow", "select",
    "chunk", "split", "split_with_sizes", "unbind", "contiguous", "clone", "detach", "cat", "concat",
    "stack", "repeat", "adjoint",
    # arithmetic and comparison
    "add", "sub", "mul", "div", "true_divide", "neg", "pow", "rsub", "add_", "sub_", "mul_", "div_", "neg_",
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__neg__",
    "__pow__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "eq", "ne", "lt", "le", "gt", "ge",
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "maximum", "minimum", "where",
    "masked_fill", "masked_fill_", "clamp",
    # pointwise
    "relu", "gelu", "silu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "abs", "erf",
    "reciprocal",
    # reductions and normalisation
    "sum", "mean", "softmax", "log_softmax", "layer_norm", "cumsum", "amax", "amin", "embedding", "dropout",
    # new tensors like others
    "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like",
    "new_zeros", "new_ones", "new_empty", "new_full",
)  # fmt: skip

_FACTORIES: Final = frozenset(
    (
        torch.zeros,
        torch.ones,
        torch.full,
        torch.empty,
        torch.rand,
        torch.randn,
        torch.arange,
        torch.eye,
        torch.linspace,
    )
)
_ATTRIBUTES: Final = frozenset(map(getter, ("T", "mT", "H", "mH", "real", "data", "grad")))

_OPERATORS: Final = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pow, operator.matmul,
    operator.iadd, operator.isub, operator.imul, operator.itruediv,
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
)  # fmt: skip

_METHODS: Final = frozenset(n for n in _METHODS_AND_FUNCTIONS if hasattr(torch.Tensor, n))
_OWNERS: Final[tuple[Any, ...]] = (torch, torch.Tensor, torch._C._nn, torch.nn.functional)
_FUNCTIONS: Final = frozenset(
    getattr(owner, name) for owner in _OWNERS for name in _METHODS_AND_FUNCTIONS if hasattr(owner, name)
) | frozenset(_OPERATORS)
_GETITEMS: Final = frozenset({operator.getitem, torch.Tensor.__getitem__})
_PLAIN_INDICES: Final = (int, slice, type(None), type(Ellipsis))


def _is_basic_index(index: Any) -> bool:
    items: Iterable[Any] = index if isinstance(index, tuple) else (index,)
    return all(isinstance(i, _PLAIN_INDICES) and not isinstance(i, bool) for i in items)


def device_of(
    op: str, target: Any, args: Sequence[Any], kwargs: dict[str, Any], refs: Sequence[TensorRef]
) -> torch.device | None:
    """The device whose tensors plain meta tensors may stand for in a call.

    Args:
        op: "call_function", "call_method" or "attribute".
        target: the callable or method name.
        args: arguments with TensorRefs.
        kwargs: keyword arguments with TensorRefs.
        refs: the TensorRefs in the arguments.

    Returns:
        The device, or None if the call is not one of those: fake tensors tell then.
    """
    if "out" in kwargs or "generator" in kwargs or torch._C._is_any_autocast_enabled():
        return None
    if not refs:
        return _factory_device(target, kwargs)
    if "device" in kwargs or not _is_listed(op, target, args):
        return None
    device = refs[0].facts.device
    return device if all(r.facts.device == device for r in refs) else None


def _is_listed(op: str, target: Any, args: Sequence[Any]) -> bool:
    if op == "call_method":
        return target in _METHODS or (target == "__getitem__" and _is_basic_index(args[1]))
    try:
        if op == "attribute":
            return target in _ATTRIBUTES
        return target in _FUNCTIONS or (target in _GETITEMS and _is_basic_index(args[1]))
    except TypeError:  # unhashable
        return False


def _factory_device(target: Any, kwargs: dict[str, Any]) -> torch.device | None:
    """The device of a new tensor, if it is one that needs no hardware to be asked about."""
    try:
        if target not in _FACTORIES or kwargs.get("pin_memory"):
            return None
    except TypeError:
        return None
    asked = kwargs.get("device")
    device = default_device() if asked is None else torch.device(asked)
    return device if device.type in ("cpu", "meta") else None
