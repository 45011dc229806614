"""Attributes and methods of a tensor that its facts answer without running anything."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final, cast

import torch

from dynacheck.graph.facts import TensorFacts, TensorRef

UNKNOWN: Final[Any] = object()
"""The facts don't answer."""


def written_out(out: Any) -> tuple[list[TensorRef], list[Any]]:
    """The tensors that an operator is given as `out=`, and the sizes they have."""
    refs = [o for o in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(o, TensorRef)]
    return refs, [ref.facts.shape for ref in refs]


def is_contiguous(facts: TensorFacts) -> bool:
    """Whether a static tensor is contiguous in row-major order.

    Args:
        facts: static facts.

    Returns:
        What `Tensor.is_contiguous()` returns.
    """
    expected = 1
    if 0 in facts.shape:
        return True
    for n, s in zip(reversed(facts.shape), reversed(facts.stride)):
        if n != 1:
            if s != expected:
                return False
            expected *= int(n)
    return True


def _size(facts: TensorFacts, dim: int | None = None) -> Any:
    return (
        torch.Size(cast("tuple[int, ...]", facts.shape))
        if dim is None
        else facts.shape[_dimension(facts, dim)]
    )


def _stride(facts: TensorFacts, dim: int | None = None) -> Any:
    return facts.stride if dim is None else facts.stride[_dimension(facts, dim)]


def _dimension(facts: TensorFacts, dim: Any) -> int:
    if type(dim) is not int or not -facts.ndim <= dim < facts.ndim:
        raise LookupError
    return dim


def _is_contiguous(facts: TensorFacts, memory_format: torch.memory_format = torch.contiguous_format) -> Any:
    if facts.has_symbols or memory_format is not torch.contiguous_format:
        raise LookupError
    return is_contiguous(facts)


def _length(facts: TensorFacts) -> Any:
    if facts.ndim == 0:
        raise LookupError
    return facts.shape[0]


def _get_device(facts: TensorFacts) -> int:
    return -1 if facts.device.index is None else facts.device.index


def _is_of(kind: str, facts: TensorFacts) -> bool:
    return facts.device.type == kind


_DEVICES: Final = ("cpu", "cuda", "meta", "mps", "xpu", "xla", "ipu", "mtia", "maia", "vulkan")
_ATTRIBUTES: dict[str, Callable[[TensorFacts], Any]] = {
    "shape": lambda f: torch.Size(cast("tuple[int, ...]", f.shape)),
    "ndim": lambda f: f.ndim,
    "dtype": lambda f: f.dtype,
    "device": lambda f: f.device,
    "layout": lambda f: f.layout,
    "requires_grad": lambda f: f.requires_grad,
    "is_leaf": lambda f: f.is_leaf,
    "itemsize": lambda f: f.dtype.itemsize,
    "nbytes": lambda f: f.numel * f.dtype.itemsize,
    "is_sparse": lambda f: False,
    "is_sparse_csr": lambda f: False,
    "is_quantized": lambda f: False,
    "is_nested": lambda f: False,
    "is_mkldnn": lambda f: False,
    "name": lambda f: None,
    "volatile": lambda f: False,
    **{f"is_{kind}": partial(_is_of, kind) for kind in _DEVICES},
}

_METHODS: dict[str, Callable[..., Any]] = {
    "size": _size,
    "stride": _stride,
    "dim": lambda f: f.ndim,
    "ndimension": lambda f: f.ndim,
    "numel": lambda f: f.numel,
    "nelement": lambda f: f.numel,
    "element_size": lambda f: f.dtype.itemsize,
    "storage_offset": lambda f: f.storage_offset,
    "is_contiguous": _is_contiguous,
    "is_floating_point": lambda f: f.dtype.is_floating_point,
    "is_complex": lambda f: f.dtype.is_complex,
    "is_signed": lambda f: f.dtype.is_signed,
    "is_conj": lambda f: f.is_conj,
    "is_neg": lambda f: f.is_neg,
    "is_inference": lambda f: f.is_inference,
    "get_device": _get_device,
    "__len__": _length,
}


def answer(facts: TensorFacts, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The value of an attribute, or the result of a metadata method, if the facts tell.

    Args:
        facts: the tensor's facts.
        name: the attribute's or method's name.
        args: the method's positional arguments.
        kwargs: the method's keyword arguments.

    Returns:
        The value, or UNKNOWN.
    """
    attribute = _ATTRIBUTES.get(name)
    if attribute is not None:
        return attribute(facts)
    method = _METHODS.get(name)
    if method is None:
        return UNKNOWN
    try:
        return method(facts, *args, **kwargs)
    except (LookupError, TypeError):  # the operator itself says what is wrong with the arguments
        return UNKNOWN


def is_known(name: str) -> bool:
    """Whether a name is an attribute that facts alone tell."""
    return name in _ATTRIBUTES


def is_method(name: str) -> bool:
    """Whether a name is a method of tensors rather than a computed attribute."""
    return callable(getattr(torch.Tensor, name, None))


@cache
def getter(name: str) -> Callable[[torch.Tensor], Any]:
    """The one function that reads an attribute of that name, so that it can key the memo."""

    def get(tensor: torch.Tensor) -> Any:
        return getattr(tensor, name)

    return get
