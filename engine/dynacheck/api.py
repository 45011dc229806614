"""The public API: `compile` and what goes with it; names, arguments and meaning are torch's where torch has
one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import Token
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, TypeVar

from torch import nn

from dynacheck import _C, artifacts
from dynacheck.report import codes_of
from dynacheck.runtime.codes import EntryRecord, code_ref
from dynacheck.runtime.compiled import Options, compile_function, original
from dynacheck.runtime.engine import engine
from dynacheck.runtime.module import CompiledModule

F = TypeVar("F", bound=Callable[..., Any])


def _checked(name: str, value: Any, kinds: type | tuple[type, ...]) -> Any:
    if not isinstance(value, kinds):
        wanted = kinds.__name__ if isinstance(kinds, type) else " or ".join(k.__name__ for k in kinds)
        raise TypeError(f"compile: {name} must be {wanted}, not {value!r}")
    return value


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
    dynamic_shapes: Any = None,
) -> Any:
    """Compile a function or module; takes `torch.compile`'s arguments.

    Args:
        model: a callable or an `nn.Module`; None makes it a decorator.
        fullgraph: a graph break is an error.
        dynamic: True: sizes are symbols from the start. False: never. None: once they changed.
        backend: a name (see `list_backends`) or a callable `(GraphModule, example_inputs) -> callable`.
        mode: for the backend.
        options: for the backend.
        name: what to call this compile in messages.
        disable: give `model` back as it is.
        recompile_limit: entries per code object in this compile, instead of the setting.
        isolate_recompiles: a limit, history and entries of its own, not shared with other compiles of the
            same code.
        shapes_spec: torch's experimental specification of dimensions by argument; not supported.
        dynamic_shapes: the same, since torch 2.14.

    Returns:
        A function with the signature of `model`, or a module around it.

    Raises:
        InvalidBackend: no backend of that name.
        RuntimeError: both a mode and options.
        TypeError: an argument of a wrong type, or something that can't be called.

    Example:
        >>> import dynacheck
        >>> @dynacheck.compile(backend="eager")
        ... def double(x):
        ...     return x * 2
        >>> double.__name__
        'double'
    """
    artifacts.start_from_settings()
    _checked("fullgraph", fullgraph, bool)
    _checked("isolate_recompiles", isolate_recompiles, bool)
    _checked("dynamic", dynamic, (bool, type(None)))
    _checked("mode", mode, (str, type(None)))
    _checked("options", options, (dict, type(None)))
    _checked("name", name, (str, type(None)))
    _checked("recompile_limit", recompile_limit, (int, type(None)))
    if recompile_limit is not None and recompile_limit < 1:
        raise ValueError(f"compile: recompile_limit must be at least 1, not {recompile_limit}")
    if mode is not None and options is not None:
        raise RuntimeError("compile: give mode or options, not both")  # torch's type
    for given, spec in (("shapes_spec", shapes_spec), ("dynamic_shapes", dynamic_shapes)):
        if spec is not None:
            raise NotImplementedError(
                f"compile: {given} isn't supported: its classes are an experiment of torch; "
                "mark dimensions of the arguments with mark_unbacked, or with mark_dynamic"
            )
    if options and options.get("guard_filter_fn") is not None:
        raise NotImplementedError(
            "compile: the option guard_filter_fn isn't supported: this engine checks all guards of a graph; "
            "torch.compile knows how to leave some out"
        )
    chosen = Options(fullgraph, dynamic, backend, mode, options, name, recompile_limit, isolate_recompiles)
    return (
        (lambda found: _compile(found, chosen, disable))
        if model is None
        else _compile(model, chosen, disable)
    )


def _compile(model: Any, options: Options, disable: bool) -> Any:
    if disable:
        return model
    if isinstance(model, nn.Module):
        inner = model._modules["_orig_mod"] if type(model) is CompiledModule else model
        assert inner is not None
        return CompiledModule(inner, options)
    if not callable(model):
        raise TypeError(f"compile takes a callable or an nn.Module, not {type(model).__name__}")
    return compile_function(original(model), options)


def reset() -> None:
    """Drop all entries, graphs and histories of sizes and numbers; compiled callables stay usable."""
    engine.reset()


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Leave a function out of compiled code: calls of it are graph breaks, and it runs as it is.

    Args:
        fn: the function, class instance or module; None makes it a decorator.
        recursive: also everything that it calls. Otherwise only the function's own frame; what it calls is
            compiled.
        reason: why, for messages.

    Returns:
        What to call instead; with `recursive=False` the function itself.

    Example:
        >>> @disable(reason="writes to a file")
        ... def log(x):
        ...     print(x)
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if not callable(fn):
        raise TypeError(f"disable takes a callable, not {type(fn).__name__}")
    if isinstance(fn, nn.Module):
        fn.forward = disable(fn.forward, recursive, reason=reason)
        return fn
    if not recursive:
        inner: Any = fn.__func__ if isinstance(fn, MethodType) else fn
        inner._torchdynamo_disable = True
        inner._torchdynamo_disable_msg = reason
        inner._torchdynamo_disable_recursive = False
        return fn
    off = _C.HookOff(fn)

    def disabled(*args: Any, **kwargs: Any) -> Any:
        return off(*args, **kwargs)

    if isinstance(fn, (FunctionType, MethodType)) or hasattr(fn, "__name__"):
        functools.update_wrapper(disabled, fn)
    disabled._torchdynamo_disable = True  # type: ignore[attr-defined]
    disabled._torchdynamo_disable_msg = reason  # type: ignore[attr-defined]
    disabled._torchdynamo_disable_recursive = True  # type: ignore[attr-defined]
    return disabled


def graph_break(msg: str = "") -> None:
    """Split the graph here; does nothing outside of compiled code.

    Args:
        msg: why, for messages.
    """


def is_compiling() -> bool:
    """True in compiled code, False where Python runs it."""
    return False


class error_on_graph_break(AbstractContextManager[None]):
    """Make graph breaks errors, or not, in a block or a decorated function.

    Args:
        error_on_graph_break: whether they are.
    """

    def __init__(self, error_on_graph_break: bool) -> None:
        if not isinstance(error_on_graph_break, bool):
            raise TypeError(f"error_on_graph_break takes True or False, not {error_on_graph_break!r}")
        self.error = error_on_graph_break
        self._tokens: list[Token[bool | None]] = []

    def __enter__(self) -> None:
        self._tokens.append(engine.fail_on_break.set(self.error))

    def __exit__(self, *exc: object) -> None:
        engine.fail_on_break.reset(self._tokens.pop())

    def __call__(self, fn: F) -> F:
        error = self.error

        @functools.wraps(fn)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with error_on_graph_break(error):
                return fn(*args, **kwargs)

        return checked  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Cached:
    """An entry of a code object's cache, as `cache_entries` shows it.

    Args:
        function: qualified name.
        file: its file.
        line: its first line.
        resume_line: where it goes on, for the rest of a function after a graph break.
        index: how many entries there were before.
        hits: how many frames it served.
        guards: what it assumes, as logs spell it.
        breaks: whether its code ends in a graph break.
        backend: name of its compile's backend.
    """

    function: str
    file: str
    line: int
    resume_line: int | None
    index: int
    hits: int
    guards: tuple[str, ...]
    breaks: bool
    backend: str


def entry_count() -> int:
    """How many entries all code objects of this process have."""
    return sum(len(state.entries) for state in _C.states())


def cache_entries(fn: Any) -> tuple[Cached, ...]:
    """The live entries of a function's or module's code, the ones of its resume functions included.

    Args:
        fn: a function, method, module or module class, compiled or not. Instances share their class's code.

    Returns:
        Entries in the order they are tried, per code object.

    Raises:
        TypeError: something that can't be called.

    Example:
        >>> import dynacheck, torch
        >>> f = dynacheck.compile(lambda x: x + 1, backend="eager")
        >>> cache_entries(f)
        ()
    """
    if not callable(fn):
        raise TypeError(f"cache_entries takes a function or a module, not {type(fn).__name__}")
    if isinstance(fn, type):
        fn = getattr(fn, "forward", None) or vars(fn).get("__call__")
    wanted = {id(code) for code in codes_of(fn)}
    found = []
    for state in _C.states():
        code = state.code
        if code is None:
            continue
        ref = code_ref(code)
        if id(code) not in wanted and (ref.code is None or id(ref.code) not in wanted):
            continue
        for entry in state.entries:
            record, region = entry.owner, entry.region
            if isinstance(record, EntryRecord) and record.counted and region is not None:
                found.append(
                    Cached(
                        ref.qualname, ref.file, ref.line, ref.resume_line, record.index, entry.hits,
                        tuple(record.guards.texts()), record.split is not None, region.key.backend.name,  # type: ignore[attr-defined]
                    )
                )  # fmt: skip
    return tuple(found)
