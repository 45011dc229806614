"""Backends by name: the engine's own, registered ones, and torch's, which are loaded when first used."""

from __future__ import annotations

import difflib
import importlib.metadata
import threading
from collections.abc import Callable, Mapping
from typing import Any

from dynacheck import errors
from dynacheck.backends import local
from dynacheck.backends.contract import Backend, GraphCompiler, calling

ENTRY_POINTS = "dynacheck_backends"


class Registry:
    """Names and what they stand for. Registering is process-wide and survives `reset()`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own: dict[str, GraphCompiler] = {"eager": local.eager, "inspect": local.inspect}
        self._plugins: dict[str, Any] | None = None

    def register(self, fn: GraphCompiler, name: str) -> None:
        if not callable(fn):
            raise TypeError(f"a backend must be callable, not {type(fn).__name__}")
        with self._lock:
            have = self._own.get(name)
            if have is not None and have is not fn:
                raise ValueError(f"there is a backend {name!r} already")
            self._own[name] = fn

    def _entry_points(self) -> dict[str, Any]:
        if self._plugins is None:
            self._plugins = {e.name: e for e in importlib.metadata.entry_points(group=ENTRY_POINTS)}
        return self._plugins

    def names(self) -> list[str]:
        return sorted({*self._own, *self._entry_points()})

    def lookup(self, name: str) -> GraphCompiler | None:
        found = self._own.get(name)
        if found is None and name in self._entry_points():
            found = self._own[name] = self._entry_points()[name].load()
        return found


registry = Registry()


def unknown(name: str) -> errors.DynacheckError:
    """The error for a name that stands for nothing, with names like it."""
    names = registry.names()
    near = difflib.get_close_matches(name, names, 3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(names)}"
    return errors.make(errors.InvalidBackend, f"unknown backend {name!r}: {hint}")


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple(sorted((str(k), _frozen(v)) for k, v in value.items()))
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def find(backend: str | Callable[..., Any], mode: str | None = None, options: Any = None) -> Backend:
    """The backend that a compile asks for.

    Args:
        backend: a name, or a callable `(gm, example_inputs) -> callable`.
        mode: torch's `mode`, for backends that take it.
        options: torch's `options`.

    Raises:
        InvalidBackend: there is none of that name.
        TypeError: neither a name nor a callable.
    """
    keywords = {k: v for k, v in (("mode", mode), ("options", options)) if v is not None}
    if isinstance(backend, str):
        fn = registry.lookup(backend)
        if fn is None:
            raise unknown(backend)
        return Backend(backend, ("name", backend, _frozen(keywords)), calling(fn, keywords), None, keywords)
    if not callable(backend):
        raise TypeError(f"backend must be a name or a callable, not {type(backend).__name__}")
    name = getattr(backend, "__name__", type(backend).__name__)
    identity = ("callable", _identity(backend), _frozen(keywords))
    return Backend(name, identity, calling(backend, keywords), backend, keywords)


def _identity(fn: Any) -> tuple[int, ...]:
    """What makes two callables the same backend: bound methods are made anew on every access."""
    owner = getattr(fn, "__self__", None)
    inner = getattr(fn, "__func__", None)
    return (id(owner), id(inner)) if inner is not None else (id(fn),)


def register_backend(fn: GraphCompiler | None = None, name: str | None = None, tags: Any = ()) -> Any:
    """Make a backend known by name; also as a decorator.

    Args:
        fn: `(GraphModule, example_inputs) -> callable`.
        name: its name; the function's own if None.
        tags: accepted as torch does, not used.

    Returns:
        The function, or a decorator if none was given.

    Raises:
        ValueError: the name is taken.

    Example:
        >>> @register_backend
        ... def my_backend(gm, example_inputs):
        ...     return gm.forward
        >>> "my_backend" in list_backends()
        True
    """
    if fn is None:
        return lambda found: register_backend(found, name)
    registry.register(fn, name or fn.__name__)
    return fn


def list_backends() -> list[str]:
    """The names that `compile(..., backend=)` takes, sorted."""
    return registry.names()
