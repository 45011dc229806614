"""Throw-away fake tensors built from facts: an operator runs on them once and its effects are read back.

What is reproduced, because operators react to it: sizes, strides, offset and storage size; which tensors
share a storage; which are views, of what and made how; leaf or not, with or without gradient; conjugation,
negation and inference bits. Nothing here touches data or random state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import overrides
from torch.utils._device import DeviceContext
from torch.utils._mode_utils import no_dispatch

from dynacheck.graph.facts import (
    VIEW_NO_GRAD,
    VIEW_OF_LEAF,
    VIEW_OF_MANY,
    Size,
    TensorFacts,
    TensorRef,
)

_mode_stack: Callable[[], list[Any]] = overrides._get_current_function_mode_stack
_FAKE = torch._C._TorchDispatchModeKey.FAKE
_ANCHOR = torch.zeros((), dtype=torch.float32, device="cpu", requires_grad=True)


class _NonLeaf(torch.autograd.Function):
    """Gives a tensor made by a function a gradient node, so that it is no leaf."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, make: Callable[[], torch.Tensor]) -> torch.Tensor:
        return make()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        raise AssertionError("throw-away tensors have no gradients")


@cache
def _fake_tensor() -> Any:
    from torch._subclasses.fake_tensor import FakeTensor

    return FakeTensor


@contextmanager
def without_function_modes() -> Iterator[None]:
    """Run a block with no torch function mode but the default device's, so that no user code runs."""
    if torch._C._len_torch_function_stack() == 0:
        yield
        return
    modes = _mode_stack()
    keep = [m for m in modes if isinstance(m, DeviceContext)]
    for _ in modes:
        torch._C._pop_torch_function_stack()
    for mode in keep:
        torch._C._push_on_torch_function_stack(mode)
    try:
        yield
    finally:
        for _ in keep:
            torch._C._pop_torch_function_stack()
        for mode in modes:
            torch._C._push_on_torch_function_stack(mode)


@contextmanager
def as_no_grad() -> Iterator[None]:
    """Run a block in no-grad mode instead of inference mode, if that is on.

    Fake tensors decompose more operators in inference mode than real ones (`dropout` in evaluation clones);
    in no-grad mode they do what real tensors do in either.
    """
    if not torch.is_inference_mode_enabled():
        yield
        return
    with torch.inference_mode(False), torch.no_grad():
        yield


@contextmanager
def _building() -> Iterator[None]:
    """Plain autograd state for building: gradients recorded, no inference mode, no default device."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


def _span(facts: TensorFacts) -> Size:
    """Bytes that a tensor of these sizes and strides needs at least, from the start of its storage."""
    last: Size = facts.storage_offset
    for n, s in zip(facts.shape, facts.stride):
        if n == 0:
            return 0
        last = last + (n - 1) * s
    return (last + 1) * facts.dtype.itemsize


def on_its_own(facts: TensorFacts) -> TensorRef:
    """A tensor of these sizes, strides and kind that shares its storage with no other.

    Args:
        facts: those of another tensor.

    Returns:
        A new ref: a leaf, no view, at the start of its storage.
    """
    base = facts.replace(view=None, is_leaf=True, storage_offset=0)
    return TensorRef(base.replace(nbytes=-1 if base.has_symbols else _span(base)))


def _needs_grad_node(facts: TensorFacts) -> bool:
    return facts.requires_grad and not facts.is_leaf


class World:
    """Fake tensors for a list of references; build under the fake mode that will run the operator.

    Args:
        refs: the references, in a fixed order; the same one may come twice.
        plain: build inference tensors as plain ones (inside inference mode they behave alike).
        meta: build meta tensors, outside any fake mode, in place of fake ones.

    Attributes:
        tensors: the fake tensor of each reference.
    """

    def __init__(self, refs: Sequence[TensorRef], plain: bool = False, meta: bool = False) -> None:
        self._plain = plain
        self._device = torch.device("meta") if meta else None
        self._made: dict[int, torch.Tensor] = {}
        self._roots: dict[int, torch.Tensor] = {}
        self._bases: dict[int, torch.Tensor] = {}
        with _building():
            for ref in refs:
                if ref.base is None and ref.facts.view is None:
                    self._tensor(ref)
            self.tensors = [self._tensor(ref) for ref in refs]

    def base_of(self, ref: TensorRef) -> torch.Tensor | None:
        """The fake tensor that a reference's was made a view of, if it was."""
        return self._bases.get(id(ref))

    def _tensor(self, ref: TensorRef) -> torch.Tensor:
        tensor = self._made.get(id(ref))
        if tensor is None:
            tensor = self._build(ref)
            if ref.facts.cls is not torch.Tensor and issubclass(ref.facts.cls, torch.nn.Parameter):
                tensor._is_param = True
            self._made[id(ref)] = tensor
            self._roots.setdefault(id(ref.storage), tensor)
        return tensor

    def _build(self, ref: TensorRef) -> torch.Tensor:
        facts = ref.facts
        if facts.view is None or facts.is_inference:
            return self._build_root(ref)
        base = self._base(ref)
        if base.dtype != facts.dtype and not (base.is_complex() or facts.dtype.is_complex):
            return _flagged(facts, lambda: _strided(facts, base, self._device))
        self._bases[id(ref)] = base
        return _view(base, facts)

    def _base(self, ref: TensorRef) -> torch.Tensor:
        """The tensor a view is made of: its base, or one made up that fits."""
        if ref.base is not None:
            return self._tensor(ref.base)
        facts = ref.facts
        over = self._roots.get(id(ref.storage))
        leaf = facts.view in (VIEW_OF_LEAF, VIEW_NO_GRAD)
        grad = leaf or _needs_grad_node(facts)
        whole = {"shape": (facts.nbytes // facts.dtype.itemsize,), "stride": (1,)}
        flat = facts.replace(
            **({} if facts.nbytes < 0 else whole),  # of symbols: what the view covers
            storage_offset=0,
            view=None,
            is_leaf=leaf or not grad,
            requires_grad=grad,
            is_conj=False,
            is_neg=False,
            cls=torch.Tensor,
        )
        return _flagged(flat, lambda: _strided(flat, over, self._device))

    def _build_root(self, ref: TensorRef) -> torch.Tensor:
        facts = ref.facts
        over = self._roots.get(id(ref.storage))
        if facts.is_inference and not self._plain:
            with torch.inference_mode():
                return _with_bits(_strided(facts, over, self._device), facts)
        if facts.is_conj or facts.is_neg:
            return _flagged(facts, lambda: _with_bits(_strided(facts, over, self._device), facts).detach())
        return _flagged(facts, lambda: _strided(facts, over, self._device))


def _strided(facts: TensorFacts, over: torch.Tensor | None, device: torch.device | None) -> torch.Tensor:
    """A plain tensor of these sizes and strides, over the storage of another one if given."""
    if over is None:
        size = (
            _span(facts) if facts.nbytes < 0 else facts.nbytes
        )  # of a storage with a symbolic size: what is covered
        if facts.storage_offset == 0 and (facts.has_symbols or size == _span(facts)):
            return _empty(facts, device)
        over = torch.empty((size,), dtype=torch.uint8, device=device or facts.device)
    empty = torch.empty((0,), dtype=facts.dtype, device=device or facts.device)
    storage: Any = over.untyped_storage()
    with torch.no_grad():
        return empty.set_(storage, facts.storage_offset, facts.shape, facts.stride)


def _empty(facts: TensorFacts, device: torch.device | None) -> torch.Tensor:
    """A new tensor. Static fake ones are made around a meta tensor: a tenth of the mode's own time."""
    mode: Any = None if device or facts.has_symbols else torch._C._get_dispatch_mode(_FAKE)
    if mode is None:
        return torch.empty_strided(
            facts.shape, facts.stride, dtype=facts.dtype, device=device or facts.device
        )
    with no_dispatch():
        meta = torch.empty_strided(facts.shape, facts.stride, dtype=facts.dtype, device="meta")
    made: torch.Tensor = _fake_tensor()(mode, meta, facts.device)
    return made


def _flagged(facts: TensorFacts, make: Callable[[], torch.Tensor]) -> torch.Tensor:
    """A made tensor with its autograd flags: leaf with or without gradient, or non-leaf."""
    if _needs_grad_node(facts):
        made: torch.Tensor = _NonLeaf.apply(_ANCHOR, make)  # type: ignore[no-untyped-call]
        return made
    tensor = make()
    return tensor.requires_grad_() if facts.requires_grad else tensor


def _with_bits(tensor: torch.Tensor, facts: TensorFacts) -> torch.Tensor:
    if facts.is_conj != tensor.is_conj():
        tensor = tensor.conj()
    if facts.is_neg != tensor.is_neg():
        tensor = torch._neg_view(tensor)
    return tensor


def _view(base: torch.Tensor, facts: TensorFacts) -> torch.Tensor:
    """A view of a base with the facts of the view."""
    if base.dtype.is_complex and not facts.dtype.is_complex:
        if base.is_conj():
            base = base.conj()
        base = torch.view_as_real(base)
    elif facts.dtype.is_complex and not base.dtype.is_complex:
        base = torch.view_as_complex(base.as_strided((base.numel() // 2, 2), (2, 1), 0))
    shape, stride, offset = facts.shape, facts.stride, facts.storage_offset
    if facts.view == VIEW_NO_GRAD:
        with torch.no_grad():
            return _with_bits(base.as_strided(shape, stride, offset), facts)
    if facts.view == VIEW_OF_MANY:
        many = base.as_strided((1, *shape), (1, *stride), offset)
        return _with_bits(many.unbind(0)[0], facts)
    view = _with_bits(base.as_strided(shape, stride, offset), facts)
    if facts.requires_grad and view.is_leaf:
        view.requires_grad_()
        return view if facts.is_leaf else view[...]  # a view of one that was made a leaf
    return view
