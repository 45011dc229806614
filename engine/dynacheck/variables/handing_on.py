"""Looking at values without using them: those that are stored or handed on, and those of which only the type is asked."""

from __future__ import annotations

from dynacheck.guards.objects import TypeIs
from dynacheck.variables.base import GraphBreak, LazyVariable, Tracer, VariableTracker


def looked_at(tx: Tracer, value: VariableTracker) -> VariableTracker:
    """The real tracker of a value; the lazy one if it can't be modelled."""
    try:
        return value.realize(tx)
    except GraphBreak:
        return value


def typed(tx: Tracer, value: VariableTracker) -> VariableTracker:
    """The tracker of a value of whose type something is asked: texts and truth values stay unread, as in torch."""
    if isinstance(value, LazyVariable) and value.real is None and value.get_type() in (str, bool):
        tx.guard(value.node, TypeIs(value.get_type()))
        return value
    return value.realize(tx)
