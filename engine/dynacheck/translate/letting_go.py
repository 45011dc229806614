"""Where a frame may let go of the last reference to a value that it has made: what the running frames hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dynacheck.variables import finalizers
from dynacheck.variables.base import ObservedException, VariableTracker


def _held(frame: Any, raising: VariableTracker | None) -> Iterator[VariableTracker]:
    attempt = frame.attempt
    for item in attempt.effects.items():
        yield from (item,) if isinstance(item, VariableTracker) else item.children()
    yield from attempt.function_modes
    if raising is not None:
        yield raising
    frames: list[Any] = attempt.frames
    for running in frames:
        yield from running.given
        yield from (value for value in (running.result, running.yielded) if value is not None)
        if not running.done:
            yield from running.held()


def let_go(frame: Any, raising: VariableTracker | None = None) -> None:
    """Finalize what the running frames have let go of.

    Args:
        frame: the innermost frame, after an instruction.
        raising: the exception that is under way.
    """
    handling = raising is not None or any(running.exceptions for running in frame.attempt.frames)
    finalizers.let_go(frame, frame.entered, lambda: _held(frame, raising), handling)


def raised(frame: Any, observed: ObservedException, caught: bool) -> None:
    """The same where an exception cut the stack back; if it leaves the frame, its traceback holds the locals."""
    if not caught:
        frame.stack.clear()
    let_go(frame, observed.exception)
    if not caught:
        for made in finalizers.entries(frame)[frame.entered :]:
            made.in_traceback = True
