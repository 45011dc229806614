"""How many entries a code object may have, and what happens beyond."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from dynacheck import config
from dynacheck.events import CodeRef, EntryMiss
from dynacheck.runtime.misses import guard_lines

_log = logging.getLogger("dynacheck")


def recompile_limit(own: int | None) -> int:
    """How many entries a code object may have in an isolation scope.

    Args:
        own: the compile's own limit, or None.
    """
    limit: int = config.get("recompile_limit") if own is None else own
    return limit


def limit_reached(scope: int, counted: int, own: int | None) -> tuple[str, int] | None:
    """The limit that a further entry would exceed: its name and value, or None.

    Args:
        scope: how many entries the code object has in this compile's isolation scope.
        counted: how many it has in all.
        own: the compile's own limit, or None.
    """
    limit = recompile_limit(own)
    if scope >= limit:
        return "recompile_limit", limit
    limit = config.get("accumulated_recompile_limit")
    return ("accumulated_recompile_limit", limit) if counted >= limit else None


def message(name: str, limit: int, code: CodeRef, misses: Sequence[EntryMiss]) -> str:
    """What is said once: the function, the limit, the value that kept changing."""
    lines = [
        f"dynacheck hit {name} ({limit})",
        f"   function: {code.qualname}{code.rest} ({code.file}:{code.line})",
        *(f"   last reason: {line[2:]}" for line in guard_lines(misses[:1])[:1]),
        *(f"   what kept changing: {source}" for source in _sources(misses)),
        "   existing entries keep serving; calls that match none run eagerly from now on",
    ]
    return "\n".join(lines)


def _sources(misses: Sequence[EntryMiss]) -> list[str]:
    """The value that decided most misses."""
    counts: dict[str, int] = {}
    for miss in misses:
        for row in miss.changes[:1]:
            counts[row.source] = counts.get(row.source, 0) + 1
    return [max(counts, key=lambda s: counts[s])] if counts else []


def warn(text: str) -> None:
    """Log the one warning of a code object."""
    _log.warning("%s", text)
