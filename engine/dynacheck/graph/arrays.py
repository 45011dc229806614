"""Operations of numpy as graphs call them: on tensors, by torch's own numpy, under the names that torch gives them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import torch

numpy: Any = sys.modules.get("numpy")
"""numpy, which torch imports where it is installed; else None."""

SCALARS: Final[tuple[type, ...]] = (
    ()
    if numpy is None
    else tuple(
        getattr(numpy, name)
        for name in (
            "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
            "float64", "complex64", "complex128",
        )
    )
)  # fmt: skip
"""Classes of numpy's scalars that are 0-d tensors in graphs."""


def tensor_of(value: Any) -> torch.Tensor | None:
    """A tensor over an array's memory, or a copy of what can't be written to; None where there is none."""
    if type(value) is not numpy.ndarray:
        value = numpy.array(value)
    elif not value.flags.writeable:
        value = value.copy(order="K")
    try:
        return torch.from_numpy(value)
    except (TypeError, ValueError):  # a dtype, or strides, that tensors don't have
        return None


def writable(array: Any) -> bool | None:
    """True for an array that can be written to, else None."""
    return True if type(array) is numpy.ndarray and array.flags.writeable else None


def as_array(tensor: torch.Tensor) -> Any:
    """A tensor as the array that the program has (used by rewritten code)."""
    return tensor.numpy(force=True)


def as_read_only(tensor: torch.Tensor) -> Any:
    """A tensor as an array over the memory of one that can't be written to (used by rewritten code)."""
    array = tensor.numpy(force=True)
    array.flags.writeable = False
    return array


def as_scalar(tensor: torch.Tensor) -> Any:
    """A 0-d tensor as the scalar that the program has (used by rewritten code)."""
    return tensor.numpy(force=True)[()]


def _as_tensors(value: Any) -> Any:
    theirs: Any = torch._numpy
    if isinstance(value, theirs.ndarray):
        return value.tensor
    if isinstance(value, (tuple, list)):
        return type(value)(_as_tensors(item) for item in value)
    return value


_Operation = Callable[..., Any]


class OnTensors:
    """An operation on arrays as a function of tensors.

    Args:
        name: its name.
        operation: the operation, on torch's arrays.
        original: the operation, on numpy's own arrays.
    """

    def __init__(self, name: str, operation: _Operation, original: _Operation) -> None:
        self.__name__ = f"wrapped_{name}"
        self.operation = operation
        self.original = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _as_tensors(self.operation(*args, **kwargs))

    def __repr__(self) -> str:
        return f"<numpy's {self.__name__.removeprefix('wrapped_')}>"


_OTHERS: Final = frozenset({
    "angle", "ascontiguousarray", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes",
    "diag_indices", "eigh", "fftfreq", "fftn", "geomspace", "gradient", "histogram", "histogramdd", "i0", "identity",
    "heaviside", "ifftn", "imag", "isreal", "logspace", "median", "meshgrid", "percentile", "qr", "quantile", "real",
    "real_if_close", "rfftfreq", "sinc", "slogdet", "svd", "tensordot", "tensorsolve", "tri", "tril_indices",
    "tril_indices_from", "triu_indices", "triu_indices_from",
})  # fmt: skip
"""Functions whose results in torch's numpy have another dtype, shape or class than numpy's."""


def _array(value: Any) -> Any:
    theirs: Any = torch._numpy
    return theirs.ndarray(value) if isinstance(value, torch.Tensor) else value


def has_method(name: str) -> bool:
    """Whether torch's arrays have the method of a name."""
    import torch._numpy as theirs

    return callable(getattr(vars(theirs)["ndarray"], name, None))


@cache
def method(name: str) -> OnTensors:
    """The method of arrays of a name; the array is the first argument."""

    def call(array: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(_array(array), name)(*args, **kwargs)

    return OnTensors(name, call, call)


@cache
def operator_of(function: _Operation) -> OnTensors:
    """A function of the module `operator`, on arrays."""
    return OnTensors(function.__name__, lambda *args: function(*map(_array, args)), function)


@cache
def attribute(name: str) -> OnTensors:
    """The attribute of arrays of a name."""

    def read(array: Any) -> Any:
        return getattr(_array(array), name)

    return OnTensors(name, read, read)


def function_of(value: Any) -> OnTensors | None:
    """A function (or a scalar's class) of numpy that torch's numpy has too; None for others."""
    return _functions().get(id(value))


@cache
def _functions() -> dict[int, OnTensors]:
    """By the identity of numpy's own. What draws random numbers isn't there: torch's are others."""
    import torch._numpy as theirs

    found = {}
    for ours, there in ((numpy, theirs), (numpy.fft, theirs.fft), (numpy.linalg, theirs.linalg)):
        for name, made in vars(there).items():
            original: Any = getattr(ours, name, None)
            known = callable(made) and callable(original) and made is not original
            if known and name[0] != "_" and name not in _OTHERS:
                if not isinstance(original, type) or original in SCALARS:
                    found[id(original)] = OnTensors(name, made, original)
    return found
