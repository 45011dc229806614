"""The dataclasses and reprlib modules: their guards against endless recursion are left out."""

from __future__ import annotations

import dataclasses
import reprlib
from types import FunctionType
from typing import Any

from dynacheck.handlers.registry import handles_code
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.coerce import holds_itself


def _plain_repr(self: Any) -> str:
    return ""


_guarded_by_reprlib: Any = reprlib.recursive_repr()(_plain_repr)
_guarded_by_dataclasses: Any = (
    dataclasses._recursive_repr(_plain_repr)
    if hasattr(dataclasses, "_recursive_repr")
    else _guarded_by_reprlib  # 3.14 has no guard of its own there
)


@handles_code(_guarded_by_dataclasses.__code__)
@handles_code(_guarded_by_reprlib.__code__)
def unguarded_repr(tx: Tracer, wrapper: FunctionType, owner: VariableTracker) -> VariableTracker | None:
    """Call the `__repr__` below the guard."""
    below: Any = getattr(wrapper, "__wrapped__", None)
    if below is None or holds_itself(owner.realize(tx)):
        return None
    return tx.call(tx.object(below), [owner])
