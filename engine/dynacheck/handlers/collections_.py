"""The collections module: C helpers of its Python classes."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import Any

from dynacheck.handlers.registry import handles, replaces
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.made_classes import make_namedtuple


@replaces(collections._count_elements, signature=False)  # type: ignore[attr-defined]
def count_elements(mapping: dict[Any, int], iterable: Iterable[Any], /) -> None:
    """Count the elements of an iterable in a mapping."""
    get = mapping.get
    for element in iterable:
        mapping[element] = get(element, 0) + 1


@handles(collections.namedtuple, lazy=True)
def made_namedtuple(
    tx: Tracer, /, *args: VariableTracker, **kwargs: VariableTracker
) -> VariableTracker | None:
    return make_namedtuple(tx, args, kwargs)
