"""The guard on torch's global state: everything a graph depends on that no value of the frame shows.

One snapshot per entry, checked before anything else. Each field is read in two ways: by Python here, and by calling
torch's own C++ getter from the native program where that agrees with Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

import torch
import torch.utils._device

from dynacheck import _C
from dynacheck.guards.access import tensor_access
from dynacheck.guards.base import Change, Guard, Slots
from dynacheck.guards.held import Held

# What a native getter takes and gives: nothing, a device type, at::Context; or a word of the thread's dispatch keys.
_SIGNATURES: Final = {"byte()": 0, "int()": 1, "long()": 2, "byte(device)": 3, "byte(context)": 4, "keys": 5}
_GLOBAL: Final = 6  # an entry of a dict, by identity

Native = tuple[Any, ...]
"""(signature, address of the getter, argument, expected) as the native program wants it."""


@dataclass(frozen=True, slots=True)
class Field:
    """One piece of global state.

    Args:
        name: as explanations spell it.
        kind: one of `base.KINDS`.
        read: its value now, hashable; () and None are "nothing".
        symbol: C++ getter, or "".
        signature: one of `_SIGNATURES`.
        argument: device type or word, for the signatures that take one.
        implied: when the dispatch keys of the thread tell this field: "never", "empty" (nothing) or "always".
        sized: the getter gives the number of items, which is enough only for "nothing".
    """

    name: str
    kind: str
    read: Callable[[], Any]
    symbol: str = ""
    signature: str = "byte()"
    argument: int = 0
    implied: str = "never"
    sized: bool = False


def _modes(length: Callable[[], int], at: Callable[[int], Any]) -> tuple[Held, ...]:
    return tuple(Held(type(at(i))) for i in range(length()))


def _function_modes() -> tuple[Held, ...]:
    return _modes(torch._C._len_torch_function_stack, torch._C._get_function_stack_at)


def _dispatch_modes() -> tuple[Held, ...]:
    return _modes(torch._C._len_torch_dispatch_stack, torch._C._get_dispatch_stack_at)


def _function_disabled() -> int:
    if torch._C._is_torch_function_all_disabled():
        return 2
    return 0 if torch._C._is_torch_function_enabled() else 1


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


def _word(getter: Callable[[], Any]) -> int:
    word: int = getter().raw_repr()
    return word


def _context(name: str, kind: str, read: Callable[[], Any], method: str) -> Field:
    return Field(name, kind, read, f"_ZNK2at7Context{len(method)}{method}Ev", "byte(context)")


_DEVICE_TYPES: Final = {"cpu": 0, "cuda": 1}
_AUTOCAST_DTYPE: Final = "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE"
_FUNCTION_TLS: Final = "_ZN2at4impl22PythonTorchFunctionTLS"
_KEYS: Final = "_ZN3c104impl26raw_local_dispatch_key_setE"


def _autocast() -> Iterator[Field]:
    for device, number in _DEVICE_TYPES.items():
        enabled = partial(torch.is_autocast_enabled, device)
        yield Field(f"autocast for {device}", "autocast", enabled, implied="always")
        dtype = partial(torch.get_autocast_dtype, device)
        yield Field(
            f"autocast dtype for {device}", "autocast", dtype, _AUTOCAST_DTYPE, "byte(device)", number
        )


def _fields() -> Iterator[Field]:
    c, cuda = torch._C, torch.backends.cuda
    yield Field("grad mode", "grad_mode", torch.is_grad_enabled, "_ZN3c108GradMode10is_enabledEv")
    inference = "_ZN3c1013InferenceMode10is_enabledEv"
    yield Field("inference mode", "inference_mode", torch.is_inference_mode_enabled, inference)
    yield from _autocast()
    cache = "_ZN2at8autocast25is_autocast_cache_enabledEv"
    yield Field("autocast cache", "autocast", torch.is_autocast_cache_enabled, cache)
    default_dtype = "_ZN3c1031get_default_dtype_as_scalartypeEv"
    yield Field("default dtype", "default_dtype", torch.get_default_dtype, default_dtype)
    yield Field("default device", "default_device", _default_device)
    kind = "deterministic"
    yield _context(
        "deterministic algorithms", kind, c._get_deterministic_algorithms, "deterministicAlgorithms"
    )
    warn_only = c._get_deterministic_algorithms_warn_only
    yield _context("deterministic warn only", kind, warn_only, "deterministicAlgorithmsWarnOnly")
    fill = c._get_deterministic_fill_uninitialized_memory
    yield _context("deterministic fill", kind, fill, "deterministicFillUninitializedMemory")
    kind = "function_mode"
    yield Field("function modes", kind, _function_modes, f"{_FUNCTION_TLS}9stack_lenEv", "long()", sized=True)
    disabled = f"{_FUNCTION_TLS}18get_disabled_stateEv"
    yield Field("function modes disabled", kind, _function_disabled, disabled)
    yield Field("dispatch modes", kind, _dispatch_modes, implied="empty")
    kind = "global_state"
    yield Field("function transforms", kind, _transforms, implied="empty")
    yield Field("number of threads", kind, torch.get_num_threads, "_ZN2at15get_num_threadsEv", "int()")
    yield _context("float32 precision", kind, torch.get_float32_matmul_precision, "float32MatmulPrecision")
    fp16, bf16 = (
        c._get_cublas_allow_fp16_reduced_precision_reduction,
        c._get_cublas_allow_bf16_reduced_precision_reduction,
    )
    yield _context("FP16 reduction", kind, fp16, "allowFP16ReductionCuBLAS")
    yield _context("BF16 reduction", kind, bf16, "allowBF16ReductionCuBLAS")
    yield _context("flash attention", kind, cuda.flash_sdp_enabled, "userEnabledFlashSDP")
    yield _context(
        "memory-efficient attention", kind, cuda.mem_efficient_sdp_enabled, "userEnabledMemEfficientSDP"
    )
    yield _context("math attention", kind, cuda.math_sdp_enabled, "userEnabledMathSDP")
    yield _context("cuDNN attention", kind, cuda.cudnn_sdp_enabled, "userEnabledCuDNNSDP")
    yield _context("mkldnn", kind, c._get_mkldnn_enabled, "userEnabledMkldnn")
    yield _context("cuDNN", kind, c._get_cudnn_enabled, "userEnabledCuDNN")
    for i, getter in enumerate((c._dispatch_tls_local_include_set, c._dispatch_tls_local_exclude_set)):
        name = ("included", "excluded")[i] + " dispatch keys"
        yield Field(name, kind, partial(_word, getter), _KEYS, "keys", i)


FIELDS: Final[tuple[Field, ...]] = tuple(_fields())

_CODES: Final[dict[Any, int]] = {
    **{name: i for i, name in enumerate(("highest", "high", "medium"))},
    **{pair: i for i, pair in enumerate(((True, True), (False, True), (False, False)))},
}


def _code(value: Any) -> int | None:
    """What the native getter gives for a value, as far as it is a number there."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, torch.dtype):
        access = tensor_access()
        return None if access is None else access.dtype_codes.get(value)
    return (
        len(value)
        if value == () or (type(value) is tuple and isinstance(value[0], Held))
        else _CODES.get(value)
    )


def _agreements() -> list[tuple[tuple[int, int, int], int] | None]:
    """Per field: how to read it natively and what to xor its code with; None when that disagrees with Python."""
    tensor_access()  # finds the library
    readings = [
        (_SIGNATURES[f.signature], _C.native_symbol(f.symbol) if f.symbol else 0, f.argument) for f in FIELDS
    ]
    masks: list[int | None] = [None if r[1] == 0 else -1 for r in readings]

    def compare() -> None:
        for i, (f, reading) in enumerate(zip(FIELDS, readings)):
            if masks[i] is None:
                continue
            code, found = _code(f.read()), _C.ambient_read(*reading)
            mask = None if code is None else (code ^ found if f.signature == "keys" else 0)
            if code is None or masks[i] not in (-1, mask) or (code ^ found) != mask:
                masks[i] = None
            else:
                masks[i] = mask

    with torch._C.DisableTorchFunction():
        compare()
    compare()
    for context in (
        torch.no_grad(),
        torch.enable_grad(),
        torch.inference_mode(),
        torch.autocast("cpu", torch.float16),
    ):
        with context:
            compare()
    return [None if mask is None else (reading, mask) for reading, mask in zip(readings, masks)]


_native: list[list[tuple[tuple[int, int, int], int] | None]] = []  # one item once it is known


def native_fields() -> list[bool]:
    """For each of FIELDS, whether the native program reads it itself."""
    if not _native:
        _native.append(_agreements())
    return [r is not None for r in _native[0]] if _C.ambient_ready() else [False] * len(FIELDS)


@dataclass(frozen=True, slots=True)
class AmbientState(Guard):
    """torch's global state is what it was.

    Args:
        values: one per field of FIELDS.
    """

    values: tuple[Any, ...]
    native_op: ClassVar[str] = "AMBIENT"

    @classmethod
    def now(cls) -> AmbientState:
        """The state at this moment."""
        return cls(tuple(f.read() for f in FIELDS))

    def native_form(self) -> tuple[str, tuple[object, ...]]:
        """Operands: native reads, and whether the Python check is needed besides."""
        reads: list[Native] = []
        slow = False
        ready = native_fields()
        keys = all(r for f, r in zip(FIELDS, ready) if f.signature == "keys")
        for f, value, native, known in zip(FIELDS, self.values, ready, _native[0]):
            empty = value is None or value == ()
            code = _code(value)
            if native and known is not None and code is not None:
                (signature, address, argument), mask = known
                reads.append((signature, address, argument, (code ^ mask) & (2**64 - 1)))
                slow |= f.sized and not empty
            elif f.name == "default device" and empty:
                reads.append((_GLOBAL, torch.utils._device.__dict__, "CURRENT_DEVICE", None))
            elif not (keys and (f.implied == "always" or (f.implied == "empty" and empty))):
                slow = True
        return "AMBIENT", (tuple(reads), int(slow))

    def check(self, slots: Slots) -> bool:
        return all(f.read() == then for f, then in zip(FIELDS, self.values))

    def changes(self, slots: Slots, paths: Sequence[str] = ()) -> list[Change]:
        pairs = [(f, then, f.read()) for f, then in zip(FIELDS, self.values)]
        return [Change(f.kind, _plain(then), _plain(now), f.name) for f, then, now in pairs if then != now]

    def explain(self, slots: Slots) -> Change:
        return self.changes(slots)[0]

    def text(self, paths: Sequence[str]) -> str:
        state = ", ".join(
            f"{f.name}={_plain(v)}" for f, v in zip(FIELDS, self.values) if v is not None and v != ()
        )
        return f"___check_global_state({state})"


def _plain(value: Any) -> Any:
    return [v.name for v in value] if type(value) is tuple and value and isinstance(value[0], Held) else value
