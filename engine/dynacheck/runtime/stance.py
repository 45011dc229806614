"""Stances: what compiled callables do when nothing serves a frame.

`set_stance(...)` called plainly holds in every thread until the next one; as a context manager or decorator
it overlays that in the context that entered it, and a plain call in there holds until its end. A stance set
through torch holds where none was set here.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Any, Final

from dynacheck import interop
from dynacheck.runtime.switches import switches

NAMES: Final = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile")


@dataclass(frozen=True, slots=True)
class Stance:
    """A stance.

    Args:
        name: one of NAMES.
        backend: under `default`: the backend that all compiles use instead of their own, or None.
    """

    name: str
    backend: Any = None


DEFAULT: Final = Stance("default")


class Stances:
    """The process-wide stance and those that overlay it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._overlays = 0
        self.base = DEFAULT
        self.overlay: ContextVar[Stance | None] = ContextVar("dynacheck_stance", default=None)

    def set_base(self, stance: Stance) -> None:
        self.base = stance
        switches.set("stance", stance != DEFAULT)

    def replace(self, stance: Stance) -> tuple[bool, Stance]:
        """Let another stance hold from here on: in a block that overlays one, until the block ends.

        Args:
            stance: the new one.

        Returns:
            Whether an overlay was replaced, and what was.
        """
        overlaid = self.overlay.get()
        if overlaid is None:
            before = self.base
            self.set_base(stance)
            return False, before
        self.overlay.set(stance)
        return True, overlaid

    def enter(self, stance: Stance) -> Token[Stance | None]:
        with self._lock:
            self._overlays += 1
            switches.set("stance overlay", True)
        return self.overlay.set(stance)

    def leave(self, token: Token[Stance | None]) -> None:
        self.overlay.reset(token)
        with self._lock:
            self._overlays -= 1
            switches.set("stance overlay", self._overlays > 0)

    def current(self) -> Stance:
        """The stance that holds here."""
        found = self.overlay.get() or self.base
        if found is DEFAULT or found == DEFAULT:
            theirs = interop.torch_stance()
            if theirs in NAMES:
                return Stance(theirs)
        return found


stances = Stances()


class set_stance:
    """Set what compiled callables do: as a function, a context manager or a decorator.

    Args:
        stance: `default`; `force_eager`: everything runs as it is; `eager_on_recompile`: existing entries
            serve, all else runs as it is; `fail_on_recompile`: an error where something would be compiled;
            `eager_then_compile`: the first call of a frame runs as it is, and what differs in the second
                becomes a symbol.
        skip_guard_eval_unsafe: accepted as torch does; guards are checked all the same.
        force_backend: with `default`: the backend that all compiles use instead of their own.

    Raises:
        ValueError: no such stance, or a backend with another one than `default`.

    Example:
        >>> with set_stance("force_eager"):
        ...     pass
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: str | Callable[..., Any] | None = None,
    ) -> None:
        if stance not in NAMES:
            raise ValueError(f"unknown stance {stance!r}; there are {', '.join(NAMES)}")
        if force_backend is not None and stance != "default":
            raise ValueError("force_backend goes with the stance 'default' only")
        self._stance = Stance(stance, force_backend)
        self._tokens: list[Token[Stance | None]] = []
        self._replaced: tuple[bool, Stance] | None = stances.replace(self._stance)

    def _take_back(self) -> None:
        """It was no plain call: what it did as one."""
        if self._replaced is not None:
            overlaid, before = self._replaced
            self._replaced = None
            if overlaid:
                stances.overlay.set(before)
            else:
                stances.set_base(before)

    def __enter__(self) -> None:
        self._take_back()
        self._tokens.append(stances.enter(self._stance))

    def __exit__(self, *exc: object) -> None:
        stances.leave(self._tokens.pop())

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        self._take_back()
        stance = self._stance

        @functools.wraps(fn)
        def with_stance(*args: Any, **kwargs: Any) -> Any:
            token = stances.enter(stance)
            try:
                return fn(*args, **kwargs)
            finally:
                stances.leave(token)

        return with_stance
