"""The dataclasses module."""

from __future__ import annotations

import dataclasses

from dynacheck.handlers.registry import handles
from dynacheck.reasons import UNKNOWN_CALL
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.functions import ObjectVariable


@handles(dataclasses.fields)
def fields(tx: Tracer, class_or_instance: VariableTracker) -> VariableTracker | None:
    """Of an instance by interpretation; of a class torch knows none."""
    if isinstance(class_or_instance, ObjectVariable):
        tx.break_(UNKNOWN_CALL, what="dataclasses.fields() on a class")
    return None
