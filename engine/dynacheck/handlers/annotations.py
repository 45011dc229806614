"""Functions of torch's compiler and of this engine that users call inside compiled code, known by name.

torch's live in a module that this package never imports, so they are looked up by module and name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any, Final

from dynacheck import reasons
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.tensor import TensorVariable

Annotation = Callable[..., VariableTracker]
_TABLE: Final[dict[str, Annotation]] = {}
_MODULES: Final = ("torch._dynamo", "torch.compiler", "dynacheck")


def named(*names: str) -> Callable[[Annotation], Annotation]:
    """Register what calling a function of one of those modules does."""

    def add(fn: Annotation) -> Annotation:
        for name in names:
            _TABLE[name] = fn
        return fn

    return add


def lookup(function: Any) -> Annotation | None:
    """What calling it does, or None if it is none of them."""
    module = getattr(function, "__module__", None) or ""
    if not isinstance(module, str) or not module.startswith(_MODULES):
        return None
    if getattr(function, "__qualname__", "").startswith("install_generation_tagging_init."):
        return _untagged(function)
    return _TABLE.get(getattr(function, "__name__", ""))


def _untagged(function: Any) -> Annotation | None:
    """torch's compiler wraps methods of `nn.Module` to count modules: what the program calls is the method itself."""
    for cell in function.__closure__ or ():
        method = cell.cell_contents
        if isinstance(method, FunctionType) and method.__module__ == "torch.nn.modules.module":
            return partial(_call, method)
    return None


def _call(
    method: FunctionType, tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker
) -> VariableTracker:
    return tx.call(tx.object(method), list(args), kwargs)


@named("graph_break", "skip_frame")
def graph_break(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    tx.break_(reasons.EXPLICIT_BREAK)


@named("is_compiling", "is_dynamo_compiling")
def is_compiling(tx: Tracer) -> VariableTracker:
    return tx.constant(True)


@named("mark_static")
def mark_static(tx: Tracer, t: VariableTracker, index: VariableTracker | None = None) -> VariableTracker:
    """Sizes of a tensor that the frame is compiled for."""
    tensor = t.realize(tx)
    if not isinstance(tensor, TensorVariable):
        return mark(tx)
    sizes = tensor.ref.facts.shape
    at = range(len(sizes)) if index is None else [index.realize(tx).as_constant(tx)]
    for i in at:
        if type(sizes[i]) is not int:
            tx.specialize(sizes[i])
    return tx.constant(None)


@named("mark_dynamic", "maybe_mark_dynamic", "mark_unbacked", "mark_static_address")
def mark(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    tx.break_(reasons.UNKNOWN_CALL, what="a function that marks dimensions")


@named("assume_constant_result", "allow_in_graph", "disable", "set_stance", "error_on_graph_break")
def setting(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    tx.break_(
        reasons.SKIPPED_CALL,
        call="a function that changes how code is compiled",
        why="it isn't part of the program",
    )
