"""The pieces of torch's global state that a graph depends on, and how Python and torch's C++ read each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch
import torch.utils._device

from dynacheck.guards.held import Held, held


@dataclass(frozen=True, slots=True)
class Field:
    """One piece of global state.

    Args:
        name: as explanations spell it.
        kind: one of `base.KINDS`.
        read: its value now, hashable; None and () are "nothing".
        how: how the native program reads it (`readings.SIGNATURES`), or "".
        symbol: the C++ getter, for the ways that need one.
        argument: device type, word of the keys, or backend and operator.
        implied: whether the thread's dispatch keys tell the value as well: "never", "empty" (only nothing) or "always".
    """

    name: str
    kind: str
    read: Callable[[], Any]
    how: str = ""
    symbol: str = ""
    argument: int = 0
    implied: str = "never"


def _modes(length: Callable[[], int], at: Callable[[int], Any]) -> tuple[Held, ...]:
    return tuple(held(type(at(i))) for i in range(length()))


def _function_modes() -> tuple[int, tuple[Held, ...]]:
    disabled = 0 if torch._C._is_torch_function_enabled() else 1
    if torch._C._is_torch_function_all_disabled():
        disabled = 2
    return disabled, _modes(torch._C._len_torch_function_stack, torch._C._get_function_stack_at)


def _dispatch_modes() -> tuple[Held, ...]:
    return _modes(torch._C._len_torch_dispatch_stack, torch._C._get_dispatch_stack_at)


def _default_device() -> str | None:
    device = torch.utils._device.CURRENT_DEVICE
    for i in range(torch._C._len_torch_function_stack()):
        mode = torch._C._get_function_stack_at(i)
        if type(mode) is torch.utils._device.DeviceContext:  # `with torch.device(...)` sets nothing else
            device = mode.device
    return None if device is None else str(device)


def _transforms() -> tuple[str, ...]:
    stack = torch._C._functorch.get_interpreter_stack()
    return tuple(f"{i.key().name} {i.level()}" for i in stack or ())


def _tf32() -> bool:
    # not `allow_tf32`, which raises when the old and the new settings were mixed
    precision: str = torch._C._get_fp32_precision_getter("cuda", "matmul")
    return precision == "tf32"


def _word(getter: Callable[[], Any]) -> int:
    word: int = getter().raw_repr()
    return word


def _context(name: str, kind: str, read: Callable[[], Any], method: str) -> Field:
    return Field(name, kind, read, "context", f"_ZNK2at7Context{len(method)}{method}Ev")


_DEVICE_TYPES: Final = {"cpu": 0, "cuda": 1}
_AUTOCAST_DTYPE: Final = "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE"
_PRECISION: Final = "_ZNK2at7Context16float32PrecisionENS_14Float32BackendENS_9Float32OpE"
_CUDA_MATMUL: Final = 1 << 8 | 3  # at::Float32Backend::CUDA, at::Float32Op::MATMUL


def _autocast() -> Iterator[Field]:
    kind = "autocast"
    for device, number in _DEVICE_TYPES.items():
        enabled = partial(torch.is_autocast_enabled, device)
        yield Field(f"autocast for {device}", kind, enabled, implied="always")
        dtype = partial(torch.get_autocast_dtype, device)
        yield Field(f"autocast dtype for {device}", kind, dtype, "byte(device)", _AUTOCAST_DTYPE, number)
    cache = "_ZN2at8autocast25is_autocast_cache_enabledEv"
    yield Field("autocast cache", kind, torch.is_autocast_cache_enabled, "byte()", cache)


def _deterministic() -> Iterator[Field]:
    c, kind = torch._C, "deterministic"
    yield _context(
        "deterministic algorithms", kind, c._get_deterministic_algorithms, "deterministicAlgorithms"
    )
    warn_only = c._get_deterministic_algorithms_warn_only
    yield _context("deterministic warn only", kind, warn_only, "deterministicAlgorithmsWarnOnly")
    fill = c._get_deterministic_fill_uninitialized_memory
    yield _context("deterministic fill", kind, fill, "deterministicFillUninitializedMemory")


def _numerics() -> Iterator[Field]:
    c, cuda, kind = torch._C, torch.backends.cuda, "global_state"
    yield Field("TF32 matmul", kind, _tf32, "precision", _PRECISION, _CUDA_MATMUL)
    fp16 = c._get_cublas_allow_fp16_reduced_precision_reduction
    yield _context("FP16 reduction", kind, fp16, "allowFP16ReductionCuBLAS")
    bf16 = c._get_cublas_allow_bf16_reduced_precision_reduction
    yield _context("BF16 reduction", kind, bf16, "allowBF16ReductionCuBLAS")
    yield _context("flash attention", kind, cuda.flash_sdp_enabled, "userEnabledFlashSDP")
    efficient = cuda.mem_efficient_sdp_enabled
    yield _context("memory-efficient attention", kind, efficient, "userEnabledMemEfficientSDP")
    yield _context("math attention", kind, cuda.math_sdp_enabled, "userEnabledMathSDP")
    yield _context("cuDNN attention", kind, cuda.cudnn_sdp_enabled, "userEnabledCuDNNSDP")
    yield _context("mkldnn", kind, c._get_mkldnn_enabled, "userEnabledMkldnn")
    yield _context("cuDNN", kind, c._get_cudnn_enabled, "userEnabledCuDNN")


def _fields() -> Iterator[Field]:
    c, state = torch._C, "global_state"
    yield Field("grad mode", "grad_mode", torch.is_grad_enabled, "grad", "_ZN3c108GradMode10is_enabledEv")
    yield Field("inference mode", "inference_mode", torch.is_inference_mode_enabled, implied="always")
    yield from _autocast()
    dtype = "_ZN3c1031get_default_dtype_as_scalartypeEv"
    yield Field("default dtype", "default_dtype", torch.get_default_dtype, "byte()", dtype)
    yield Field("default device", "default_device", _default_device, "global")
    yield from _deterministic()
    yield Field("function modes", "function_mode", _function_modes, "functions")
    yield Field("dispatch modes", "function_mode", _dispatch_modes, implied="empty")
    yield Field("function transforms", state, _transforms, implied="empty")
    yield Field("number of threads", state, torch.get_num_threads, "int()", "_ZN2at15get_num_threadsEv")
    yield from _numerics()
    for i, getter in enumerate((c._dispatch_tls_local_include_set, c._dispatch_tls_local_exclude_set)):
        name = ("included", "excluded")[i] + " dispatch keys"
        yield Field(name, state, partial(_word, getter), "keys", argument=i)


FIELDS: Final[tuple[Field, ...]] = tuple(_fields())


def read_all() -> tuple[Any, ...]:
    """The value of every field, now."""
    return tuple(f.read() for f in FIELDS)
