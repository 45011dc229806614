"""Functions of torch's compiler and of this engine that users call inside compiled code, known by name.

torch's live in a module that this package never imports, so they are looked up by module and name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dynacheck import reasons
from dynacheck.variables.base import Tracer, VariableTracker

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
    return _TABLE.get(getattr(function, "__name__", ""))


@named("graph_break", "skip_frame")
def graph_break(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    tx.break_(reasons.EXPLICIT_BREAK)


@named("is_compiling", "is_dynamo_compiling")
def is_compiling(tx: Tracer) -> VariableTracker:
    return tx.constant(True)


@named("mark_static", "mark_dynamic", "maybe_mark_dynamic", "mark_unbacked", "mark_static_address")
def mark(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    tx.break_(reasons.UNKNOWN_CALL, what="a function that marks dimensions")


@named("assume_constant_result", "allow_in_graph", "disable", "set_stance", "error_on_graph_break")
def setting(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    tx.break_(
        reasons.SKIPPED_CALL,
        call="a function that changes how code is compiled",
        why="it isn't part of the program",
    )
