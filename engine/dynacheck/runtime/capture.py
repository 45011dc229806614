"""Handing a finished graph to the backend."""

from __future__ import annotations

import linecache
import time
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import graph_module
from torch.fx._lazy_graph_module import _LazyGraphModule

from dynacheck import _C, errors
from dynacheck.backends.contract import Backend
from dynacheck.events import CompileId
from dynacheck.graph.recorder import CapturedGraph
from dynacheck.graph.state import preserved
from dynacheck.runtime.recovery import Recovery


class GraphHandOver:
    """Compiles the graph of one translation; what the translator calls as `compile_graph`.

    Attributes:
        owner: what the compile region is to keep when the translation is committed; None if it had no graph.
        captured: the graph.
        seconds: what the backend took.
        failure: what the backend raised.
    """

    def __init__(self, backend: Backend, compile_id: CompileId, function: str) -> None:
        self.backend = backend
        self.compile_id = compile_id
        self.function = function
        self.owner: _C.GraphOwner | None = None
        self.captured: CapturedGraph | None = None
        self.seconds = 0.0
        self.failure: Exception | None = None

    def __call__(self, captured: CapturedGraph) -> _C.GraphCall:
        """Have the backend compile the graph.

        Args:
            captured: the graph.

        Returns:
            The constant that runs it in rewritten code.

        Raises:
            BackendError: the backend raised, or gave something that can't be called.
        """
        started = time.perf_counter()
        captured.meta["backend_id"] = self.backend.name
        recovery = Recovery(captured)
        try:
            with preserved():
                fn: Any = self.backend.compile(captured)
        except Exception as error:
            self.failure = error
            raise self._error(captured, f"raised {type(error).__name__}: {error}") from error
        if not callable(fn):
            raise self._error(captured, f"returned {type(fn).__name__}, which can't be called")
        if captured.dispatched:
            fn = _without_dispatch(fn)
        self.seconds = time.perf_counter() - started
        weakref.finalize(captured.gm, _forget_source, type(captured.gm)).atexit = False
        self.captured = captured
        self.owner = _C.GraphOwner(_generated(fn), recovery)
        return self.owner.call

    def _error(self, captured: CapturedGraph, what: str) -> errors.DynacheckError:
        code = captured.code().strip()
        message = f"backend {self.backend.name!r} {what}\nfor a graph of {self.function}:\n{code}"
        return errors.make(errors.BackendError, message, graph_code=code)


def _generated(fn: Any) -> Any:
    """The graph's code for the `forward` that generates it on the first call and reports on stderr what it raises.

    Args:
        fn: what a backend gave.
    """
    if getattr(fn, "__func__", None) is _LazyGraphModule._lazy_forward:
        fn.__self__.real_recompile()
        return fn.__self__.forward
    return fn


def _without_dispatch(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A graph that doesn't ask the classes of its tensors for `__torch_function__`: the program's was interpreted."""

    def graph(*inputs: Any) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            return fn(*inputs)

    return graph


def _forget_source(cls: type) -> None:
    """Take the generated source of a graph that died out of FX's and linecache's tables, which keep it for
    good.

    Args:
        cls: the class that FX made for the GraphModule.
    """
    code = getattr(cls.__dict__.get("forward"), "__code__", None)
    name = "" if code is None else code.co_filename
    if name.startswith("<eval_with_key>"):
        graph_module._loader.eval_cache.pop(name, None)
        linecache.cache.pop(name, None)
