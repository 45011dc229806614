"""Taking structures of values apart and putting them together again, as `torch.utils._pytree` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.mappings import DictVariable
from dynacheck.variables.sequences import ListVariable, NamedTupleVariable, TupleVariable

Shape = Any
"""What a structure looks like without its leaves: LEAF, or a type, keys and the shapes of its items."""

LEAF: Final = "*"


def flatten(tx: Tracer, value: VariableTracker) -> tuple[list[VariableTracker], Shape]:
    """The leaves of a structure of tuples, lists, dicts and named tuples, and its shape.

    Args:
        tx: the translator.
        value: the structure; anything else is a leaf.

    Returns:
        The leaves in order, and what `unflatten` needs.
    """
    leaves: list[VariableTracker] = []
    return leaves, _flatten(tx, value.realize(tx), leaves)


def _flatten(tx: Tracer, value: VariableTracker, leaves: list[VariableTracker]) -> Shape:
    kind = value.get_type()
    keys: Any = None
    if kind in (tuple, list) or isinstance(value, NamedTupleVariable):
        items = _items(tx, value)
    elif kind is dict:
        keys = tuple(key.realize(tx).as_constant(tx) for key in _items(tx, value))
        items = [value.mp_subscript(tx, tx.constant(key)) for key in keys]
    else:
        leaves.append(value)
        return LEAF
    return (kind, keys, tuple(_flatten(tx, item.realize(tx), leaves) for item in items))


def _items(tx: Tracer, value: VariableTracker) -> list[VariableTracker]:
    iterator = value.tp_iter(tx).realize(tx)
    return list(iter(lambda: iterator.tp_iternext(tx), None))


def count(shape: Shape) -> int:
    """How many leaves a structure of that shape has."""
    return 1 if shape == LEAF else sum(map(count, shape[2]))


def unflatten(tx: Tracer, shape: Shape, leaves: Sequence[VariableTracker]) -> VariableTracker:
    """A new structure.

    Args:
        tx: the translator.
        shape: from `flatten`.
        leaves: as many leaves as the shape has.

    Returns:
        Its tracker.
    """
    return _unflatten(tx, shape, iter(leaves))


def _unflatten(tx: Tracer, shape: Shape, leaves: Iterator[VariableTracker]) -> VariableTracker:
    if shape == LEAF:
        return next(leaves)
    kind, keys, shapes = shape
    items = [_unflatten(tx, inner, leaves) for inner in shapes]
    if kind is dict:
        return DictVariable.of(tx, [(tx.constant(key), item) for key, item in zip(keys, items)])
    plain: dict[type, Callable[[list[VariableTracker]], VariableTracker]] = {
        tuple: TupleVariable,
        list: ListVariable,
    }
    make = plain.get(kind)
    return NamedTupleVariable(kind, items, tx.class_variable(kind)) if make is None else make(items)
