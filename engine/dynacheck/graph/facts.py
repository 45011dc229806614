"""What is known about a tensor while translating: an immutable record of ours, and who shares its storage.

`TensorFacts` is interned: two tensors of equal metadata have the same facts object, so that comparing and
hashing facts is comparing and hashing a pointer (the key of every metadata lookup is made of them). Facts
with symbolic sizes belong to one translation attempt and are not interned.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, TypeAlias
from weakref import WeakValueDictionary

import torch

Size: TypeAlias = "int | torch.SymInt"

VIEW: Final = "view"
"""A view of a tensor that gradients may flow through (or that requires none)."""
VIEW_OF_LEAF: Final = "leaf"
"""A view of a leaf that requires grad: writing to it in grad mode raises."""
VIEW_OF_MANY: Final = "multi"
"""One of several views that one function returned (`split`, `unbind`): writing to it in grad mode raises."""
VIEW_NO_GRAD: Final = "no_grad"
"""A view made in no-grad mode of a tensor that requires grad: writing to it in grad mode raises."""

_MULTI_VIEW_NODES = frozenset(
    {"SplitBackward0", "SplitWithSizesBackward0", "UnbindBackward0", "ChunkBackward0", "TensorSplitBackward0"}
)


class UnsupportedTensor(Exception):
    """A tensor of a kind that metadata propagation has no facts for.

    Args:
        reason: what kind it is, for the user: "a sparse tensor".
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


_interned: WeakValueDictionary[tuple[Any, ...], TensorFacts] = WeakValueDictionary()


class TensorFacts:
    """Immutable metadata of a tensor.

    Equal static facts are the same object, so that equality and hash are those of the object.

    Attributes:
        shape: sizes, int or SymInt.
        stride: strides in elements, int or SymInt.
        storage_offset: in elements.
        dtype: element type.
        device: device with index where the device kind has one.
        layout: always `torch.strided` for supported tensors.
        requires_grad: as the tensor's attribute.
        is_leaf: as the tensor's attribute.
        is_conj: the lazy conjugation bit.
        is_neg: the lazy negation bit.
        is_inference: made in inference mode.
        cls: exact Python class: `torch.Tensor`, `torch.nn.Parameter` or a subclass.
        nbytes: size of the storage in bytes; -1 when it is symbolic.
        view: None for a tensor that is no view, else one of the VIEW constants.
        has_symbols: whether a size, stride or offset is symbolic.
    """

    __slots__ = (
        "__weakref__",
        "cls",
        "device",
        "dtype",
        "has_symbols",
        "is_conj",
        "is_inference",
        "is_leaf",
        "is_neg",
        "layout",
        "nbytes",
        "requires_grad",
        "shape",
        "storage_offset",
        "stride",
        "view",
    )

    shape: tuple[Size, ...]
    stride: tuple[Size, ...]
    storage_offset: Size
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout
    requires_grad: bool
    is_leaf: bool
    is_conj: bool
    is_neg: bool
    is_inference: bool
    cls: type
    nbytes: int
    view: str | None
    has_symbols: bool

    def __new__(
        cls,
        shape: tuple[Size, ...],
        stride: tuple[Size, ...],
        storage_offset: Size,
        dtype: torch.dtype,
        device: torch.device,
        nbytes: int,
        *,
        layout: torch.layout = torch.strided,
        requires_grad: bool = False,
        is_leaf: bool = True,
        is_conj: bool = False,
        is_neg: bool = False,
        is_inference: bool = False,
        tensor_class: type = torch.Tensor,
        view: str | None = None,
    ) -> TensorFacts:
        symbolic = not (
            type(storage_offset) is int
            and all(type(n) is int for n in shape)
            and all(type(n) is int for n in stride)
        )
        values = (
            shape,
            stride,
            storage_offset,
            dtype,
            device,
            layout,
            requires_grad,
            is_leaf,
            is_conj,
            is_neg,
            is_inference,
            tensor_class,
            nbytes,
            view,
        )
        if not symbolic:
            found = _interned.get(values)
            if found is not None:
                return found
        self = object.__new__(cls)
        for name, value in zip(_FIELDS, values):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "has_symbols", symbolic)
        if not symbolic:
            _interned[values] = self
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"TensorFacts is immutable: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"TensorFacts is immutable: {name}")

    def replace(self, **changes: Any) -> TensorFacts:
        """The facts with some fields changed (`cls` is spelled as the attribute)."""
        fields = {name: getattr(self, name) for name in _FIELDS}
        fields.update(changes)
        fields["tensor_class"] = fields.pop("cls")
        return TensorFacts(**fields)

    def as_inference(self) -> TensorFacts:
        """The facts of the same tensor made in inference mode: no gradient, no view, no history."""
        return self.replace(is_inference=True, requires_grad=False, is_leaf=True, view=None)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> Size:
        """Number of elements; a SymInt when a size is symbolic."""
        n: Size = 1
        for size in self.shape:
            n = n * size
        return n

    def __repr__(self) -> str:
        bits = [f"{self.dtype}", f"{list(self.shape)}", f"stride={list(self.stride)}", f"{self.device}"]
        if self.storage_offset != 0:
            bits.append(f"offset={self.storage_offset}")
        for name in ("requires_grad", "is_conj", "is_neg", "is_inference"):
            if getattr(self, name):
                bits.append(name)
        if not self.is_leaf:
            bits.append("non-leaf")
        if self.view is not None:
            bits.append(f"view={self.view}")
        if self.cls is not torch.Tensor:
            bits.append(self.cls.__name__)
        return f"TensorFacts({', '.join(bits)}, nbytes={self.nbytes})"


_FIELDS = (
    "shape",
    "stride",
    "storage_offset",
    "dtype",
    "device",
    "layout",
    "requires_grad",
    "is_leaf",
    "is_conj",
    "is_neg",
    "is_inference",
    "cls",
    "nbytes",
    "view",
)


class Storage:
    """The identity of a storage during one attempt.

    Attributes:
        nbytes: its size.
        members: the tensors over it, in the order they were met.
        written: whether an operator of the trace writes to it.
    """

    __slots__ = ("__weakref__", "members", "nbytes", "written")
    writes: ClassVar[int] = 0
    """How many writes of operators were noted, to any storage."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.members: list[TensorRef] = []
        self.written = False

    def wrote(self) -> None:
        """An operator writes to it."""
        self.written = True
        Storage.writes += 1


class TensorRef:
    """A tensor of one attempt: mutable, because operators may change a tensor's metadata.

    Attributes:
        facts: what is known now.
        storage: the storage, shared with the tensors that alias it.
        base: the tensor this is a view of (never itself a view), or None if it is no view or the base was not
            met.
        fake: the fake tensor standing for it in an attempt with symbols, or None.
        recipe: how it was made, for a number made of Python's numbers (`numbers.py`).
    """

    __slots__ = ("__weakref__", "base", "facts", "fake", "recipe", "storage")

    def __init__(
        self, facts: TensorFacts, storage: Storage | None = None, base: TensorRef | None = None
    ) -> None:
        if storage is None:
            storage = Storage(facts.nbytes)
        self.facts = facts
        self.storage = storage
        self.base = base
        self.fake: torch.Tensor | None = None
        self.recipe: tuple[Any, Any, dict[str, Any]] | None = None
        storage.members.append(self)

    def __repr__(self) -> str:
        return f"<TensorRef {self.facts!r}>"


PLAIN: Final = (torch.Tensor, torch.nn.Parameter)
"""Classes whose tensors are what their facts say, and no more."""


def is_wrapper(cls: Any) -> bool:
    """Whether tensors of a class are made of other tensors, to which its `__torch_dispatch__` hands operators on."""
    return bool(
        cls not in PLAIN
        and issubclass(cls, torch.Tensor)
        and hasattr(cls, "__tensor_flatten__")
        and hasattr(cls, "__tensor_unflatten__")
        and cls.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    )


def view_kind(tensor: torch.Tensor, is_inference: bool) -> str | None:
    """Which kind of view a tensor is, or None if it is none."""
    if is_inference or not tensor._is_view():
        return None
    base = tensor._base
    if base is None or not base.requires_grad:
        return VIEW
    node = tensor.grad_fn
    if node is None:
        return VIEW_NO_GRAD
    if base.is_leaf:
        return VIEW_OF_LEAF
    if node.name() in _MULTI_VIEW_NODES:
        return VIEW_OF_MANY
    return VIEW


def facts_of(
    tensor: torch.Tensor,
    cls: type | None = None,
    before: TensorFacts | None = None,
    device: torch.device | None = None,
) -> TensorFacts:
    """Read a tensor's facts.

    Args:
        tensor: a real tensor.
        cls: the class to note instead of the tensor's own (for tensors that stand for others).
        before: earlier facts of the same tensor: which kind of view it is does not change, and asking a view
            whose base was written to would replay the view.
        device: the device to note instead of the tensor's own.

    Returns:
        Its facts.

    Raises:
        UnsupportedTensor: for sparse, quantized, nested and other tensors that have no strides of their own.
    """
    if tensor.layout is not torch.strided:
        raise UnsupportedTensor(f"a tensor of layout {tensor.layout}")
    if tensor.is_nested:
        raise UnsupportedTensor("a nested tensor")
    if tensor.is_quantized:
        raise UnsupportedTensor("a quantized tensor")
    inference = tensor.is_inference()
    shape = tuple(tensor.shape)
    try:
        size = tensor.untyped_storage().nbytes()
        nbytes = size if type(size) is int else -1
        return TensorFacts(
            shape,
            tensor.stride(),
            tensor.storage_offset(),
            tensor.dtype,
            tensor.device if device is None else device,
            nbytes,
            requires_grad=tensor.requires_grad,
            is_leaf=tensor.is_leaf,
            is_conj=tensor.is_conj(),
            is_neg=tensor.is_neg(),
            is_inference=inference,
            tensor_class=type(tensor) if cls is None else cls,
            view=view_kind(tensor, inference) if before is None else before.view,
        )
    except (NotImplementedError, RuntimeError) as error:
        raise UnsupportedTensor(f"a tensor without accessible storage ({type(tensor).__name__})") from error


def facts_after_write(
    tensor: torch.Tensor, before: TensorFacts, written: torch.Tensor, device: torch.device | None = None
) -> TensorFacts:
    """The facts of a tensor after another one over its storage was written to.

    Args:
        tensor: a tensor that shares its storage with `written`.
        before: its facts before.
        written: what was written to.
        device: the device to note instead of the tensor's own.

    Returns:
        The facts now. Where torch can't replay the view on the changed base, what autograd does to such
        views.
    """
    try:
        return facts_of(tensor, before.cls, before, device)
    except Exception:  # replaying the view fails: sizes of the base changed in place
        if before.view is not None and written.requires_grad and not before.requires_grad:
            return before.replace(requires_grad=True, is_leaf=False)
        return before
