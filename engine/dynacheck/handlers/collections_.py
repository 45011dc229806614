"""The collections module: C helpers of its Python classes."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import Any

from dynacheck.handlers.registry import replaces


@replaces(collections._count_elements, signature=False)  # type: ignore[attr-defined]
def count_elements(mapping: dict[Any, int], iterable: Iterable[Any], /) -> None:
    """Count the elements of an iterable in a mapping."""
    get = mapping.get
    for element in iterable:
        mapping[element] = get(element, 0) + 1
