"""Backends by name: the engine's own, registered ones, and torch's, which are loaded when first used."""

from __future__ import annotations

import difflib
import importlib.metadata
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dynacheck import errors
from dynacheck.backends import check, context, local, stock
from dynacheck.backends.contract import Backend, GraphCompiler, calling

ENTRY_POINTS = "dynacheck_backends"

CHECK = "check"

_TAGS = ("debug", "experimental")
"""What torch's own `list_backends` leaves out too."""

_PLAIN: Mapping[str, GraphCompiler] = {"eager": local.eager, "inspect": local.inspect}
"""Backends that look at nothing but the graph."""


class Registry:
    """Names and what they stand for. Registering is process-wide and survives `reset()`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registered: dict[str, GraphCompiler] = {}
        self._plugins: dict[str, Any] | None = None

    def register(self, fn: GraphCompiler, name: str) -> None:
        """Give a callable a name.

        Raises:
            TypeError: it can't be called.
            ValueError: the name stands for another one.
        """
        if not callable(fn):
            raise TypeError(f"a backend must be callable, not {type(fn).__name__}")
        with self._lock:
            if name in _PLAIN or name == CHECK or self._registered.get(name, fn) is not fn:
                raise ValueError(f"there is a backend {name!r} already")
            self._registered[name] = fn

    def _entry_points(self) -> dict[str, Any]:
        if self._plugins is None:
            self._plugins = {e.name: e for e in importlib.metadata.entry_points(group=ENTRY_POINTS)}
        return self._plugins

    def names(self, without: Iterable[str] = ()) -> list[str]:
        """All names, torch's included.

        Args:
            without: tags of torch's own (`debug`, `experimental`); ours have none.
        """
        ours = {*_PLAIN, CHECK, *self._registered, *self._entry_points()}
        return sorted({*ours, *stock.names(without)})

    def lookup(self, name: str) -> GraphCompiler | None:
        """The registered callable of that name, or None."""
        found = self._registered.get(name)
        if found is None and name in self._entry_points():
            found = self._registered[name] = self._entry_points()[name].load()
        return found


registry = Registry()


def unknown(name: str) -> errors.DynacheckError:
    """The error for a name that stands for nothing, with names like it."""
    names = registry.names()
    near = difflib.get_close_matches(name, names, 3)
    some = ", ".join(registry.names(_TAGS))
    hint = (
        f"did you mean {' or '.join(map(repr, near))}?"
        if near
        else f"there are {some}, and torch's for debugging"
    )
    return errors.make(errors.InvalidBackend, f"unknown backend {name!r}: {hint}")


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple(sorted((str(k), _frozen(v)) for k, v in value.items()))
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def find(
    backend: str | Callable[..., Any],
    mode: str | None = None,
    options: Any = None,
    dynamic: bool | None = None,
) -> Backend:
    """The backend that a compile asks for.

    Args:
        backend: a name, or a callable `(gm, example_inputs) -> callable`.
        mode: torch's `mode`, for backends that take it.
        options: torch's `options`.
        dynamic: torch's `dynamic`, which some of torch's modes depend on.

    Raises:
        InvalidBackend: there is none of that name.
        TypeError: neither a name nor a callable.
    """
    keywords = {k: v for k, v in (("mode", mode), ("options", options)) if v is not None}
    if isinstance(backend, str):
        return Backend(
            backend,
            ("name", backend, _frozen(keywords)),
            _named(backend, mode, options, dynamic, keywords),
        )
    if not callable(backend):
        raise TypeError(f"backend must be a name or a callable, not {backend!r}")
    name = getattr(backend, "__name__", type(backend).__name__)
    identity = ("callable", _identity(backend), _frozen(keywords))
    return Backend(name, identity, context.calling(backend, keywords), backend)


def _named(
    name: str, mode: str | None, options: Any, dynamic: bool | None, keywords: Mapping[str, Any]
) -> Callable[[Any], Callable[..., Any]]:
    if name in _PLAIN:
        return calling(_PLAIN[name], {})
    if name == CHECK:
        given = dict(options or {})
        inner = given.pop("backend", "aot_eager")
        found = inner if callable(inner) else _compiler(inner, mode, None, dynamic)
        return context.calling(check.checking(found, given), {})
    registered = registry.lookup(name)
    if registered is not None:
        return context.calling(registered, keywords)
    return context.calling(_compiler(name, mode, options, dynamic), {})


def _compiler(name: str, mode: str | None, options: Any, dynamic: bool | None) -> GraphCompiler:
    """torch's backend of that name as a plain callable of the contract.

    Raises:
        InvalidBackend: there is none.
    """
    if name in _PLAIN:
        return _PLAIN[name]
    found = stock.lookup(name, mode, options, dynamic)
    if found is None:
        raise unknown(name)
    fn, keywords = found
    return (lambda gm, inputs: fn(gm, inputs, **keywords)) if keywords else fn


def compiler(backend: str | GraphCompiler) -> GraphCompiler:
    """A backend as a plain callable `(gm, example_inputs) -> callable`.

    Args:
        backend: a name, or such a callable.

    Raises:
        InvalidBackend: there is none of that name.
    """
    if callable(backend):
        return backend
    return registry.lookup(backend) or _compiler(backend, None, None, None)


def _identity(fn: Any) -> tuple[int, ...]:
    """What makes two callables the same backend: bound methods are made anew on every access."""
    owner = getattr(fn, "__self__", None)
    inner = getattr(fn, "__func__", None)
    return (id(owner), id(inner)) if inner is not None else (id(fn),)


def register_backend(
    compiler_fn: GraphCompiler | None = None, name: str | None = None, tags: Any = ()
) -> Any:
    """Make a backend known by name; also as a decorator.

    Args:
        compiler_fn: `(GraphModule, example_inputs) -> callable`.
        name: its name; the function's own if None.
        tags: accepted as torch does, not used.

    Returns:
        The function, or a decorator if none was given.

    Raises:
        TypeError: something that can't be called.
        ValueError: the name is taken.

    Example:
        >>> @register_backend
        ... def my_backend(gm, example_inputs):
        ...     return gm.forward
        >>> "my_backend" in list_backends()
        True
    """
    if compiler_fn is None:
        return lambda found: register_backend(found, name)
    registry.register(compiler_fn, str(name or getattr(compiler_fn, "__name__", type(compiler_fn).__name__)))
    return compiler_fn


def list_backends(exclude_tags: Iterable[str] | None = _TAGS) -> list[str]:
    """The names that `compile(..., backend=)` takes, sorted; loads torch's compiler.

    Args:
        exclude_tags: of torch's own, leave those with such tags out; None: name all.
    """
    return registry.names(exclude_tags or ())
