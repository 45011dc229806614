"""Tensors of one number that the trace makes of Python's numbers: their values, where an operator needs them.

`torch.tensor(4)`, and arithmetic on such tensors, depends on nothing that a call could change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from dynacheck.graph.arrays import OnTensors
from dynacheck.graph.facts import TensorRef

Recipe = tuple[Any, Sequence[Any], dict[str, Any]]

_SOURCES: Final = frozenset((torch.tensor, torch.as_tensor, torch.asarray))
_ARITHMETIC: Final = frozenset((
    "add", "sub", "subtract", "mul", "multiply", "div", "divide", "truediv", "true_divide", "floordiv",
    "floor_divide", "mod", "remainder", "fmod", "pow", "neg", "negative", "abs", "absolute", "sign", "square",
    "maximum", "minimum", "clamp", "ceil", "floor", "round", "trunc", "long", "int", "to", "clone", "detach",
))  # fmt: skip
"""Names of functions and methods whose results depend on nothing but their arguments."""


_EXACT: Final = _ARITHMETIC - {"pow"} | {
    "sqrt", "rint", "around", "clip", "positive", "array", "asarray", "copy", "float64", "float32", "float16",
}  # fmt: skip
"""Operations of which all libraries give the same floats."""


def exact_float(ref: TensorRef, plain: Callable[[Any], Any]) -> float | None:
    """The float in a tensor that was made of Python's numbers alone, if no rounding of a library's own is in it.

    Args:
        ref: any tensor.
        plain: gives the value of a number that varies between calls, which the frame depends on from then on.
    """
    if not ref.facts.dtype.is_floating_point or not _is_exact(ref):
        return None
    found = _evaluate(ref, plain)
    return None if found is None else found.item()


def _is_exact(ref: TensorRef) -> bool:
    if ref.recipe is None:
        return False
    target, args, kwargs = ref.recipe
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    parts = (value for value in (*args, *kwargs.values()) if type(value) is TensorRef)
    return name.removeprefix("wrapped_") in _EXACT and all(map(_is_exact, parts))


def note(made: TensorRef, target: Any, args: Sequence[Any], kwargs: dict[str, Any] | None) -> None:
    """Remember how a result without dimensions was made, if its value can be told from that."""
    if made.facts.device.type != "cpu" or made.facts.cls is not torch.Tensor:
        return
    values = (*args, *(kwargs or {}).values())
    refs = [v for v in values if type(v) is TensorRef]
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    name = name.removeprefix("wrapped_")  # an operation of numpy
    scalar = isinstance(target, OnTensors) and made.facts.dtype is not torch.bool  # which is no index
    made_of_numbers = target in _SOURCES or scalar
    if all(r.recipe is not None for r in refs) if name in _ARITHMETIC else made_of_numbers and not refs:
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
        number = None if value.recipe is None else _evaluate(value)
        return {} if number is None else {id(value): number.item()}
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return {key: number for item in items for key, number in _numbers(item).items()}


def _exchange(value: Any, numbers: dict[int, Any]) -> Any:
    if type(value) is TensorRef:
        return numbers.get(id(value), value)
    if isinstance(value, dict):
        return {key: _exchange(item, numbers) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_exchange(item, numbers) for item in value)
    return value


def _evaluate(ref: TensorRef, plain: Callable[[Any], Any] | None = None) -> torch.Tensor | None:
    """The tensor itself; None if an operator wrote to it or to what it was made of, or a size went into it."""
    if ref.recipe is None or ref.storage.written:
        return None
    target, args, kwargs = ref.recipe
    values = []
    for value in (*args, *kwargs.values()):
        real = _evaluate(value, plain) if type(value) is TensorRef else value
        if isinstance(real, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            real = None if plain is None else plain(real)
        if real is None and value is not None:
            return None
        values.append(real)
    positional, named = values[: len(args)], dict(zip(kwargs, values[len(args) :]))
    call = getattr(positional.pop(0), target) if isinstance(target, str) else target
    with torch.inference_mode(False), torch.no_grad():
        made: torch.Tensor = call(*positional, **named)
    return made
