"""The guard on torch's global state: everything a graph depends on that no value of the frame shows.

One snapshot per entry, checked before anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from dynacheck.guards.base import Change, Guard, Slots
from dynacheck.guards.fields import FIELDS, read_all
from dynacheck.guards.readings import SIGNATURES, code_of, is_nothing, plain, readings


@dataclass(frozen=True, slots=True)
class AmbientState(Guard):
    """torch's global state is what it was.

    Args:
        values: one per field of `fields.FIELDS`.
    """

    values: tuple[Any, ...]
    native_op: ClassVar[str] = "AMBIENT"

    @classmethod
    def now(cls) -> AmbientState:
        """The state at this moment."""
        return cls(read_all())

    def native_form(self) -> tuple[str, tuple[object, ...]]:
        """Operands: native reads as (signature, place, argument, expected); whether Python has to look besides."""
        reads: list[tuple[Any, ...]] = []
        slow = False
        native = readings()
        keys = all(r is not None for f, r in zip(FIELDS, native) if f.how == "keys")
        for f, value, reading in zip(FIELDS, self.values, native):
            nothing = is_nothing(f, value)
            if reading is not None:
                code = code_of(f, value)
                if code is None and f.read() == value:
                    code = reading.value()
                if code is not None:
                    reads.append((reading.signature, reading.address, reading.argument, code ^ reading.mask))
                slow |= code is None or (f.how == "functions" and not nothing)
            elif f.how == "global" and nothing:
                reads.append((SIGNATURES["global"], torch.utils._device.__dict__, "CURRENT_DEVICE", None))
            elif not (keys and (f.implied == "always" or (f.implied == "empty" and nothing))):
                slow = True
        return "AMBIENT", (tuple(reads), int(slow))

    def check(self, slots: Slots) -> bool:
        return read_all() == self.values

    def changes(self, slots: Slots, paths: Sequence[str] = ()) -> list[Change]:
        found = zip(FIELDS, self.values, read_all())
        return [Change(f.kind, plain(then), plain(now), f.name) for f, then, now in found if then != now]

    def explain(self, slots: Slots) -> Change:
        return self.changes(slots)[0]

    def text(self, paths: Sequence[str]) -> str:
        state = [f"{f.name}={plain(v)}" for f, v in zip(FIELDS, self.values) if not is_nothing(f, v)]
        return f"___check_global_state({', '.join(state)})"
