"""Settings of the engine: attributes of this module, an overlay for `with` blocks, environment variables."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from dynacheck import interop


def _option(default: Any, text: str, *, torch: str | None = None, guarded: bool = False) -> Any:
    return field(default=default, metadata={"help": text, "torch": torch, "guarded": guarded})


@dataclass(frozen=True, slots=True)
class Config:
    """The engine's settings. Each is also an environment variable, `DYNACHECK_` and the name in capitals."""

    recompile_limit: int = _option(
        8, "entries per code object before further calls run eagerly", torch="recompile_limit"
    )
    accumulated_recompile_limit: int = _option(
        256, "entries over all resume functions of a code object", torch="accumulated_recompile_limit"
    )
    fail_on_recompile_limit_hit: bool = _option(
        False, "raise instead of running eagerly at the limit", torch="fail_on_recompile_limit_hit"
    )
    error_on_recompile: bool = _option(False, "raise at the first recompile", torch="error_on_recompile")
    raise_internal_errors: bool = _option(
        False, "raise the engine's own faults instead of running the frame eagerly"
    )
    capture_scalar_outputs: bool = _option(
        False,
        "`.item()` becomes an unbacked symbol instead of a graph break",
        torch="capture_scalar_outputs",
        guarded=True,
    )
    capture_dynamic_output_shape_ops: bool = _option(
        False,
        "operators with data-dependent sizes are captured",
        torch="capture_dynamic_output_shape_ops",
        guarded=True,
    )
    automatic_dynamic_shapes: bool = _option(
        True, "a size that changed becomes a symbol", torch="automatic_dynamic_shapes", guarded=True
    )
    assume_static_by_default: bool = _option(
        True, "sizes are static until they change", torch="assume_static_by_default", guarded=True
    )
    specialize_int: bool = _option(False, "ints never become symbols", torch="specialize_int", guarded=True)
    specialize_float: bool = _option(
        False, "floats never become symbols", torch="specialize_float", guarded=True
    )
    allow_unspec_int_on_nn_module: bool = _option(
        False, "ints on modules may become symbols", torch="allow_unspec_int_on_nn_module", guarded=True
    )
    suppress_errors: bool = _option(
        False, "run the frame eagerly when a backend raises", torch="suppress_errors"
    )
    split_more: bool = _option(
        False,
        "trace what torch breaks at though it need not, split where torch gives the frame up",
        guarded=True,
    )
    skip_modules: str = _option(
        "", "modules and packages that are never traced, comma separated", guarded=True
    )
    verbose: bool = _option(
        False, "tracebacks keep the engine's own frames (those of its own faults always do)", torch="verbose"
    )
    verify_guards: bool = _option(
        False, "at each miss, hold the native verdict of every guard to the Python one (mirror mode)"
    )
    logs: str = _option(
        "", "artifacts to log, comma separated: guards,recompiles,graph_breaks,graph_code,bytecode"
    )


_FIELDS = {f.name: f for f in dataclasses.fields(Config)}
ALIASES = {
    "cache_size_limit": "recompile_limit",
    "accumulated_cache_size_limit": "accumulated_recompile_limit",
}


def _parse(name: str, text: str) -> Any:
    default = _FIELDS[name].default
    if isinstance(default, bool):
        low = text.strip().lower()
        if low in ("1", "true", "yes", "on"):
            return True
        if low in ("0", "false", "no", "off", ""):
            return False
        raise ValueError(f"DYNACHECK_{name.upper()}={text!r}: expected 0 or 1")
    if isinstance(default, int):
        if not text.strip().isdecimal():
            raise ValueError(f"DYNACHECK_{name.upper()}={text!r}: expected a whole number from 0 on")
        return int(text)
    return text


def from_environment(environ: Mapping[str, str] = os.environ) -> Config:
    """The settings with the environment's values in place of defaults.

    Raises:
        ValueError: a variable's value does not fit its option.
    """
    found = {
        name: _parse(name, environ[f"DYNACHECK_{name.upper()}"])
        for name in _FIELDS
        if f"DYNACHECK_{name.upper()}" in environ
    }
    return Config(**found)


def misspelt(environ: Mapping[str, str] = os.environ) -> list[str]:
    """A sentence for each variable that is almost one of ours; other tools may have variables of that prefix.

    Example:
        >>> misspelt({"DYNACHECK_RECOMPLE_LIMIT": "2", "DYNACHECK_ROOT": "/"})
        ['environment variable DYNACHECK_RECOMPLE_LIMIT is ignored; did you mean DYNACHECK_RECOMPILE_LIMIT?']
    """
    names = [f"DYNACHECK_{name.upper()}" for name in _FIELDS]
    near = {
        name: difflib.get_close_matches(name, names, 1, cutoff=0.85)
        for name in sorted(environ)
        if name.startswith("DYNACHECK_") and name not in names
    }
    return [
        f"environment variable {name} is ignored; did you mean {found[0]}?"
        for name, found in near.items()
        if found
    ]


_GUARDED = frozenset(name for name, spec in _FIELDS.items() if spec.metadata["guarded"])


class _Settings:
    """The process-wide base, written by `set_base` and `reset_base` only, and how many overlays are in force.

    Attributes:
        overlays: of options that change translation, in any context.
        watcher: told whether such options may differ from their defaults somewhere.
    """

    def __init__(self) -> None:
        self.base: Config | None = None
        self.overlays = 0
        self.watcher: Callable[[bool], None] = lambda changed: None

    def tell(self) -> None:
        base = self.base
        changed = base is not None and any(getattr(base, n) != _FIELDS[n].default for n in _GUARDED)
        self.watcher(changed or self.overlays > 0)


_settings = _Settings()
_overlay: ContextVar[tuple[tuple[str, Any], ...]] = ContextVar("dynacheck_config", default=())


def set_base(**changes: Any) -> None:
    """Change the process-wide settings."""
    _settings.base = dataclasses.replace(current_base(), **_checked(changes))
    _settings.tell()


def reset_base(config: Config | None = None) -> None:
    """Put the process-wide settings back to the environment's, or to `config`."""
    _settings.base = config
    _settings.tell()


def watch_guarded(watcher: Callable[[bool], None]) -> None:
    """Have a function told when options that change translation are set, and when none is any more.

    Args:
        watcher: called with whether such options may differ from their defaults anywhere.
    """
    _settings.watcher = watcher
    _settings.tell()


def current_base() -> Config:
    if _settings.base is None:
        _settings.base = from_environment()
    return _settings.base


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, _FIELDS, 1)
    rest = f"did you mean {near[0]!r}?" if near else f"the options are {', '.join(sorted(_FIELDS))}"
    return f"unknown option {name!r}; {rest}"


def _checked(changes: dict[str, Any]) -> dict[str, Any]:
    out = {}
    for name, value in changes.items():
        name = ALIASES.get(name, name)
        if name not in _FIELDS:
            raise TypeError(_unknown(name))
        default = _FIELDS[name].default
        if isinstance(default, bool) is not isinstance(value, bool) or not isinstance(value, type(default)):
            raise TypeError(f"option {name!r} takes {type(default).__name__}, not {value!r}")
        if type(value) is int and value < 0:
            raise ValueError(f"option {name!r} takes a number from 0 on, not {value}")
        out[name] = value
    return out


@contextlib.contextmanager
def configured(**changes: Any) -> Iterator[None]:
    """Settings that hold in this context (and not in other threads).

    Args:
        **changes: fields of `Config` (torch's old name `cache_size_limit` is understood).

    Raises:
        TypeError: an unknown option or a value of another type.
        ValueError: a negative number.

    Example:
        >>> from dynacheck.config import configured, get
        >>> with configured(recompile_limit=2):
        ...     get("recompile_limit")
        2
    """
    checked = _checked(changes)
    guarded = not _GUARDED.isdisjoint(checked)
    token = _overlay.set(_overlay.get() + tuple(checked.items()))
    if guarded:
        _settings.overlays += 1
        _settings.tell()
    try:
        yield
    finally:
        _overlay.reset(token)
        if guarded:
            _settings.overlays -= 1
            _settings.tell()


def get(name: str) -> Any:
    """The value that holds here: `with configured(...)`, else `torch._dynamo.config` where the user changed it there,
    else the process-wide base.

    Args:
        name: a field of `Config`.
    """
    for key, value in reversed(_overlay.get()):
        if key == name:
            return value
    spec = _FIELDS[name]
    base = getattr(current_base(), name)
    twin = spec.metadata["torch"]
    if twin is not None and base == spec.default:
        return interop.torch_config(twin, base)
    return base


def snapshot() -> Config:
    """All values that hold here, as one record."""
    return Config(**{name: get(name) for name in _FIELDS})


def guarded_values() -> tuple[Any, ...]:
    """The values that change translation, in a fixed order."""
    return tuple(get(name) for name in _FIELDS if name in _GUARDED)


class _Module(ModuleType):
    """This module: options are its attributes, process-wide when set, as those of torch's configuration modules are."""

    def __getattr__(self, name: str) -> Any:
        name = ALIASES.get(name, name)
        if name in _FIELDS:
            return get(name)
        raise AttributeError(_unknown(name))

    def __setattr__(self, name: str, value: Any) -> None:
        if ALIASES.get(name, name) in _FIELDS:
            set_base(**{name: value})
        elif name in self.__dict__ or name.startswith("__"):
            super().__setattr__(name, value)
        else:
            raise AttributeError(_unknown(name))


sys.modules[__name__].__class__ = _Module
