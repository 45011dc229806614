"""Compiled callables: what `compile` gives back for a function, and what runs when it is called."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from dynacheck import _C, config, events, reasons
from dynacheck.backends import registry
from dynacheck.backends.contract import Backend
from dynacheck.events import observers
from dynacheck.handlers import skip
from dynacheck.runtime import calls, tracebacks
from dynacheck.runtime.callback import FrameCallback
from dynacheck.runtime.codes import code_ref
from dynacheck.runtime.engine import engine
from dynacheck.runtime.job import Job, inline_call
from dynacheck.runtime.stance import Stance, stances
from dynacheck.runtime.switches import switches


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What `compile` was asked for: torch's keywords."""

    fullgraph: bool = False
    dynamic: bool | None = None
    backend: Any = "inductor"
    mode: str | None = None
    options: Any = None
    name: str | None = None
    recompile_limit: int | None = None
    isolate_recompiles: bool = False


class Compile:
    """One compile of one callable: runs it under the stance that holds.

    Args:
        fn: what is called with the hook on.
        options: the keywords.
        subject: what the user compiled, for names (a module for its `__call__`).
    """

    def __init__(self, fn: Callable[..., Any], options: Options, subject: Any = None) -> None:
        self.fn = fn
        self.options = options
        self.isolation = engine.regions.isolation() if options.isolate_recompiles else None
        code = code_of(fn if subject is None else subject)
        self.target = None if code is None else code_ref(code)
        self.root = getattr(fn, "__code__", None)
        self.backend = registry.find(options.backend, options.mode, options.options, options.dynamic)
        self.settings = config.guarded_values()
        self.job = self._job(self.backend, self.settings)
        self.hooked = self._hooked(self.job)
        self._others: dict[tuple[Any, ...], _C.HookedCall] = {}  # by settings that change translation
        self._eager: _C.HookOff | None = None
        self._run_only: _C.HookedCall | None = None
        self._forced: tuple[Any, _C.HookedCall] | None = None

    def _job(self, backend: Backend, settings: tuple[Any, ...]) -> Job:
        options = self.options
        region = engine.regions.find(backend, options.dynamic, self.isolation, settings)
        return Job(
            backend,
            region,
            options.fullgraph,
            options.dynamic,
            self.isolation,
            options.recompile_limit,
            options.name or "",
            self.root,
            self.target,
        )

    def _hooked(self, job: Job) -> _C.HookedCall:
        return _C.HookedCall(self.fn, FrameCallback(job), job.region, whole=job.fullgraph)

    def dispatcher(self) -> Callable[..., Any]:
        """The function that users call: straight to the hook while nothing asks for more."""
        hooked, at = self.hooked, switches

        def compiled(*args: Any, **kwargs: Any) -> Any:
            try:
                if at.plain and at.torch["_stance"] is at.default:
                    return hooked(*args, **kwargs)
                return self(*args, **kwargs)
            except BaseException as error:
                tracebacks.tidy(error)
                raise

        return compiled

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with stances and observers looked at."""
        switches.look_for_torch()
        stance = stances.current()
        run = self._runner(stance)
        if not observers.active:
            return run(*args, **kwargs)
        if stance.name == "force_eager":
            run = self._told_eagerly
        return calls.watched(self.target, run, args, kwargs)

    def _told_eagerly(self, *args: Any, **kwargs: Any) -> Any:
        if self.target is not None:
            why, told = reasons.STANCE, reasons.STANCE.message(stance="force_eager")
            observers.emit(
                events.RanEagerly(self.target, "stance", why.id, message=told, call=calls.number())
            )
        return self._runner(Stance("force_eager"))(*args, **kwargs)

    def _runner(self, stance: Stance) -> Callable[..., Any]:
        """What runs the function under a stance."""
        if stance.name == "force_eager":
            if self._eager is None:
                self._eager = _C.HookOff(self.fn)
            return self._eager
        if stance.name == "eager_on_recompile" and not observers.active:
            if self._run_only is None:
                job = self.job
                self._run_only = _C.HookedCall(self.fn, False, job.region, whole=job.fullgraph)
            return self._run_only
        if stance.backend is not None:
            if self._forced is None or self._forced[0] is not stance.backend:
                job = self._job(registry.find(stance.backend), config.guarded_values())
                self._forced = (stance.backend, self._hooked(job))
            return self._forced[1]
        return self._under_settings()

    def _under_settings(self) -> _C.HookedCall:
        """What translates with the settings that hold, and looks for entries made with them."""
        if not switches.settings_changed:
            return self.hooked
        settings = config.guarded_values()
        if settings == self.settings:
            return self.hooked
        found = self._others.get(settings)
        if found is None:
            found = self._others[settings] = self._hooked(self._job(self.backend, settings))
        return found


def code_of(obj: Any) -> Any:
    """The code object that stands for a callable in events, or None."""
    inner = getattr(obj, "__func__", obj)
    code = getattr(inner, "__code__", None)
    if code is None and not isinstance(obj, type):
        method = getattr(type(obj), "forward", None) or vars(type(obj)).get("__call__")
        code = getattr(method, "__code__", None)
    return code


def needs_frame(fn: Callable[..., Any]) -> bool:
    """Whether a call of it has no first frame that is ever translated.

    Args:
        fn: a callable that isn't a module.
    """
    inner = fn.__func__ if isinstance(fn, MethodType) else fn
    if not isinstance(inner, FunctionType):
        return True
    if inner.__name__ in ("_call_impl", "_wrapped_call_impl", "_lazy_forward"):
        return False
    return skip.why_frame_skipped(inner.__code__) is not None


def compile_function(fn: Callable[..., Any], options: Options) -> Callable[..., Any]:
    """The compiled form of a function, method or other callable.

    Args:
        fn: the callable.
        options: the keywords.

    Returns:
        A plain function with its signature, name and attributes.
    """
    run = Compile(inline_call(fn) if needs_frame(fn) else fn, options, fn)
    compiled = run.dispatcher()
    functools.update_wrapper(compiled, fn)
    compiled.__dict__["_torchdynamo_orig_callable"] = fn
    compiled.__dict__["_dynacheck_compile"] = run
    return compiled


def original(fn: Any) -> Any:
    """What a callable that was compiled already, here or by torch, was made from; any other callable
    itself."""
    if isinstance(fn, MethodType):
        inner = original(fn.__func__)
        return fn if inner is fn.__func__ else MethodType(inner, fn.__self__)
    namespace = getattr(fn, "__dict__", {})
    inner = namespace.get("_torchdynamo_orig_callable")
    if not callable(inner) or namespace.get("_torchdynamo_disable"):
        return fn
    return original(inner)
