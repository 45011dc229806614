"""Python's operators as data: special methods, reflections, in-place functions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

REFLECTED: Final[Mapping[str, str]] = {
    "+": "__radd__",
    "-": "__rsub__",
    "*": "__rmul__",
    "/": "__rtruediv__",
    "//": "__rfloordiv__",
    "%": "__rmod__",
    "**": "__rpow__",
    "@": "__rmatmul__",
    "<<": "__rlshift__",
    ">>": "__rrshift__",
    "&": "__rand__",
    "|": "__ror__",
    "^": "__rxor__",
    "divmod": "__rdivmod__",
}
"""The method of the right operand, by binary operator."""

COMPARE_SWAPPED: Final[Mapping[str, str]] = {
    "<": ">",
    "<=": ">=",
    "==": "==",
    "!=": "!=",
    ">": "<",
    ">=": "<=",
}

UNARY_DUNDERS: Final[Mapping[str, str]] = {
    "-": "__neg__",
    "+": "__pos__",
    "~": "__invert__",
    "abs": "__abs__",
    "index": "__index__",
}

INPLACE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.iadd,
    "-": operator.isub,
    "*": operator.imul,
    "/": operator.itruediv,
    "//": operator.ifloordiv,
    "%": operator.imod,
    "**": operator.ipow,
    "@": operator.imatmul,
    "<<": operator.ilshift,
    ">>": operator.irshift,
    "&": operator.iand,
    "|": operator.ior,
    "^": operator.ixor,
}
