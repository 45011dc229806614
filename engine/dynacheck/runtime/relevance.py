"""Whether a frame can have tensor operations at all: it sees a tensor, or names torch."""

from __future__ import annotations

import types
from typing import Any, Final

import torch

_PLAIN: Final = frozenset({int, float, str, bytes, bool, complex, type(None), type(...), range, slice})
_DEPTH: Final = 8


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
    globals_ = func.__globals__
    for name in func.__code__.co_names:
        value = globals_.get(name)
        if type(value) is types.ModuleType and (value is torch or value.__name__.startswith("torch.")):
            return True
        if isinstance(value, (torch.Tensor, torch.nn.Module)):
            return True
        if _from_torch(value):
            return True
    seen: set[int] = set()
    if any(_holds_tensor(value, seen, _DEPTH) for value in args):
        return True
    cells = func.__closure__ or ()
    return any(_holds_tensor(_contents(cell), seen, _DEPTH) for cell in cells)


def _from_torch(value: Any) -> bool:
    """A function or class of torch, imported by name."""
    if not isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return False
    module = getattr(value, "__module__", None) or type(getattr(value, "__self__", None)).__module__
    return isinstance(module, str) and (module == "torch" or module.startswith("torch."))


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _holds_tensor(value: Any, seen: set[int], depth: int) -> bool:
    """Whether a tensor is reached through containers and instance attributes."""
    cls = type(value)
    if cls in _PLAIN or depth == 0:
        return False
    if isinstance(value, type):
        return issubclass(value, (torch.Tensor, torch.nn.Module))
    if issubclass(cls, (torch.Tensor, torch.nn.Module)):
        return True
    if id(value) in seen or isinstance(value, (types.FunctionType, types.ModuleType)):
        return False
    seen.add(id(value))
    if isinstance(value, (list, tuple, set, frozenset)):
        items: Any = list(value)
    elif isinstance(value, dict):
        items = [*dict.keys(value), *dict.values(value)]
    else:
        items = ()
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        attributes = None
    if type(attributes) is dict:
        items = [*items, *attributes.values()]
    return any(_holds_tensor(item, seen, depth - 1) for item in items)
