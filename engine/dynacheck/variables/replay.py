"""What rewritten code calls to bring builtin containers to their contents: the builtin's own rule, no overrides."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from dynacheck.variables.base import Rebuilder, VariableTracker


def refill(
    to: Rebuilder, helper: Callable[..., None], owner: VariableTracker, items: Collection[VariableTracker]
) -> None:
    """Emit a call of `helper(owner, items)`, the items in a tuple."""

    def load_items() -> None:
        for item in items:
            to.load(item)
        to.build_tuple(len(items))

    to.call_helper(helper, lambda: to.load(owner), load_items)
    to.pop()


def _rule(target: dict[Any, Any]) -> Any:
    return OrderedDict if isinstance(target, OrderedDict) else dict


def clear(target: dict[Any, Any]) -> None:
    """Empty a dict by its builtin base's rule."""
    _rule(target).clear(target)


def add_items(target: dict[Any, Any], items: dict[Any, Any]) -> None:
    """Add items by the builtin base's rule."""
    store = _rule(target).__setitem__
    for key, value in items.items():
        store(target, key, value)


def discard_key(target: dict[Any, Any], key: Any) -> None:
    """Delete a key, if it is there, by the builtin base's rule."""
    if dict.__contains__(target, key):
        _rule(target).__delitem__(target, key)


def store_item(target: dict[Any, Any], key: Any, value: Any) -> None:
    """Store an item by the builtin base's rule."""
    _rule(target).__setitem__(target, key, value)


def replace_items(target: list[Any], items: tuple[Any, ...]) -> None:
    """Give a list new contents, by list's own rule."""
    list.__setitem__(target, slice(None), items)


def replace_deque(target: deque[Any], items: tuple[Any, ...]) -> None:
    """Give a deque new contents, by deque's own rule."""
    deque.clear(target)
    deque.extend(target, items)


def replace_elements(target: set[Any], elements: set[Any]) -> None:
    """Give a set new contents, by set's own rule, element by element, which is how its order comes about."""
    for element in [e for e in set.__iter__(target) if e not in elements]:
        set.discard(target, element)
    for element in elements:
        set.add(target, element)


BACKWARDS: Final[dict[str, Callable[[Any], Iterator[Any]]]] = {
    "keys": lambda d: reversed(_rule(d).keys(d)),
    "values": lambda d: reversed(_rule(d).values(d)),
    "items": lambda d: reversed(_rule(d).items(d)),
}
"""Reversed iterators over a dict, by what they yield (used by rewritten code); others aren't rebuilt, as in torch."""
