"""Walking over what trackers hold."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator

from dynacheck.variables.base import LazyVariable, VariableTracker


def reachable(values: Iterable[VariableTracker], weak: bool = True) -> Iterator[VariableTracker]:
    """Everything that trackers hold, and they themselves, each once; wrapped lazy ones as what they are.

    Args:
        values: where to start.
        weak: also what is only referred to weakly.

    Returns:
        The trackers, in no order that matters.
    """
    seen: set[int] = set()
    todo = list(values)
    while todo:
        value = todo.pop()
        if isinstance(value, LazyVariable) and value.real is not None:
            value = value.real
        if id(value) not in seen:
            seen.add(id(value))
            yield value
            if weak or value.python_type is not weakref.ReferenceType:
                todo.extend(value.children())
