"""The one seam between torch's compile API and the engine under test.

While a test under test runs, some functions of torch get other code, and get theirs back afterwards:
`torch.compile` itself (so that `from torch import compile` is caught too), the wrappers that torch made
earlier (decorators at import, `Module.compile`, modules built in fixtures: all share one code object),
`torch._dynamo.reset` and `torch._dynamo.explain`. Their code is swapped rather than the names replaced,
because whoever holds one of these functions holds the function. On first use a probe checks that the seam
works on the installed torch.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

__all__ = ["Redirection"]

_SEAM = "pytest-dynacheck: where a call goes"
Dispatch = Callable[..., Any]


def _code_calling(original: CodeType, target: Dispatch, arguments: str = "") -> CodeType:
    """Code that calls what `target` returns, for a function that closes over what `original` closes over.

    Args:
        original: code of the function that shall get it. The new code has its name and file, so that
            tracebacks and "where was this called" see a frame of torch's.
        target: called with `arguments`; what it returns gets the call's own arguments.
        arguments: names of free variables.
    """
    inner = _template(original.co_name, original.co_freevars, arguments)
    consts = tuple(target if const == _SEAM else const for const in inner.co_consts)
    return inner.replace(
        co_consts=consts,
        co_qualname=original.co_qualname,
        co_filename=original.co_filename,
        co_firstlineno=original.co_firstlineno,
    )


def _copy(function: FunctionType) -> FunctionType:
    """The function with its present code, however its own code is changed later."""
    twin = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


@functools.lru_cache(maxsize=64)
def _template(name: str, free: tuple[str, ...], arguments: str) -> CodeType:
    """Code of a function that calls a constant and what that returns; every test starts with a few."""
    source = "\n".join(
        [
            f"def outer({', '.join(free)}):",
            f"    def {name}(*args, **kwargs):",
            f"        {'; '.join(free) or 'pass'}",
            f"        seam = {_SEAM!r}",
            f"        return seam({arguments})(*args, **kwargs)",
        ]
    )
    module = compile(source, "<pytest-dynacheck>", "exec")
    outer = next(c for c in module.co_consts if isinstance(c, CodeType))
    inner = next(c for c in outer.co_consts if isinstance(c, CodeType))
    if inner.co_freevars != free:
        raise ValueError("free variables differ")
    return inner


class Redirection:
    """Turns torch's compile API over to `compile` and back.

    Attributes:
        problem: why functions compiled before the test can't be redirected on this torch, or None.
    """

    def __init__(self) -> None:
        self.problem: str | None = None
        self._checked = False
        self._target: Callable[..., Any] | None = None
        self._reset: Callable[[], None] | None = None
        self._wrapper_code: CodeType | None = None
        self._swapped: list[tuple[FunctionType, CodeType]] = []
        self._wrappers: weakref.WeakSet[FunctionType] = weakref.WeakSet()
        self._compiled: dict[tuple[int, int], tuple[Any, Any, Any]] = {}
        self._lock = threading.RLock()
        self._aside = threading.local()
        self._originals: dict[str, FunctionType] = {}
        self._close: list[Callable[[], None]] = []
        self._seam: CodeType | None = None

    @property
    def active(self) -> bool:
        return self._target is not None

    def start(
        self, target: Callable[..., Any], reset: Callable[[], None], explain: Callable[..., Any] | None = None
    ) -> None:
        """Redirect until `stop`.

        Args:
            target: `(fn, **torch's keywords) -> compiled`.
            reset: called when the program resets torch's compiler.
            explain: what `torch._dynamo.explain` becomes; None leaves it.
        """
        import torch
        import torch._dynamo.eval_frame as eval_frame

        if not self._checked:
            self._checked = True
            self.problem = self._check(eval_frame)
            if self.problem is None and self._wrapper_code is not None:
                self._watch(eval_frame, self._wrapper_code)
        self._target, self._reset = target, reset
        self._swap("compile", torch.compile, lambda: self._on_torch_compile)
        self._swap("reset", sys.modules["torch._dynamo"].reset, lambda: self._on_reset)
        if explain is not None:
            self._swap("explain", sys.modules["torch._dynamo"].explain, lambda: explain)
        if self._seam is not None:
            for wrapper in list(self._wrappers):
                self._put(wrapper, self._seam)

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """While the block runs, this thread's compiles are torch's own: for an engine that asks torch."""
        before = getattr(self._aside, "on", False)
        self._aside.on = True
        try:
            yield
        finally:
            self._aside.on = before

    @property
    def _redirects(self) -> bool:
        return self._target is not None and not getattr(self._aside, "on", False)

    def stop(self) -> None:
        """Give every function its own code back."""
        self._target = self._reset = None
        for function, code in reversed(self._swapped):
            function.__code__ = code
        self._swapped.clear()
        self._compiled.clear()

    def _swap(self, name: str, function: Any, handler: Dispatch) -> None:
        self._originals[name] = _copy(function)
        self._put(function, _code_calling(function.__code__, handler))

    def _put(self, function: FunctionType, code: CodeType) -> None:
        self._swapped.append((function, function.__code__))
        function.__code__ = code

    def _on_torch_compile(self, model: Any = None, **kwargs: Any) -> Any:
        target = self._target
        if target is None or not self._redirects or kwargs.get("disable"):
            return self._originals["compile"](model, **kwargs)
        if model is None:
            return functools.partial(self._decorate, kwargs)
        return target(_innermost(model), **kwargs)

    def _decorate(self, kwargs: dict[str, Any], model: Any) -> Any:
        if model is None:
            raise RuntimeError("Model can't be None")
        return self._on_torch_compile(model, **kwargs)

    def _on_reset(self) -> Any:
        if self._reset is not None:
            self._reset()
        return self._originals["reset"]()

    def _watch(self, eval_frame: ModuleType, code: CodeType) -> None:
        """Find the wrappers there are, and from now on know those that torch makes."""
        self._seam = _code_calling(code, self._compiled_form, "self, fn")
        self._register(gc.get_referrers(code))
        context = eval_frame._TorchDynamoContext
        original = context.__call__

        @functools.wraps(original)
        def make(ctx: Any, fn: Any) -> Any:
            made = original(ctx, fn)
            if isinstance(made, FunctionType) and made.__code__ is code:
                self._register([made])
                if self._redirects and self._seam is not None:
                    self._put(made, self._seam)
            return made

        context.__call__ = make
        self._close.append(functools.partial(setattr, context, "__call__", original))

    def close(self) -> None:
        """Leave torch as it was found; for the end of the run."""
        self.stop()
        while self._close:
            self._close.pop()()

    def _register(self, found: list[Any]) -> None:
        for wrapper in found:
            if isinstance(wrapper, FunctionType) and wrapper.__code__ is self._wrapper_code:
                self._wrappers.add(wrapper)

    def _compiled_form(self, ctx: Any, fn: Any) -> Any:
        """What takes the call of a function that torch compiled."""
        target = self._target
        if target is None:
            return fn
        key = (id(ctx), id(fn))
        with self._lock:
            have = self._compiled.get(key)
            if have is None:
                have = self._compiled[key] = (target(subject(fn), **_keywords(ctx)), ctx, fn)
        return have[0]

    def _check(self, eval_frame: ModuleType) -> str | None:
        """Compile and call a function through the seam; what went wrong, or None."""
        import torch

        version = torch.__version__

        def probe(x: int) -> int:
            return x + 1

        seen: list[Any] = []
        try:
            wrapper = torch.compile(probe, backend="eager", fullgraph=True)
            assert isinstance(wrapper, FunctionType)
            code = next(
                c
                for c in _constants(eval_frame._TorchDynamoContext.__call__)
                if isinstance(c, CodeType) and c.co_name == wrapper.__code__.co_name
            )
            if wrapper.__code__ is not code or {"self", "fn"} - set(code.co_freevars):
                return f"torch {version} wraps compiled functions in another way"
            self._wrapper_code = code
            if not any(f is wrapper for f in gc.get_referrers(code)):
                return f"torch {version}: compiled functions can't be found"

            def arrive(ctx: Any, fn: Any) -> Callable[[int], None]:
                return lambda x: seen.append((_keywords(ctx), subject(fn), x))

            wrapper.__code__ = _code_calling(code, arrive, "self, fn")
            wrapper(3)
            wrapper.__code__ = code
        except (AttributeError, AssertionError, StopIteration, TypeError, ValueError) as error:
            return f"torch {version}: {type(error).__name__}: {error}"
        if seen != [({"fullgraph": True, "dynamic": None, "backend": "eager"}, probe, 3)]:
            return f"torch {version}: a redirected call doesn't arrive as it was made"
        return None


def _constants(function: Any) -> Iterator[Any]:
    return iter(getattr(function, "__wrapped__", function).__code__.co_consts)


def subject(fn: Any) -> Any:
    """What was compiled; torch puts a frame of its own around modules of torch.nn."""
    wrapped = getattr(fn, "__wrapped__", None)
    code = getattr(fn, "__code__", None)
    if wrapped is not None and code is not None and code.co_filename.endswith("external_utils.py"):
        return wrapped
    if getattr(fn, "__name__", "") == "_wrapped_call_impl":  # a module's __call__
        return getattr(fn, "__self__", fn)
    return fn


def _innermost(model: Any) -> Any:
    """A function that torch compiled already is compiled as what it was made from, as torch does."""
    from torch._dynamo.eval_frame import innermost_fn

    return innermost_fn(model)


def _keywords(ctx: Any) -> dict[str, Any]:
    """torch.compile's keywords, as its context keeps them."""
    from torch._dynamo.eval_frame import innermost_backend

    backend: Any = innermost_backend(ctx.callback)
    found = {"fullgraph": bool(ctx.fullgraph), "dynamic": ctx._dynamic}
    if type(backend).__name__ == "_TorchCompileInductorWrapper":
        found["options"] = dict(backend.config)  # and what the mode stands for
        backend = "inductor"
    elif type(backend).__name__ == "_TorchCompileWrapper":
        found.update(backend.kwargs)  # mode and options
        backend = _by_name(backend.compiler_name, backend.compiler_fn)
    else:
        backend = _by_name(getattr(backend, "__name__", ""), backend)
    found["backend"] = backend
    filters = getattr(getattr(ctx.callback, "hooks", None), "guard_filter_fn", None)
    if filters is not None:
        found["options"] = {**(found.get("options") or {}), "guard_filter_fn": filters}
    if getattr(ctx, "_isolate_recompiles_id", -1) != -1:
        found["isolate_recompiles"] = True
    for name in ("_shapes_spec", "_dynamic_shapes"):  # of torch 2.13, and since
        if getattr(ctx, name, None) is not None:
            found["shapes_spec"] = getattr(ctx, name)
    return found


def _by_name(name: str, function: Any) -> Any:
    """The backend as the user gave it: by name if torch has it under that name, else the callable."""
    from torch._dynamo.backends.registry import list_backends, lookup_backend

    return name if name in list_backends(()) and lookup_backend(name) is function else function
