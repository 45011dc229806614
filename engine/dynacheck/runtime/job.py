"""One compile: what the frames below a compiled callable are translated with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from dynacheck import _C
from dynacheck.backends.contract import Backend
from dynacheck.events import CodeRef


@dataclass(slots=True, eq=False)
class Job:
    """One compile.

    Args:
        backend: where graphs go.
        region: what its entries belong to.
        fullgraph: a break is an error.
        dynamic: torch's `dynamic`.
        isolation: its number if its entries, limit and history are its own.
        limit: its own recompile limit, or None.
        name: what the user calls it, or "".
        root: code of the function that was compiled: translated even if no tensor is in sight.
        target: what events call it.
    """

    backend: Backend
    region: _C.Region
    fullgraph: bool = False
    dynamic: bool | None = None
    isolation: int | None = None
    limit: int | None = None
    name: str = ""
    root: CodeType | None = None
    target: CodeRef | None = None


def inline_call(fn: Any) -> Callable[..., Any]:
    """A frame of ours around what has none, or one that is never translated: the entries are this code's.

    Args:
        fn: a C function, an object with `__call__`, or a module whose `forward` is torch's own.
    """

    def inner(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return inner


INLINE_CODE: CodeType = inline_call(None).__code__
"""The one code object of all such frames."""
