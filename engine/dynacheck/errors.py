"""Exceptions that users of the engine see."""

from __future__ import annotations

from typing import Any

from dynacheck import interop


class DynacheckError(RuntimeError):
    """Base of the engine's own exceptions."""


class Unsupported(DynacheckError):
    """A graph break under `fullgraph=True`: the message names the reason, the hint and the user's stack.

    Args:
        message: the whole text.
        reason: id of the reason (see `dynacheck.reasons`), or None.
    """

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason


class UncapturedHigherOrderOpError(DynacheckError):
    """An operator that takes functions (`torch.cond`, `scan`, ...) can't be captured, which it has to be as a whole."""


class RecompileError(DynacheckError):
    """A recompile while `error_on_recompile` is set or the stance is `fail_on_recompile`."""


class FailOnRecompileLimitHit(DynacheckError):
    """The recompile limit was reached while `fail_on_recompile_limit_hit` is set (or under fullgraph)."""


class BackendError(DynacheckError):
    """A backend raised. `__cause__` is its own exception; `graph_code` the graph it was given."""

    def __init__(self, message: str, graph_code: str = "") -> None:
        super().__init__(message)
        self.graph_code = graph_code


class InvalidBackend(DynacheckError):
    """No backend of that name."""


class ConstraintViolationError(DynacheckError):
    """A dimension marked dynamic was specialised, or isn't within its bounds; the message names both lines."""


class InternalError(DynacheckError):
    """A fault of the engine itself, raised when `config.raise_internal_errors` is set."""


# The engine's exceptions that have a namesake in torch: when torch's is loaded, what we raise is an instance of both.
_TORCH_TWINS: dict[type[DynacheckError], str] = {
    Unsupported: "Unsupported",
    UncapturedHigherOrderOpError: "UncapturedHigherOrderOpError",
    RecompileError: "RecompileError",
    FailOnRecompileLimitHit: "FailOnRecompileLimitHit",
    BackendError: "BackendCompilerFailed",
    InvalidBackend: "InvalidBackend",
    ConstraintViolationError: "ConstraintViolationError",
}


def make(cls: type[DynacheckError], message: str, **fields: Any) -> DynacheckError:
    """An exception of that class that is also an instance of torch's of the same meaning, if torch's is loaded.

    Args:
        cls: one of this module's classes.
        message: the text.
        **fields: further arguments of `cls`.

    Returns:
        The exception, to be raised by the caller.
    """
    twin = interop.torch_exception(_TORCH_TWINS.get(cls, ""))
    if twin is None:
        return cls(message, **fields)
    both: Any = interop.joined_exception(cls, twin)
    error: DynacheckError = both.__new__(both, message)
    Exception.__init__(error, message)
    for name, value in fields.items():
        setattr(error, name, value)
    return error
