"""Numbers that a test may not exceed, and what is excused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

COUNTS = ("graphs", "graph_breaks", "recompiles", "cache_entries")
BOUNDS = tuple(f"max_{name}" for name in COUNTS)
NOTHING_COMPILED = "nothing-compiled"


class Limit(NamedTuple):
    """One budget: a bound, or an exact number, on one of COUNTS; `origin` says who set it."""

    what: str
    number: int
    exact: bool
    origin: str

    @property
    def label(self) -> str:
        return f"{self.what}={self.number}" if self.exact else f"max_{self.what}({self.number})"

    def holds(self, counted: int) -> bool:
        return counted == self.number if self.exact else counted <= self.number


class Mistake(Exception):
    """A wrong argument or option, in one line."""


def number(value: Any, name: str) -> int:
    """The value if it can be a budget.

    Raises:
        Mistake: it isn't a whole number, or it is negative.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise Mistake(f"{name} takes a whole number, not {value!r}")
    if value < 0:
        raise Mistake(f"{name} takes a number from 0 on, not {value}")
    return value


def limits_from(numbers: Mapping[str, Any], origin: str) -> dict[str, Limit]:
    """Limits by count, from keyword arguments: `graphs=2` is exact, `max_graphs=2` a bound, None no limit.

    Raises:
        Mistake: not a number, or both forms for one count.
    """
    found: dict[str, Limit] = {}
    for name, value in numbers.items():
        if value is None:
            continue
        count = name.removeprefix("max_")
        if count in found:
            raise Mistake(f"{count} and max_{count} can't both be given")
        found[count] = Limit(count, number(value, name), name == count, origin)
    return found


def nearest(name: str, names: Iterable[str], number: int = 1, *, cutoff: float = 0.6) -> list[str]:
    """The names that may be meant, the likeliest first; from `cutoff` (0 to 1) on they are alike enough."""
    import difflib  # costs half a millisecond that only mistakes pay

    return difflib.get_close_matches(name, list(names), number, cutoff)


def unknown(name: str, allowed: Iterable[str], where: str) -> Mistake:
    """One line about an argument that doesn't exist, with the likely one."""
    names = list(allowed)
    close = nearest(name, names)
    hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(names)}"
    return Mistake(f"{where} has no argument {name!r}{hint}")


_STARTS = ("break:", "recompile:", "eager:", "nothing-compiled")


def allowances(allow: Any) -> dict[str, int | None]:
    """`allow` as globs over cause keys with how many each excuses (None: all).

    Raises:
        Mistake: neither a list of strings nor a dict of numbers, or a glob that no key can match.
    """
    if isinstance(allow, Mapping):
        return {_glob(glob): number(at_most, f"allow[{glob!r}]") for glob, at_most in allow.items()}
    if isinstance(allow, list | tuple | set | frozenset):
        return {_glob(glob): None for glob in allow}
    raise Mistake(f"allow takes a list of globs over cause keys, or a dict {{glob: at_most}}, not {allow!r}")


def _glob(glob: Any) -> str:
    if not isinstance(glob, str) or not glob:
        raise Mistake(f"allow takes globs over cause keys such as 'recompile:training:*', not {glob!r}")
    head = re.split(r"[*?]", glob)[0]
    if not any(start.startswith(head) or head.startswith(start) for start in _STARTS):
        raise Mistake(f"allow: {glob!r} matches no key; keys begin with {', '.join(_STARTS)}")
    return glob


class Allowances:
    """Which causes are excused, counting down those that excuse only some."""

    def __init__(self, allow: Mapping[str, int | None]) -> None:
        self._left = dict(allow)
        self.used: set[str] = set()

    def excuses(self, *causes: str) -> bool:
        """True if one of the keys of one happening is excused; uses the allowance up."""
        for glob, left in self._left.items():
            if any(cause and matches(cause, glob) for cause in causes):
                self.used.add(glob)
                if left is None:
                    return True
                if left > 0:
                    self._left[glob] = left - 1
                    return True
        return False

    def unused(self, causes: Iterable[str]) -> list[str]:
        """Globs that excused nothing and match none of the causes met, which may have had no budget."""
        met = list(causes)
        return [g for g in self._left if g not in self.used and not any(matches(cause, g) for cause in met)]


def matches(cause: str, glob: str) -> bool:
    """True if the glob matches the key; brackets in either are literal (`batch['ids']`).

    Example:
        >>> matches("recompile:value:x[0]@m.py:f", "recompile:value:x[0]@*")
        True
    """
    return cause == glob or fnmatchcase(cause, glob.replace("[", "[[]"))
