"""C methods called through their class, with the object as first argument: those at which torch breaks."""

from __future__ import annotations

import collections
from types import MappingProxyType
from typing import Any, Final

from dynacheck.sources import TypeAttr
from dynacheck.variables.functions import ObjectVariable

_POWERS: Final = ("__bool__", "__pow__", "__rpow__")
_SPECIAL: Final[MappingProxyType[type, tuple[str, ...]]] = MappingProxyType(
    {
        int: (*_POWERS, "__ceil__", "__float__", "__floor__", "__index__", "__int__", "__invert__", "__round__",
              "__trunc__"),
        complex: (*_POWERS, "__complex__"),
        bytes: ("__bytes__",),
        range: ("__bool__", "__reversed__", "count", "index"),
        slice: ("__repr__", "indices"),
        object: ("__getattribute__",),
    }
)  # fmt: skip


def breaks(fn: ObjectVariable) -> bool:
    """Whether torch breaks at a call of a C method: one kept outside of classes, those of some classes."""
    method: Any = fn.value
    if fn.node is not None and not isinstance(fn.node.accessor, TypeAttr):
        return method.__objclass__.__module__ in ("builtins", "collections")
    cls, name = method.__objclass__, method.__name__
    if cls in (list, collections.deque):
        return name not in ("__add__", "__repr__")
    return name in _SPECIAL.get(cls, ()) or (cls in (bytes, int, bool, complex) and name[:2] != "__")
