"""Guards on tensors: the properties that a graph was specialised on, and the marks a user put on a tensor."""

from __future__ import annotations

import copy
import operator
import reprlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import torch

from dynacheck.events import Named
from dynacheck.guards.access import tensor_access
from dynacheck.guards.base import Change, Guard, Slots
from dynacheck.guards.held import Held, describe, held, is_native_constant
from dynacheck.sources import ABSENT, instance_dict

Dims = tuple[int | None, ...]


def _sizes(tensor: torch.Tensor) -> tuple[int, ...] | None:
    try:
        return tuple(tensor.size())
    except RuntimeError:  # nested tensors have none
        return None


def _strides(tensor: torch.Tensor) -> tuple[int, ...] | None:
    try:
        return tensor.stride()
    except RuntimeError:  # sparse and nested tensors have none
        return None


def _pattern(dims: Sequence[Any] | None, dynamic: Collection[int]) -> Dims | None:
    if dims is None:
        return None
    return tuple(None if i in dynamic or type(d) is not int else d for i, d in enumerate(dims))


def dispatch_keys(tensor: torch.Tensor) -> int:
    """The tensor's dispatch key set as one 64-bit word."""
    return int(torch._C._dispatch_keys(tensor).raw_repr())


# Classes whose tensors keep sizes and strides where every tensor does, whatever they are asked.
_PLAIN: Final = (torch.Tensor, torch.nn.Parameter)
_KEYS_TELL, _PLAIN_TENSOR = -1, -2  # in place of a layout's number: strided; and in one of `_PLAIN`


@dataclass(frozen=True, slots=True)
class TensorMatch(Guard):
    """The tensor is of this class and has these properties; the storage offset is not looked at.

    Args:
        cls: exact class.
        dtype, device, layout, requires_grad: as the attributes say (`requires_grad` also with grad mode off).
        keys: dispatch key set, as `dispatch_keys` gives it: layout, conjugation, negation, inference mode and more.
        rank: number of dimensions.
        sizes: one per dimension, None where any size will do; None for tensors without sizes (nested).
        strides: like sizes; None for tensors without strides (sparse, nested).
    """

    cls: Held
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout
    keys: int
    requires_grad: bool
    rank: int
    sizes: Dims | None
    strides: Dims | None
    native_op: ClassVar[str] = "TENSOR"

    @classmethod
    def of(
        cls, tensor: torch.Tensor, dynamic_sizes: Collection[int] = (), dynamic_strides: Collection[int] = ()
    ) -> TensorMatch:
        """The guard that this tensor passes.

        Args:
            tensor: the example.
            dynamic_sizes: dimensions whose size may be any.
            dynamic_strides: dimensions whose stride may be any.
        """
        with torch._C.DisableTorchFunction():
            return cls(
                held(type(tensor)),
                tensor.dtype,
                tensor.device,
                tensor.layout,
                dispatch_keys(tensor),
                tensor.requires_grad,
                tensor.dim(),
                _pattern(_sizes(tensor), dynamic_sizes),
                _pattern(_strides(tensor), dynamic_strides),
            )

    def native_form(self) -> tuple[str, tuple[object, ...]]:
        access = tensor_access()
        code = None if access is None else access.dtype_codes.get(self.dtype)
        if self.layout is torch.strided:
            layout: int | None = _PLAIN_TENSOR if self.cls.get() in _PLAIN else _KEYS_TELL
        else:  # several share their dispatch keys
            layout = None if access is None else access.layout_codes.get(self.layout)
        if code is None or layout is None:
            return "PYCHECK", ()
        index = -1 if self.device.index is None else self.device.index
        return "TENSOR", (
            self.cls.native(),
            code,
            index,
            self.keys,
            int(self.requires_grad),
            self.rank,
            self.sizes,
            self.strides,
            layout,
        )

    def check(self, slots: Slots) -> bool:
        return not self.changes(slots)

    def explain(self, slots: Slots) -> Change:
        return self.changes(slots)[0]

    def changes(self, slots: Slots, paths: Sequence[str] = ()) -> list[Change]:
        value = slots[0]
        if value is ABSENT or not self.cls.matches(type(value)):
            return [Change("type", self.cls.name, describe(type(value)))]
        with torch._C.DisableTorchFunction():
            return list(self._differences(value))

    def _differences(self, t: torch.Tensor) -> list[Change]:
        found = []
        if t.dtype is not self.dtype:
            found.append(Change("dtype", self.dtype, t.dtype))
        if t.device != self.device:
            found.append(Change("device", str(self.device), str(t.device)))
        if t.requires_grad != self.requires_grad:
            found.append(Change("requires_grad", self.requires_grad, t.requires_grad))
        if t.layout is not self.layout:
            found.append(Change("layout", str(self.layout), str(t.layout)))
        if t.dim() != self.rank:
            return [*found, Change("rank", self.rank, t.dim())]
        sizes, strides = _sizes(t), _strides(t)
        held = tuple(s for s in self.strides or () if s is not None)
        if sizes and sizes == self.sizes and strides and len(held) == len(strides) and held != strides:
            change = Change("stride", arrangement(sizes, held), arrangement(sizes, strides), "memory format")
            return [*found, change]
        for kind, then, now in (("size", self.sizes, sizes), ("stride", self.strides, strides)):
            if then is not None and now is not None:
                pairs = enumerate(zip(then, now))
                found += [
                    Change(kind, a, b, f"{kind} of dim {i}")
                    for i, (a, b) in pairs
                    if a is not None and a != b
                ]
        if not found and dispatch_keys(t) != self.keys:
            keys = dispatch_keys(t)
            found.append(Change("dispatch_keys", _keys_text(self.keys, keys), _keys_text(keys, self.keys)))
        return found

    def text(self, paths: Sequence[str]) -> str:
        name = "" if self.cls.matches(torch.Tensor) else f", {self.cls.name}"
        size = "" if self.sizes is None else f", size={list(self.sizes)}"
        stride = "" if self.strides is None else f", stride={list(self.strides)}"
        return (
            f"check_tensor({paths[0]}{name}, {self.dtype}, device={self.device.index}, "
            f"requires_grad={self.requires_grad}{size}{stride})"
        )


def arrangement(sizes: Sequence[int], strides: Sequence[int]) -> Named:
    """How a tensor lies in memory, in words, with its strides: `channels_last (48, 1, 12, 3)`."""
    dims = range(len(sizes))
    orders = {
        "contiguous": dims,
        ("channels_last" if len(sizes) == 4 else "channels_last_3d"): (0, *dims[2:], 1),
        "transposed": sorted(dims, key=lambda i: -strides[i]),
    }
    if len(sizes) not in (4, 5):
        del orders["channels_last_3d"]
    words = [word for word, order in orders.items() if _dense(sizes, strides, order)]
    return Named(f"{words[0] if words else 'expanded' if 0 in strides else 'strided'} {tuple(strides)}")


def _dense(sizes: Sequence[int], strides: Sequence[int], order: Iterable[int]) -> bool:
    """Whether elements follow each other without gaps, the last dimension of `order` fastest."""
    expected = 1
    for i in reversed(tuple(order)):
        if sizes[i] != 1 and strides[i] != expected:
            return False
        expected *= sizes[i]
    return True


_KEYS: Final = (
    ("Conjugate", "a conjugated view", "not conjugated"),
    ("Negative", "a negated view", "not negated"),
    ("ADInplaceOrView", "made outside of inference mode", "made in inference mode"),
)
"""What a dispatch key says of a tensor that has it, and of one that hasn't."""


def _keys_text(keys: int, other: int) -> str:
    """What tells a tensor from another whose keys differ."""
    for name, there, missing in _KEYS:
        key = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name)).raw_repr()
        if (keys ^ other) & key:
            return Named(there if keys & key else missing)
    return (
        str(torch._C.DispatchKeySet.from_raw_repr(keys))
        if hasattr(torch._C.DispatchKeySet, "from_raw_repr")
        else hex(keys)
    )


MARKS: Final = (
    "_dynamo_dynamic_indices",
    "_dynamo_weak_dynamic_indices",
    "_dynamo_unbacked_indices",
    "_dynamo_strict_unbacked_indices",
    "_dynamo_static_indices",
)
"""Attributes that `mark_dynamic` and its relatives (torch's and ours) set on a tensor: sets of dimensions."""


@dataclass(frozen=True, slots=True)
class MarksAre(Guard):
    """The tensor has no mark beyond these: a marked dimension must have been marked when the graph was made.

    Marks only add: a tensor without them passes, as with torch.

    Args:
        marks: (attribute of MARKS, marked dimensions) pairs; attributes not named must be absent.
    """

    marks: tuple[tuple[str, tuple[int, ...]], ...]
    native_op: ClassVar[str] = "MARKS"

    @classmethod
    def of(cls, tensor: torch.Tensor) -> MarksAre:
        """The guard that this tensor passes."""
        have = instance_dict(tensor) or {}
        return cls(tuple((name, tuple(sorted(have[name]))) for name in MARKS if name in have))

    def native(self) -> tuple[object, ...]:
        then = dict(self.marks)
        return (tuple((name, then.get(name)) for name in MARKS),)

    def _extra(self, tensor: Any) -> list[tuple[str, tuple[int, ...], Any]]:
        have, then = instance_dict(tensor) or {}, dict(self.marks)
        found: list[tuple[str, tuple[int, ...], Any]] = []
        for name in MARKS:
            if name in have:
                now = have[name]
                known = type(now) in (set, frozenset) and all(type(d) is int for d in now)
                if name not in then or not known or not now <= set(then[name]):
                    found.append((name, then.get(name, ()), sorted(now) if known else describe(now)))
        return found

    def check(self, slots: Slots) -> bool:
        return slots[0] is not ABSENT and not self._extra(slots[0])

    def explain(self, slots: Slots) -> Change:
        name, then, now = self._extra(slots[0])[0]
        return Change(
            "mark", list(then), now, name.removeprefix("_dynamo_").removesuffix("_indices") + " dimensions"
        )

    def text(self, paths: Sequence[str]) -> str:
        if not self.marks:
            return f"hasattr({paths[0]}, '_dynamo_dynamic_indices') == False"
        return " and ".join(
            f"getattr({paths[0]}, {n!r}, set()) <= {set(dims) or 'set()'}" for n, dims in self.marks
        )


@dataclass(frozen=True, slots=True)
class UnbackedMarksAre(Guard):
    """A tensor with unbacked dimensions has the same shape ids and bounds; one without any passes, as with torch.

    Args:
        details: the two attributes as they were, by name.
    """

    details: tuple[tuple[str, tuple[tuple[int, Any], ...]], ...]
    native_op: ClassVar[str] = "DETAILS"

    @classmethod
    def of(cls, tensor: torch.Tensor) -> UnbackedMarksAre:
        """The guard that this tensor passes."""
        return cls(cls._read(tensor))

    @staticmethod
    def _read(tensor: Any) -> tuple[tuple[str, tuple[tuple[int, Any], ...]], ...]:
        have = instance_dict(tensor) or {}
        return tuple((name, tuple(sorted(dict(have.get(name) or {}).items()))) for name in UNBACKED_DETAILS)

    def native_form(self) -> tuple[str, tuple[object, ...]]:
        if all(is_native_constant(value) for _, pairs in self.details for _, value in pairs):
            return "DETAILS", (tuple((name, dict(pairs)) for name, pairs in self.details),)
        return "PYCHECK", ()

    def check(self, slots: Slots) -> bool:
        have = None if slots[0] is ABSENT else instance_dict(slots[0])
        return not have or "_dynamo_unbacked_indices" not in have or self._read(slots[0]) == self.details

    def explain(self, slots: Slots) -> Change:
        now = self._read(slots[0])
        name, then = next(pair for pair, other in zip(self.details, now) if pair != other)
        return Change("mark", dict(then), dict(dict(now)[name]), name.removeprefix("_dynamo_"))

    def text(self, paths: Sequence[str]) -> str:
        return " and ".join(f"getattr({paths[0]}, {n!r}, {{}}) == {dict(v)}" for n, v in self.details)


UNBACKED_DETAILS: Final = ("_dynamo_shape_ids", "_dynamo_unbacked_bounds")
"""Attributes that say more of dimensions in `_dynamo_unbacked_indices`, by dimension."""


class NoMarks(MarksAre):
    """The tensor is not marked."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(())


def flattened(tensor: Any) -> tuple[list[str], Any]:
    """What a traceable wrapper is made of: the attributes that hold tensors, and all else as its class puts it."""
    with torch._C.DisableTorchFunctionSubclass():
        names, context = tensor.__tensor_flatten__()
    return list(names), context


@dataclass(frozen=True, slots=True, eq=False)
class FlattenIs(Guard):
    """A traceable wrapper is made of the same attributes, with an equal context.

    Only the class can tell (`__tensor_flatten__`, `__metadata_guard__`), so this guard, alone of all, calls code of the
    program, as torch's does; the names are compared natively.

    Args:
        names: the attributes that hold tensors.
        context: a copy of the context.
    """

    names: tuple[str, ...]
    context: Any
    native_op: ClassVar[str] = "FLATTEN"

    @classmethod
    def of(cls, tensor: torch.Tensor) -> FlattenIs:
        """The guard that this tensor passes."""
        names, context = flattened(tensor)
        return cls(tuple(names), copy.deepcopy(context))

    def native(self) -> tuple[object, ...]:
        return ("__tensor_flatten__", self.names, self.context, "__metadata_guard__", operator.eq)

    def check(self, slots: Slots) -> bool:
        tensor: Any = slots[0]
        if not hasattr(type(tensor), "__tensor_flatten__"):
            return False
        names, context = flattened(tensor)
        same = getattr(type(tensor), "__metadata_guard__", operator.eq)
        return tuple(names) == self.names and bool(same(self.context, context))

    def explain(self, slots: Slots) -> Change:
        tensor: Any = slots[0]
        if not hasattr(type(tensor), "__tensor_flatten__"):
            return Change("type", "a tensor made of tensors", describe(type(tensor)))
        names, context = flattened(tensor)
        if tuple(names) != self.names:
            return Change("value", list(self.names), names, "tensors it is made of")
        then, now = (Named(reprlib.repr(c)) for c in (self.context, context))
        return Change("value", then, now, "context of `__tensor_flatten__`")

    def text(self, paths: Sequence[str]) -> str:
        return f"{paths[0]}.__tensor_flatten__() == ({list(self.names)}, {self.context!r})"


@dataclass(frozen=True, slots=True)
class ItemIs(Guard):
    """The tensor holds one integer, which is this one.

    Args:
        value: the integer.
    """

    value: int
    native_op: ClassVar[str] = "NUMBER"

    def native(self) -> tuple[object, ...]:
        return (self.value,)

    def check(self, slots: Slots) -> bool:
        tensor = slots[0]
        return isinstance(tensor, torch.Tensor) and tensor.numel() == 1 and tensor.item() == self.value

    def explain(self, slots: Slots) -> Change:
        tensor = slots[0]
        now = tensor.item() if isinstance(tensor, torch.Tensor) else ABSENT
        return Change("value", self.value, now, "as an index")

    def text(self, paths: Sequence[str]) -> str:
        return f"{paths[0]}.item() == {self.value}"
