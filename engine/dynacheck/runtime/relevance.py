"""Whether a frame can have tensor operations at all: it sees a tensor, or names torch.

The rule is torch's, down to the containers that it looks into: a frame it leaves alone has no breaks to count.
"""

from __future__ import annotations

import sys
import types
from typing import Any, Final

import torch

from dynacheck.sources import is_a

_ACCESSORS: Final = ("__getattr__", "__setattr__")
"""Functions that read or write an attribute: they are inlined where compiled code does that, and else run as they are."""

_CONTAINERS: Final = (list, tuple)


def concerns_tensors(func: types.FunctionType, args: tuple[Any, ...]) -> bool:
    """Whether the frame is worth translating.

    Args:
        func: its function.
        args: the values of its argument slots.

    >>> concerns_tensors(lambda n: n + 1, (3,))
    False
    >>> concerns_tensors(lambda x: x + 1, ([torch.ones(2)],))
    True
    """
    if func.__code__.co_name in _ACCESSORS:
        return False
    globals_ = func.__globals__
    for name in func.__code__.co_names:
        if _is_tensor_module(globals_.get(name)):
            return True
    seen: set[int] = set()
    if any(_holds_tensor(value, seen) for value in args):
        return True
    return any(_holds_tensor(_contents(cell), seen) for cell in func.__closure__ or ())


def _is_tensor_module(value: Any) -> bool:
    """torch or NumPy, or a part of one."""
    return is_a(value, types.ModuleType) and value.__name__.partition(".")[0] in ("torch", "numpy")


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _holds_tensor(value: Any, seen: set[int]) -> bool:
    """A tensor, module or array, or a builtin container that holds one; attributes of other objects aren't looked at."""
    if is_a(value, (torch.Tensor, torch.nn.Module)):
        return True
    cls = type(value)
    if cls is type:
        return issubclass(value, torch.nn.Module)
    if cls in _CONTAINERS or (is_a(value, tuple) and hasattr(cls, "_fields")):
        items = tuple(value)
    elif cls is dict:
        items = tuple(value.values())
    else:
        return _is_array(value)
    if id(value) in seen:
        return False
    seen.add(id(value))
    return any(_holds_tensor(item, seen) for item in items)


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and (type(value) is numpy.ndarray or is_a(value, numpy.generic))
