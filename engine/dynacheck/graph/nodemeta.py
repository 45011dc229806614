"""A graph node's `meta`, filled when somebody looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from dynacheck.sources import UserLine

EXAMPLE = "example_value"
Lines: TypeAlias = "UserLine | Sequence[UserLine] | None"


class NodeMeta(dict[str, Any]):
    """The metadata of one node, made late: first the cheap entries, the fake example value only if it is
    read.

    Args:
        entries: makes the cheap entries.
        example: makes the example value, or None for a node that has none.
    """

    __slots__ = ("_entries", "_example")

    def __init__(
        self,
        entries: Callable[[], dict[str, Any]] | None,
        example: Callable[[], Any] | None,
        known: dict[str, Any] | None = None,
    ) -> None:
        dict.__init__(self, known or {})
        self._entries = entries
        self._example = example

    def _fill(self) -> None:
        entries = self._entries
        if entries is not None:
            self._entries = None
            for name, value in entries().items():
                dict.setdefault(self, name, value)

    def _fill_all(self) -> None:
        self._fill()
        example = self._example
        if example is not None:
            self._example = None
            if not dict.__contains__(self, EXAMPLE):
                dict.__setitem__(self, EXAMPLE, example())

    def __getitem__(self, key: str) -> Any:
        self._fill_all() if key == EXAMPLE else self._fill()
        return dict.__getitem__(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        self._fill_all() if key == EXAMPLE else self._fill()
        return dict.get(self, key, default)

    def __setitem__(self, key: str, value: Any) -> None:
        self._fill()
        if key == EXAMPLE:
            self._example = None
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: str) -> None:
        self._fill_all() if key == EXAMPLE else self._fill()
        dict.__delitem__(self, key)

    def pop(self, key: str, *default: Any) -> Any:
        self._fill_all() if key == EXAMPLE else self._fill()
        return dict.pop(self, key, *default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        self._fill_all() if key == EXAMPLE else self._fill()
        return dict.setdefault(self, key, default)

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __contains__(self, key: object) -> bool:
        self._fill()
        return dict.__contains__(self, key) or (key == EXAMPLE and self._example is not None)

    def __len__(self) -> int:
        self._fill()
        return dict.__len__(self) + (self._example is not None and not dict.__contains__(self, EXAMPLE))

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[str]:
        self._fill()
        names = list(dict.__iter__(self))
        if self._example is not None and EXAMPLE not in names:
            names.append(EXAMPLE)
        return iter(names)

    def keys(self) -> Any:
        self._fill_all()
        return dict.keys(self)

    def values(self) -> Any:
        self._fill_all()
        return dict.values(self)

    def items(self) -> Any:
        self._fill_all()
        return dict.items(self)

    def copy(self) -> NodeMeta:
        """A copy that still makes the example value late."""
        self._fill()
        known = {name: dict.__getitem__(self, name) for name in dict.__iter__(self)}
        return NodeMeta(None, self._late_example(), known)

    def _late_example(self) -> Callable[[], Any] | None:
        return None if self._example is None else lambda: self[EXAMPLE]

    __copy__ = copy

    def __reduce__(self) -> tuple[Any, ...]:
        self._fill_all()
        return (dict, (), None, None, iter(list(dict.items(self))))

    def __repr__(self) -> str:
        self._fill_all()
        return dict.__repr__(self)

    def __eq__(self, other: object) -> bool:
        self._fill_all()
        return dict.__eq__(self, other)

    def __or__(self, other: Any) -> Any:
        self._fill_all()
        return dict.__or__(self, other)

    __hash__ = None


def stack_trace(lines: Lines) -> str:
    """The user's stack as `traceback` formats it, outermost call first.

    Args:
        lines: the lines of the stack, or its only one.

    Returns:
        The text, "" for no lines.
    """
    out = []
    for at in (lines,) if isinstance(lines, UserLine) else lines or ():
        out.append(f'  File "{at.file}", line {at.line}, in {at.function}\n')
        if at.text.strip():
            out.append(f"    {at.text.strip()}\n")
    return "".join(out)


def call_entries(
    node: Any, line: Lines, module_stack: Callable[[], dict[str, Any]] | None, function: Any
) -> dict[str, Any]:
    """What torch tells of an operation.

    Args:
        node: its node.
        line: the user's line, or stack of lines.
        module_stack: makes the entry of the modules that it is called in.
        function: what was called.
    """
    entries: dict[str, Any] = {"stack_trace": stack_trace(line)}
    if module_stack is not None:
        modules = module_stack()
        if modules:
            entries["nn_module_stack"] = modules
    entries["source_fn_stack"] = [(node.name, function)]
    return entries
