"""What a call may change beside the copies it is given: variables of other functions and modules, what hooks write.

Such state is shared by a compiled call and the eager one that it is held against. It is put back to what it was
before the second one starts, and afterwards to what the first one, the test's own, made of it.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Callable, Container, Iterator
from typing import Any, NamedTuple

from dynacheck import places
from dynacheck.accessors import own_dict

_LARGEST = 20_000  # objects
_MISSING = object()
_Slot = tuple[Callable[[], Any], Callable[[Any], None]]
"""How a piece of state is read (a copy of it) and written."""


class TooLarge(Exception):
    """More is reachable than can be kept."""


class World:
    """The state that is reachable from functions and objects, as it is at different times.

    Args:
        roots: where to start.
        copied: ids of objects that a copy stands in for; they aren't kept.

    Raises:
        TooLarge: it can't be kept.
    """

    def __init__(self, roots: Any, copied: Container[int]) -> None:
        self._copied = copied
        self._slots: list[_Slot] = []
        self._written: set[int] = set()
        self._seen: dict[int, Any] = {}
        waiting = [roots]
        while waiting:
            value = waiting.pop()
            if id(value) in self._seen or value is None or isinstance(value, str | bytes | int | float):
                continue
            if len(self._seen) > _LARGEST:
                raise TooLarge(f"more than {_LARGEST:,} objects are reachable")
            self._seen[id(value)] = value
            waiting += self._inside(value)

    def now(self) -> list[Any]:
        """The state as it is."""
        return [read() for read, _ in self._slots]

    def put(self, state: list[Any]) -> None:
        """Make the state what `now` gave once."""
        before, self._written = self._written, set()
        for place, ((read, write), value) in enumerate(zip(self._slots, state, strict=True)):
            if place in before or not _same(read(), value):
                self._written.add(place)  # a tensor's version doesn't tell that its data was put back
                write(value)

    def _keep(self, value: Any, read: Callable[[], Any], write: Callable[[Any], None]) -> None:
        if id(value) not in self._copied:
            self._slots.append((read, write))

    def _inside(self, value: Any) -> Iterator[Any]:
        """What can be reached from a value; what can be written in it is kept."""
        import torch

        if isinstance(value, types.FunctionType):
            yield from self._function(value)
        elif isinstance(value, types.MethodType):
            yield from (value.__func__, value.__self__)
        elif isinstance(value, functools.partial):
            yield from (value.func, value.args, value.keywords)
        elif isinstance(value, types.CellType):
            self._keep(value, functools.partial(_content, value), functools.partial(_fill, value))
            yield _content(value)
        elif isinstance(value, torch.Tensor):
            if not value.is_inference() and value.layout is torch.strided:
                self._keep(value, functools.partial(_data, value), functools.partial(_write_data, value))
        elif isinstance(value, dict | list | set | deque) and type(value).__module__ in (
            "builtins",
            "collections",
        ):
            self._keep(value, value.copy, functools.partial(_refill, value))
            yield from (value.values() if isinstance(value, dict) else value)
        elif isinstance(value, tuple | frozenset):
            yield from value
        elif isinstance(value, type):
            if not _is_library(value):
                self._names(value, [n for n, v in vars(value).items() if not _is_code(v)])
                yield from vars(value).values()
        elif isinstance(value, staticmethod | classmethod | property):
            yield value.fget if isinstance(value, property) else value.__func__
        elif isinstance(value, torch.nn.Module | torch.optim.Optimizer) or not _is_library(type(value)):
            own = None if isinstance(value, types.ModuleType) else own_dict(value)
            if own is not None:
                self._keep(value, own.copy, functools.partial(_refill, own))
                yield from own.values()
                yield from type(value).__mro__

    def _function(self, function: types.FunctionType) -> Iterator[Any]:
        if places.is_library(function.__code__.co_filename):
            return
        yield from (function.__closure__ or (), function.__defaults__, function.__kwdefaults__)
        used = _names_in(function.__code__)
        variables = function.__globals__
        self._variables(variables, used)
        for name in used:
            value = variables.get(name)
            if isinstance(value, types.ModuleType) and not places.is_library(
                getattr(value, "__file__", None) or "<"
            ):
                self._variables(vars(value), used)
                yield from (vars(value).get(attribute) for attribute in used)
            yield value

    def _variables(self, variables: dict[str, Any], names: frozenset[str]) -> None:
        def read() -> dict[str, Any]:
            return {name: variables.get(name, _MISSING) for name in names}

        def write(state: dict[str, Any]) -> None:
            for name, value in state.items():
                if value is not _MISSING:
                    variables[name] = value
                else:
                    variables.pop(name, None)

        self._slots.append((read, write))

    def _names(self, owner: type, names: list[str]) -> None:
        def write(state: dict[str, Any]) -> None:
            for name, value in state.items():
                if vars(owner).get(name, _MISSING) is not value:
                    setattr(owner, name, value)

        self._slots.append((lambda: {name: vars(owner).get(name) for name in names}, write))


@functools.lru_cache(maxsize=4096)
def _names_in(code: types.CodeType) -> frozenset[str]:
    nested = [_names_in(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return frozenset(code.co_names).union(*nested)


def _is_code(value: Any) -> bool:
    return callable(value) or hasattr(type(value), "__get__")


def _is_library(cls: type) -> bool:
    """True for classes that aren't the user's: builtin, of the standard library, of torch."""
    if cls.__module__ == "builtins":
        return True
    functions = [v for v in vars(cls).values() if isinstance(v, types.FunctionType)]
    return any(places.is_library(f.__code__.co_filename) for f in functions) or cls.__module__.startswith(
        "torch."
    )


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _fill(cell: types.CellType, value: Any) -> None:
    if value is _MISSING:
        del cell.cell_contents
    else:
        cell.cell_contents = value


def _refill(container: Any, content: Any) -> None:
    container.clear()
    container.extend(content) if isinstance(container, list | deque) else container.update(content)


class _Data(NamedTuple):
    version: int
    values: Any


def _data(tensor: Any) -> _Data:
    return _Data(tensor._version, tensor.detach().clone())


def _write_data(tensor: Any, state: _Data) -> None:
    tensor.data.copy_(
        state.values
    )  # not a change that autograd needs to know of: the values are those it saw


def _same(one: Any, other: Any) -> bool:
    """True if two readings of a piece of state hold the very same objects."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(
            a is b for a, b in zip(one.values(), other.values(), strict=True)
        )
    if isinstance(one, list | deque):
        return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
    if isinstance(one, set):
        return bool(one == other)
    if isinstance(one, _Data):
        return bool(one.version == other.version)
    return one is other
