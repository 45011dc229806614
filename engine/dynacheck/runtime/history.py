"""What earlier translations saw of a value: what changed becomes a symbol.

Kept for the whole process, by place of the code (file, first line, name, isolated compile) and source, as
torch keys it: instances of a class share it, so do two lambdas on one line.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from dynacheck.events import CodeRef


class _Changed:
    """In place of a value: it was seen with different ones."""

    def __repr__(self) -> str:
        return "<changed>"


CHANGED: Final = _Changed()


class _Other:
    """In place of a value: another kind of thing was seen. A number after a tensor counts as changed, as
    with torch."""

    def __repr__(self) -> str:
        return "<another kind>"


NOT_A_NUMBER: Final = _Other()
NOT_A_TENSOR: Final = _Other()

Stride: TypeAlias = "int | tuple[str, int] | _Changed"
Key: TypeAlias = tuple[Any, ...]


@dataclass(slots=True)
class Seen:
    """What was seen of one source.

    Attributes:
        number: the int or float, CHANGED, NOT_A_NUMBER, or None if nothing was seen.
        sizes: per dimension; CHANGED as a whole when the number of dimensions differs; NOT_A_TENSOR, or None
            if nothing was seen.
        strides: likewise; a stride that follows from the size of another dimension is ("after", that
            dimension).
    """

    number: Any = None
    sizes: Any = None
    strides: Any = None

    def add(self, other: Seen) -> None:
        """Note another observation."""
        self.number = _merged(self.number, other.number)
        self.sizes = _merged_dims(self.sizes, other.sizes)
        self.strides = _merged_dims(self.strides, other.strides)

    @property
    def number_changed(self) -> bool:
        return self.number is CHANGED

    def size_changed(self, dim: int) -> bool:
        """Every size of a tensor whose number of dimensions differed, as with torch."""
        return self.sizes is CHANGED or (isinstance(self.sizes, tuple) and self.sizes[dim] is CHANGED)

    def stride_changed(self, dim: int) -> bool:
        """Strides become symbols only while all sizes stayed what they were."""
        fixed = isinstance(self.sizes, tuple) and not any(size is CHANGED for size in self.sizes)
        return fixed and isinstance(self.strides, tuple) and self.strides[dim] is CHANGED


def _merged(have: Any, new: Any) -> Any:
    if have is None or new is None:
        return new if have is None else have
    if have is new:
        return have
    return have if have is not CHANGED and new is not CHANGED and have == new else CHANGED


def _merged_dims(have: Any, new: Any) -> Any:
    if have is None or new is None:
        return new if have is None else have
    if have is new:
        return have
    if not isinstance(have, tuple) or not isinstance(new, tuple) or len(have) != len(new):
        return CHANGED
    return tuple(map(_merged, have, new))


def relative_strides(sizes: Sequence[int], strides: Sequence[int]) -> tuple[Stride, ...]:
    """Strides as far as they don't follow from sizes: those that do are given by the dimension they follow.

    Args:
        sizes: of a tensor.
        strides: of the same tensor.

    >>> relative_strides((4, 3), (3, 1))
    (('after', 1), 1)
    >>> relative_strides((4, 3), (5, 1))
    (5, 1)
    """
    out: list[Stride] = [0] * len(sizes)
    follows: dict[int, int] = {}
    for dim in sorted(range(len(sizes)), key=lambda d: (strides[d], -d)):
        stride = strides[dim]
        known = follows.get(stride)
        out[dim] = ("after", known) if known is not None and stride not in (0, 1) else stride
        follows.setdefault(sizes[dim] * stride, dim)
    return tuple(out)


class History:
    """What was seen, by place and source."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[tuple[Key, str], Seen] = {}

    def note(self, place: Key, source: str, seen: Seen) -> Seen:
        """Add an observation.

        Args:
            place: of the code that reads the value, see `place_of`.
            source: path of the value.
            seen: what it is now.

        Returns:
            What is known, this observation included.
        """
        with self._lock:
            have = self._seen.setdefault((place, source), Seen())
            have.add(seen)
            return have

    def clear(self) -> None:
        with self._lock:
            self._seen.clear()


def place_of(code: CodeRef, isolation: int | None) -> Key:
    """The key of a code object's history: resume functions behind breaks in one line share it, those on both sides of a
    branch too, as in torch."""
    return (code.file, code.line, code.name, code.resume_line, isolation)
