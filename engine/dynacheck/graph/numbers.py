"""Tensors of one number that the trace makes of Python's numbers: their values, where an operator needs them.

`torch.tensor(4)`, and arithmetic on such tensors, depends on nothing that a call could change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import torch

from dynacheck.graph.arrays import OnTensors, as_scalar, numpy
from dynacheck.graph.facts import TensorRef

Recipe = tuple[Any, Sequence[Any], dict[str, Any]]

_SOURCES: Final = frozenset((torch.tensor, torch.as_tensor, torch.asarray))
_ARITHMETIC: Final = frozenset((
    "add", "sub", "subtract", "mul", "multiply", "div", "divide", "truediv", "true_divide", "floordiv",
    "floor_divide", "mod", "remainder", "fmod", "pow", "neg", "negative", "abs", "absolute", "sign", "square",
    "maximum", "minimum", "clamp", "ceil", "floor", "round", "trunc", "long", "int", "to", "clone", "detach",
))  # fmt: skip
"""Names of functions and methods whose results depend on nothing but their arguments."""


_FACTORIES: Final = frozenset(
    ("zeros", "ones", "empty", "full", "eye", "identity", "arange", "linspace", "indices")
)
"""Functions of numpy whose results torch doesn't know: they take sizes, and no tensor."""


def exact_float(ref: TensorRef, plain: Callable[[Any], Any]) -> float | None:
    """The float that numpy makes of Python's numbers alone, as numpy itself gives it; None for others.

    Args:
        ref: any tensor.
        plain: gives the value of a number that varies between calls, which the frame depends on from then on.
    """
    if not ref.facts.dtype.is_floating_point or not _is_numpys(ref):
        return None
    found = _evaluate(ref, plain)
    return None if found is None else found.item()


def _is_numpys(ref: TensorRef) -> bool:
    return (
        ref.recipe is not None
        and isinstance(ref.recipe[0], OnTensors)
        and all(_is_numpys(part) for part in _leaves(ref.recipe[1:]) if type(part) is TensorRef)
    )


def _leaves(value: Any) -> Iterator[Any]:
    """What is in arguments."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else None
    if items is None:
        yield value
    else:
        for item in items:
            yield from _leaves(item)


def is_one(made: TensorRef, target: Any) -> bool:
    """Whether `note` may tell something about a result: a number, or an array with one element."""
    return not made.facts.shape or (
        isinstance(target, OnTensors) and all(type(n) is int and n == 1 for n in made.facts.shape)
    )


def note(made: TensorRef, target: Any, args: Sequence[Any], kwargs: dict[str, Any] | None) -> None:
    """Remember how a result without dimensions was made, if its value can be told from that."""
    if made.facts.device.type != "cpu" or made.facts.cls is not torch.Tensor:
        return
    refs = [leaf for leaf in _leaves((args, kwargs or {})) if type(leaf) is TensorRef]
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    if isinstance(target, OnTensors):  # not of several, as in torch, and no truth, which is no index
        one = all(len(arg) == 1 for arg in args if isinstance(arg, (list, tuple)))
        known = made.facts.dtype is not torch.bool and one
        takes_none = known and name.removeprefix("wrapped_") not in _FACTORIES
    else:
        known = name in _ARITHMETIC
        takes_none = known or target in _SOURCES
    if (known and all(ref.recipe is not None for ref in refs)) if refs else takes_none:
        made.recipe = (target, args, kwargs or {})


def replaced(args: Sequence[Any], kwargs: dict[str, Any] | None) -> tuple[list[Any], dict[str, Any]] | None:
    """Arguments with Python's numbers for the tensors whose value can be told; None where there is none."""
    before = (list(args), kwargs or {})
    found = _numbers(before)
    after: tuple[list[Any], dict[str, Any]] = _exchange(before, found)
    return after if found else None


def _numbers(value: Any) -> dict[int, Any]:
    """Numbers of the tensors within, by their ids."""
    if type(value) is TensorRef:
        number = None if value.recipe is None or value.facts.shape else _evaluate(value)
        return {} if number is None else {id(value): number.item()}
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return {key: number for item in items for key, number in _numbers(item).items()}


def _exchange(value: Any, others: dict[int, Any]) -> Any:
    """Arguments with what is given for the identities of those that are replaced."""
    if id(value) in others:
        return others[id(value)]
    if isinstance(value, dict):
        return {key: _exchange(item, others) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_exchange(item, others) for item in value)
    return value


def _evaluate(ref: TensorRef, plain: Callable[[Any], Any] | None = None) -> torch.Tensor | None:
    """The tensor itself; None if an operator wrote to it or to what it was made of, or a size went into it."""
    if ref.recipe is None or ref.storage.written:
        return None
    target, *given = ref.recipe
    found: dict[int, Any] = {}
    for leaf in _leaves(given):
        real = _evaluate(leaf, plain) if type(leaf) is TensorRef else leaf
        if isinstance(real, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            real = None if plain is None else plain(real)
        if real is None and leaf is not None:
            return None
        if real is not leaf:
            found[id(leaf)] = real
    args, kwargs = _exchange(given, found)
    return _called(target, args, kwargs, ref.facts.dtype)


def _called(
    target: Any, args: Sequence[Any], kwargs: dict[str, Any], dtype: torch.dtype
) -> torch.Tensor | None:
    if isinstance(target, OnTensors):
        of_numpys = {
            id(leaf): as_scalar(leaf) for leaf in _leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)
        }
        args, kwargs = _exchange((args, kwargs), of_numpys)
        with numpy.errstate(all="ignore"):
            made = torch.as_tensor(target.original(*args, **kwargs))
        return made if made.dtype is dtype else None
    call = getattr(args[0], target) if isinstance(target, str) else target
    with torch.inference_mode(False), torch.no_grad():
        result: torch.Tensor = call(*args[isinstance(target, str) :], **kwargs)
    return result
