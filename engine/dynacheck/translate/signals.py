"""How an attempt ends other than by finishing."""

from __future__ import annotations

from typing import Any, Final

from dynacheck.reasons import Reason

OPERATOR_RAISED: Final = "the exception that the last operator to raise raised"
"""In a tracer's state: leaving the frame, it is no break."""


class Restart(Exception):
    """Throw this attempt away and translate the frame again, with what the speculation log has learnt."""


class SkipFrame(Exception):
    """The frame can't be translated or split: it runs as it is; its callees are frames of their own.

    Args:
        reason: why.
        message: the reason's sentence.
        stack: the user's stack at the place, outermost first.
        broke: the break that couldn't be taken, if one caused the skip.
    """

    def __init__(self, reason: Reason, message: str, stack: tuple[Any, ...] = (), broke: Any = None) -> None:
        super().__init__(f"{reason.id}: {message}")
        self.reason = reason
        self.message = message
        self.stack = stack
        self.broke = broke


class Speculation:
    """What earlier attempts learnt: the only thing, with shape decisions and the oracle's memo, that outlives one.

    Attributes:
        breaks: by number of executed root instructions: the instruction's index and the break to take there.
        left: the number, if the frame is left for good before that instruction, which isn't run.
        symbolic: the attempt must have a symbolic environment.
    """

    def __init__(self) -> None:
        self.breaks: dict[int, tuple[int, Any]] = {}
        self.left: int | None = None
        self.symbolic = False
        self.attempts = 0

    def add_break(self, count: int, index: int, broke: Any) -> None:
        self.breaks[count] = (index, broke)

    def leave_at(self, count: int, index: int, broke: Any) -> None:
        """Split before an instruction for a break that comes later: the rest of the frame runs as it is."""
        self.breaks = {count: (index, broke)}
        self.left = count

    def break_at(self, count: int, index: int) -> Any | None:
        """The break to take before this instruction, or None."""
        found = self.breaks.get(count)
        if found is None:
            return None
        if (
            found[0] != index
        ):  # the attempt took another path (it became symbolic): earlier places mean nothing
            self.breaks.clear()
            self.left = None
            return None
        return found[1]
