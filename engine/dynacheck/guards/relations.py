"""Guards over several values: which of them are the same object, which tensors overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from dynacheck.guards.base import Change, Guard, Slots
from dynacheck.sources import ABSENT, is_a


@dataclass(frozen=True, slots=True)
class Same(Guard):
    """All values are one object."""

    native_op: ClassVar[str] = "SAME"

    def check(self, slots: Slots) -> bool:
        return slots[0] is not ABSENT and all(v is slots[0] for v in slots)

    def explain(self, slots: Slots) -> Change:
        return Change("aliasing", "one object", "different objects")

    def text(self, paths: Sequence[str]) -> str:
        return " is ".join(paths)


def first_repeat(slots: Slots) -> tuple[int, int] | None:
    """Positions of the first value that is the same object as an earlier one, and of that one."""
    seen: dict[int, int] = {}
    for i, value in enumerate(slots):
        j = seen.setdefault(id(value), i)
        if j != i:
            return j, i
    return None


@dataclass(frozen=True, slots=True)
class Distinct(Guard):
    """No two of the values are the same object."""

    native_op: ClassVar[str] = "DISTINCT"

    def check(self, slots: Slots) -> bool:
        return not any(v is ABSENT for v in slots) and first_repeat(slots) is None

    def explain(self, slots: Slots) -> Change:
        return self.changes(slots)[0]

    def changes(self, slots: Slots, paths: Sequence[str] = ()) -> list[Change]:
        repeat = first_repeat(slots) if not any(v is ABSENT for v in slots) else None
        where = "" if repeat is None else " and ".join(paths[i] if paths else f"value {i}" for i in repeat)
        return [Change("aliasing", "different objects", "one object", where)]

    def text(self, paths: Sequence[str]) -> str:
        return f"check_no_aliasing({', '.join(paths)})"


def _extent(tensor: torch.Tensor) -> tuple[int, int, int] | None:
    """Storage, first and one past the last byte that the tensor covers; None when it covers none."""
    if tensor.layout is not torch.strided or tensor.numel() == 0:
        return None
    first = int(tensor.storage_offset())
    last = first + sum((n - 1) * s for n, s in zip(tensor.size(), tensor.stride()))
    size = tensor.element_size()
    return tensor.untyped_storage()._cdata, first * size, (last + 1) * size


def overlapping_pairs(tensors: Sequence[torch.Tensor]) -> frozenset[tuple[int, int]]:
    """Pairs of positions (i < j) of tensors whose byte ranges in one storage overlap."""
    groups: dict[int, list[tuple[int, int, int]]] = {}
    with torch._C.DisableTorchFunction():
        for i, tensor in enumerate(tensors):
            extent = _extent(tensor)
            if extent is not None:
                groups.setdefault(extent[0], []).append((i, extent[1], extent[2]))
    found = set()
    for group in groups.values():
        for n, (i, start, end) in enumerate(group):
            found |= {(i, j) for j, other, last in group[n + 1 :] if start < last and other < end}
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class StorageOverlap(Guard):
    """Exactly these pairs of the tensors overlap in memory (by the bytes from first to last element).

    Args:
        pairs: positions (i < j) among the values.
    """

    pairs: frozenset[tuple[int, int]]
    native_op: ClassVar[str] = "OVERLAP"

    def native(self) -> tuple[object, ...]:
        return (tuple(sorted(self.pairs)),)

    def check(self, slots: Slots) -> bool:
        return all(is_a(t, torch.Tensor) for t in slots) and overlapping_pairs(slots) == self.pairs

    def explain(self, slots: Slots) -> Change:
        now: Any = "missing tensors"
        if all(is_a(t, torch.Tensor) for t in slots):
            now = sorted(overlapping_pairs(slots))
        return Change("aliasing", sorted(self.pairs), now, "pairs of overlapping tensors")

    def text(self, paths: Sequence[str]) -> str:
        return f"check_overlapping([{', '.join(paths)}], pairs={sorted(self.pairs)})"
