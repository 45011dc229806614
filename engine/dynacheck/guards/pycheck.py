"""The guard of last resort: a Python predicate. Slow, counted and reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dynacheck.guards.base import Change, Guard, Slots
from dynacheck.guards.held import plain
from dynacheck.sources import ABSENT


@dataclass(frozen=True, slots=True)
class PyCheck(Guard):
    """A predicate of the engine's over the values.

    Args:
        predicate: gets the values, one argument each, and returns the verdict; must run no user code and hold no user
            object. Two guards are the same when predicate and arguments are.
        arguments: passed after the values.
        then: what was assumed, for people.
        kind: one of `base.KINDS`.
        spelling: how logs spell it; `{0}`, `{1}` … are the paths.
    """

    predicate: Callable[..., bool]
    arguments: tuple[Any, ...]
    then: Any
    kind: str = "other"
    spelling: str = ""
    native_op: ClassVar[str] = "PYCHECK"

    def check(self, slots: Slots) -> bool:
        for value in slots:
            if value is ABSENT:
                return False
        return bool(self.predicate(*slots, *self.arguments))

    def explain(self, slots: Slots) -> Change:
        return Change(self.kind, self.then, plain(slots[0]) if len(slots) == 1 else [plain(v) for v in slots])

    def text(self, paths: Sequence[str]) -> str:
        if self.spelling:
            return self.spelling.format(*paths)
        return f"{self.predicate.__name__}({', '.join([*paths, *map(repr, self.arguments)])})"
