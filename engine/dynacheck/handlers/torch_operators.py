"""Which callables of torch become nodes of the graph, and under which target."""

from __future__ import annotations

import math
import types
from typing import Any, Final

import torch

_C_TYPES: Final = (types.BuiltinFunctionType, types.BuiltinMethodType)
_METHOD_TYPES: Final = (types.MethodDescriptorType, types.WrapperDescriptorType)

# Python functions of these modules are recorded as they are, not inlined (as torch does).
_RECORDED_MODULES: Final = frozenset({
    "torch.nn.functional", "torch.functional", "torch", "torch._C._nn", "torch._lowrank", "torch.special", "torch.fft",
    "torch.linalg", "torch.nn.init", "torch.masked._ops",
})  # fmt: skip
# C functions that only ask or set state: answered while translating, never recorded.
_NOT_OPERATORS: Final = frozenset({
    "is_grad_enabled", "is_inference_mode_enabled", "is_autocast_enabled", "get_default_dtype", "_set_grad_enabled",
    "is_floating_point", "is_complex", "numel", "is_tensor", "is_storage", "get_autocast_dtype",
    "is_autocast_cache_enabled",
    "manual_seed", "seed", "set_default_dtype", "compile", "_assert", "typename",
    "is_deterministic_algorithms_warn_only_enabled",
    "are_deterministic_algorithms_enabled", "get_num_threads", "_dynamo", "get_rng_state", "set_rng_state",
    "initial_seed", "save", "load",
    "get_default_device", "set_default_device", "get_device_module", "set_printoptions", "use_deterministic_algorithms",
    "sym_int", "sym_float", "sym_max", "sym_min", "sym_not", "sym_ite", "vmap", "cond", "_check",
    "_check_is_size", "_check_value",
})  # fmt: skip
_C_MODULES: Final = frozenset({
    None, "torch", "torch._C", "torch._C._nn", "torch._C._special", "torch._C._linalg", "torch._C._fft",
    "torch._C._sparse",
    "torch._C._nested", "torch._VF", "torch._C._VariableFunctions",
})  # fmt: skip
_VARIABLE_FUNCTIONS: Final = torch._C._VariableFunctions


def operator_target(fn: Any) -> Any | None:
    """The FX target that a call of a torch callable is recorded as, or None if it is no operator.

    Args:
        fn: a function, C function or operator packet.

    Returns:
        The target, most often `fn` itself.
    """
    if isinstance(fn, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return fn
    name = getattr(fn, "__name__", "")
    if name in _NOT_OPERATORS:
        return None
    if isinstance(fn, types.FunctionType):
        return fn if fn.__module__ in _RECORDED_MODULES and not _is_inlined(fn) else None
    if isinstance(fn, _C_TYPES):
        owner = getattr(fn, "__self__", None)
        module = getattr(fn, "__module__", None)
        if module == "math" or owner is math:
            return None
        if owner is _VARIABLE_FUNCTIONS or (isinstance(owner, type) and owner.__module__.startswith("torch")):
            return fn
        if isinstance(owner, types.ModuleType) and owner.__name__ in _C_MODULES:
            return fn
        if module in _C_MODULES and module is not None:
            return fn
    return None


def method_name(fn: Any) -> str | None:
    """The tensor method that an unbound method of `torch.Tensor` is, or None."""
    if (
        isinstance(fn, _METHOD_TYPES)
        and issubclass(torch.Tensor, fn.__objclass__)
        and fn.__objclass__ is not object
    ):
        return str(fn.__name__)
    if isinstance(fn, types.FunctionType) and fn.__module__ == "torch._tensor":
        name = fn.__name__
        return name if getattr(torch.Tensor, name, None) is fn else None
    return None


def _is_inlined(fn: types.FunctionType) -> bool:
    """Whether it is interpreted: helpers, which start with an underscore, and what calls a function that it is given."""
    return fn.__name__.startswith("_") or fn.__name__ == "triplet_margin_with_distance_loss"
