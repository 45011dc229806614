"""The ambient state that decides what an operator returns: read as one hashable value, saved and restored."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import overrides
from torch.utils import _device as torch_device
from torch.utils._device import DeviceContext

_AUTOCAST_DEVICES = ("cpu", "cuda", "xpu", "mps", "hpu", "xla", "mtia", "ipu", "privateuseone")


def _autocast_devices() -> tuple[str, ...]:
    """The device kinds this torch knows autocast for."""
    known = []
    for device in _AUTOCAST_DEVICES:
        try:
            torch.is_autocast_enabled(device)
            torch.get_autocast_dtype(device)
        except (RuntimeError, TypeError):
            continue
        known.append(device)
    return tuple(known)


AUTOCAST_DEVICES = _autocast_devices()
_CPU = torch.device("cpu")
_mode_stack: Callable[[], list[Any]] = overrides._get_current_function_mode_stack


def autocast_state() -> tuple[tuple[str, torch.dtype], ...]:
    """The devices with autocast on, each with its dtype."""
    return tuple((d, torch.get_autocast_dtype(d)) for d in AUTOCAST_DEVICES if torch.is_autocast_enabled(d))


def switches() -> tuple[Any, ...]:
    """Backend switches that decide which kernel runs, hence what a result's strides are."""
    cuda: Any = torch.backends.cuda
    cudnn: Any = torch.backends.cudnn
    return (
        cuda.flash_sdp_enabled(),
        cuda.mem_efficient_sdp_enabled(),
        cuda.math_sdp_enabled(),
        cuda.cudnn_sdp_enabled(),
        torch._C._get_cudnn_enabled(),
        cudnn.is_available(),
        torch._C._get_mkldnn_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.mha.get_fastpath_enabled(),
    )


@dataclass(frozen=True, slots=True)
class Ambient:
    """A snapshot of ambient state. Hashable; equal snapshots mean equal metadata propagation."""

    grad: bool
    inference: bool
    autocast: tuple[tuple[str, torch.dtype], ...]
    default_dtype: torch.dtype
    default_device: torch.device
    switches: tuple[Any, ...]


def default_device() -> torch.device:
    """The device of tensors made without one. Reads the mode stack: asking torch would run user modes."""
    for mode in reversed(_mode_stack()):
        if isinstance(mode, DeviceContext):
            device: torch.device = mode.device
            return device
    return _CPU


def ambient() -> Ambient:
    """The ambient state now. Runs no user mode."""
    with torch._C.DisableTorchFunction():
        return Ambient(
            grad=torch.is_grad_enabled(),
            inference=torch.is_inference_mode_enabled(),
            autocast=autocast_state(),
            default_dtype=torch.get_default_dtype(),
            default_device=default_device(),
            switches=switches(),
        )


def _autocast_full() -> tuple[tuple[str, bool, torch.dtype], ...]:
    return tuple((d, torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in AUTOCAST_DEVICES)


class AmbientStateChanged(AssertionError):
    """Ambient state that should have been restored differs."""


def check_unchanged(before: Ambient) -> None:
    """Assert that ambient state equals an earlier snapshot.

    Args:
        before: the snapshot.

    Raises:
        AmbientStateChanged: naming every field that differs.
    """
    now = ambient()
    if now != before:
        fields = [
            f"{name}: {getattr(before, name)} -> {getattr(now, name)}"
            for name in Ambient.__slots__
            if getattr(now, name) != getattr(before, name)
        ]
        raise AmbientStateChanged("ambient state changed: " + "; ".join(fields))


class RandomStates:
    """The states of Python's and torch's random generators, of the devices in use.

    Args:
        devices: CUDA devices to include; all initialised ones when None.
    """

    def __init__(self, devices: Sequence[torch.device] | None = None) -> None:
        self.python = random.getstate()
        self.cpu = torch.get_rng_state()
        self.cuda: dict[int, torch.Tensor] = {}
        cuda: Any = torch.cuda
        if cuda.is_initialized() and not torch.cuda.is_current_stream_capturing():
            wanted = (
                range(torch.cuda.device_count())
                if devices is None
                else {d.index for d in devices if d.type == "cuda"}
            )
            self.cuda = {i: torch.cuda.get_rng_state(i) for i in wanted if i is not None}

    def restore(self) -> None:
        """Put the states back."""
        random.setstate(self.python)
        self.restore_torch()

    def restore_torch(self) -> None:
        """Put those of torch back."""
        torch.set_rng_state(self.cpu)
        for index, state in self.cuda.items():
            torch.cuda.set_rng_state(state, index)


_inference_modes: Final[list[Any]] = []


def enter_inference_mode(mode: bool) -> Any:
    """Enter inference mode: until `exit_inference_mode` of what is returned, or the end of the preserving block."""
    context: Any = torch._C._InferenceMode(mode)
    context.__enter__()
    _inference_modes.append(context)
    return context


def exit_inference_mode(context: Any) -> None:
    """Leave an inference mode."""
    _inference_modes.remove(context)
    context.__exit__(None, None, None)


@contextmanager
def preserved(devices: Sequence[torch.device] | None = None) -> Iterator[Ambient]:
    """Run a block and put ambient state and random states back, whatever happens in it.

    Args:
        devices: devices whose random state is kept (CPU always; all initialised CUDA devices when None).

    Yields:
        The snapshot of the state on entry.
    """
    snapshot = ambient()
    modes, inference_modes = tuple(_mode_stack()), len(_inference_modes)
    device = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None), torch_device.CURRENT_DEVICE
    with torch._C.DisableTorchFunction():
        full = _autocast_full()
        cache = torch.is_autocast_cache_enabled()
        rng = RandomStates(devices)
    try:
        yield snapshot
    finally:
        for context in reversed(_inference_modes[inference_modes:]):
            exit_inference_mode(context)
        now = tuple(_mode_stack())
        if len(now) != len(modes) or any(a is not b for a, b in zip(now, modes)):
            for _ in now:
                torch._C._pop_torch_function_stack()
            for mode in modes:
                torch._C._push_on_torch_function_stack(mode)
        torch._GLOBAL_DEVICE_CONTEXT.device_context, torch_device.CURRENT_DEVICE = device
        with torch._C.DisableTorchFunction():
            if ambient() != snapshot or _autocast_full() != full:
                _restore(snapshot, full)
            if torch.is_autocast_cache_enabled() != cache:
                torch.set_autocast_cache_enabled(cache)
            rng.restore()
        check_unchanged(snapshot)


def _restore(to: Ambient, autocast: tuple[tuple[str, bool, torch.dtype], ...]) -> None:
    """Set grad mode, autocast, default dtype and deterministic flags back."""
    if torch.is_inference_mode_enabled() == to.inference:
        torch._C._set_grad_enabled(to.grad)
    for device, enabled, dtype in autocast:
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)
    torch.set_default_dtype(to.default_dtype)
    names = (
        torch.backends.cuda.enable_flash_sdp,
        torch.backends.cuda.enable_mem_efficient_sdp,
        torch.backends.cuda.enable_math_sdp,
        torch.backends.cuda.enable_cudnn_sdp,
        torch._C._set_cudnn_enabled,
    )
    for setter, value in zip(names, to.switches):
        setter(value)
    torch._C._set_mkldnn_enabled(to.switches[6])
    torch.use_deterministic_algorithms(to.switches[7], warn_only=to.switches[8])
    torch.backends.mha.set_fastpath_enabled(to.switches[9])
