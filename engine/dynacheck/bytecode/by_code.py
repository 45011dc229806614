"""A table keyed by the identity of code objects, whose rows die with their code."""

import weakref
from collections.abc import Iterator
from types import CodeType
from typing import Generic, TypeVar

T = TypeVar("T")


class ByCode(Generic[T]):
    """Maps code objects to values, by identity and weakly.

    Code objects compare by value (two equal lambdas are equal keys of a dict), so a `WeakKeyDictionary`
    would mix them up. A value must not hold its code object strongly: the row would keep its own key alive.

    >>> table = ByCode[str]()
    >>> one, two = (compile("x", "f", "eval") for _ in range(2))
    >>> table.set(one, "first")
    >>> one == two, table.get(one), table.get(two)
    (True, 'first', None)
    """

    __slots__ = ("__weakref__", "_rows")

    def __init__(self) -> None:
        self._rows: dict[int, tuple[weakref.ref[CodeType], T]] = {}

    def get(self, code: CodeType) -> T | None:
        """Return the value stored for this very object, or None."""
        row = self._rows.get(id(code))
        if row is not None and row[0]() is code:
            return row[1]
        return None

    def set(self, code: CodeType, value: T) -> None:
        """Store a value for this very object."""
        key = id(code)
        rows = self._rows

        def forget(ref: weakref.ref[CodeType]) -> None:
            row = rows.get(key)
            if row is not None and row[0] is ref:
                del rows[key]

        rows[key] = (weakref.ref(code, forget), value)

    def clear(self) -> None:
        """Forget everything."""
        self._rows.clear()

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[CodeType]:
        """Iterate over the live code objects."""
        for ref, _ in list(self._rows.values()):
            code = ref()
            if code is not None:
                yield code
