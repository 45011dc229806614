"""What a test may change for those after it: compiler settings, the stance, global flags."""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

_CONFIGS = ("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config")


class Leak(NamedTuple):
    """Something a test changed and didn't put back: repr before and after."""

    name: str
    old: str
    new: str


class Flag(NamedTuple):
    """A global setting of torch."""

    name: str
    get: Callable[[Any], Any]
    put: Callable[[Any, Any], None]


def _put_deterministic(torch: Any, value: tuple[bool, bool]) -> None:
    torch.use_deterministic_algorithms(value[0], warn_only=value[1])


def _put_autocast(kind: str) -> Callable[[Any, Any], None]:
    def put(torch: Any, value: tuple[bool, Any]) -> None:
        torch.set_autocast_enabled(kind, value[0])
        torch.set_autocast_dtype(kind, value[1])

    return put


def _get_autocast(kind: str) -> Callable[[Any], Any]:
    return lambda torch: (torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind))


def _put_device(torch: Any, value: Any) -> None:
    torch.set_default_device(value)


def _get_device(torch: Any) -> Any:
    # torch.get_default_device() gives cpu where nobody has set one, and setting that leaves a mode behind
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else context.device


FLAGS = (
    Flag("default dtype", lambda t: t.get_default_dtype(), lambda t, v: t.set_default_dtype(v)),
    Flag("default device", _get_device, _put_device),
    Flag("grad mode", lambda t: t.is_grad_enabled(), lambda t, v: t._C._set_grad_enabled(v)),
    Flag(
        "deterministic algorithms",
        lambda t: (
            t.are_deterministic_algorithms_enabled(),
            t.is_deterministic_algorithms_warn_only_enabled(),
        ),
        _put_deterministic,
    ),
    Flag(
        "float32 matmul precision",
        lambda t: t.get_float32_matmul_precision(),
        lambda t, v: t.set_float32_matmul_precision(v),
    ),
    Flag("autocast on cpu", _get_autocast("cpu"), _put_autocast("cpu")),
    Flag("autocast on cuda", _get_autocast("cuda"), _put_autocast("cuda")),
    Flag("number of threads", lambda t: t.get_num_threads(), lambda t, v: t.set_num_threads(v)),
    Flag(
        "cudnn benchmark",
        lambda t: t.backends.cudnn.benchmark,
        lambda t, v: t._C._set_cudnn_benchmark(v),  # which is never refused, as the flag may be
    ),
)


class Snapshot:
    """The state before a test.

    Args:
        settings: the engine's module of settings, or None if it isn't loaded.
    """

    def __init__(self, settings: Any = None) -> None:
        torch = sys.modules.get("torch")
        self._torch: Any = torch
        self._flags = [] if torch is None else [flag.get(torch) for flag in FLAGS]
        self._configs = {name: _values(name) for name in _CONFIGS if name in sys.modules}
        self._settings = settings
        self._base = None if settings is None else settings.current_base()
        self._stance = _stance()

    def restore(self) -> list[Leak]:
        """Put back what changed; returns what that was."""
        leaks: list[Leak] = []
        if self._torch is not None:
            for flag, old in zip(FLAGS, self._flags, strict=True):
                new = flag.get(self._torch)
                if new != old:
                    flag.put(self._torch, old)
                    leaks.append(Leak(flag.name, repr(old), repr(new)))
        for name, values in self._configs.items():
            leaks += _restore_config(name, values)
        leaks += self._restore_settings()
        stance = _stance()
        if stance is not None and self._stance is not None and stance != self._stance:
            setattr(sys.modules["torch._dynamo.eval_frame"], "_stance", self._stance)  # noqa: B010
            leaks.append(Leak("torch.compiler stance", self._stance.stance, stance.stance))
        return leaks

    def _restore_settings(self) -> list[Leak]:
        if self._settings is None:
            return []
        old: Any = self._base
        new = self._settings.current_base()
        if new == old:
            return []
        self._settings.reset_base(old)
        names = [name for name in type(old).__dataclass_fields__ if getattr(old, name) != getattr(new, name)]
        return [
            Leak(f"dynacheck.config.{name}", repr(getattr(old, name)), repr(getattr(new, name)))
            for name in names
        ]


def _stance() -> Any:
    return getattr(sys.modules.get("torch._dynamo.eval_frame"), "_stance", None)


_UNSET = object()
_PLAIN = (bool, int, float, str, type(None))


def _values(name: str) -> dict[str, Any]:
    """What the user has set in one of torch's config modules, deeply copied.

    Reads the entries themselves: torch's own copy of all values takes four times as long, for every test. Where
    the entries look different, torch's copy is taken.
    """
    module: Any = sys.modules[name]
    try:
        found = {key: entry.user_override.get(_UNSET) for key, entry in module._config.items()}
    except AttributeError:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            copied: dict[str, Any] = module.get_config_copy()
        return copied
    unset = _unset()
    return {
        key: value if type(value) in _PLAIN else copy.deepcopy(value)
        for key, value in found.items()
        if value is not _UNSET and value is not unset
    }


def _unset() -> Any:
    """What torch puts where nothing is set."""
    return getattr(sys.modules.get("torch.utils._config_module"), "_UNSET_SENTINEL", _UNSET)


def _default(module: Any, key: str) -> Any:
    """The value of a setting that nobody set."""
    entry = module._config[key]
    environment = getattr(entry, "env_value_default", _UNSET)
    unset = environment is _UNSET or environment is _unset()
    return copy.deepcopy(entry.default if unset else environment)


def _restore_config(name: str, old: dict[str, Any]) -> list[Leak]:
    new = _values(name)
    if new == old:
        return []
    module = sys.modules[name]
    leaks = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for key in sorted(new.keys() | old.keys()):
            before = old[key] if key in old else _default(module, key)
            after = new[key] if key in new else _default(module, key)
            if before != after:
                _put(module, key, before)
                leaks.append(Leak(f"{name}.{key}", repr(before), repr(after)))
    return leaks


def _put(config: Any, key: str, value: Any) -> None:
    *outer, last = key.split(".")
    for part in outer:
        config = getattr(config, part)
    setattr(config, last, value)
