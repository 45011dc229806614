"""Lists, tuples, torch.Size, named tuples, ranges, slices and deques."""

from __future__ import annotations

import operator
import types
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

import torch

from dynacheck.guards.objects import LengthIs
from dynacheck.sources import ABSENT, Node, type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.abstract import equal
from dynacheck.variables.base import NOT_IMPLEMENTED, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.coerce import data, holds_itself, integer, is_integer, natively, text
from dynacheck.variables.iterators import IndexIterator
from dynacheck.variables.listing import items_of, listed
from dynacheck.variables.members import bind_member
from dynacheck.variables.methods import BuiltinObject, unhashable
from dynacheck.variables.replay import refill, replace_items
from dynacheck.variables.results import python_value
from dynacheck.variables.slices import SliceVariable
from dynacheck.variables.symbolic import SymNumberVariable, equal_numbers


def search_bounds(
    tx: Tracer, length: int, start: VariableTracker | None, stop: VariableTracker | None
) -> range:
    """The positions that `index(x, start, stop)` looks at."""
    first = 0 if start is None else integer(tx, start)
    last = length if stop is None else integer(tx, stop)
    return range(*slice(first, last).indices(length))


_QUIET: Final = frozenset((int, float, complex, bool, str, bytes, types.NoneType))
_SLOTS_THAT_RAISE: Final = ("__add__", "__mul__", "__rmul__", "__imul__")
"""Methods behind which are a sequence's slots, not a number's: they don't give NotImplemented."""


class SequenceVariable(BuiltinObject):
    """A sequence of trackers. Invariant: a sourced one is length-guarded before an item is read."""

    __slots__ = ("_items",)
    iterator_type: ClassVar[type] = type(iter(()))
    lengths_first: ClassVar[bool] = True
    """Whether sequences of different lengths differ without a look at items."""

    def __init__(self, items: Iterable[VariableTracker] | None, node: Node | None = None) -> None:
        super().__init__(node)
        self._items: Any = None if items is None else list(items)

    def items(self, tx: Tracer) -> Any:
        """The items, as a Python list that changes with the sequence."""
        if self._items is None:
            assert self.node is not None
            size = self.read_length(tx)
            self._items = [tx.wrap(self.node.item(i)) for i in range(size)]
        return self._items

    def read_length(self, tx: Tracer) -> int:
        """The length of the object that existed before the frame, guarded."""
        assert self.node is not None
        value = self.node.peek()
        size = (list if isinstance(value, list) else tuple).__len__(value)
        tx.guard(self.node, LengthIs(size))
        return size

    def like(self, items: list[VariableTracker]) -> VariableTracker:
        """What slicing and concatenation give."""
        return type(self)(items)

    def children(self) -> Sequence[VariableTracker]:
        return tuple(self._items or ())

    def sq_length(self, tx: Tracer) -> VariableTracker:
        return tx.constant(len(self.items(tx)))

    def mp_subscript(self, tx: Tracer, key: VariableTracker) -> VariableTracker:
        key = key.realize(tx)
        items = self.items(tx)
        if isinstance(key, SliceVariable):
            return self.like(natively(tx, operator.getitem, items, key.bounds(tx)))
        index = self.position(tx, key)
        try:
            item: VariableTracker = items[index]
        except IndexError:
            tx.raise_(IndexError, f"{self.word()} index out of range")
        return item

    def word(self) -> str:
        """What CPython calls it in errors."""
        return self.python_type.__name__

    def position(self, tx: Tracer, key: VariableTracker) -> int:
        """A key as an integer."""
        if not is_integer(tx, key):
            name = abstract.name_of(key)
            tx.raise_(TypeError, f"{self.word()} indices must be integers or slices, not {name}")
        return integer(tx, key)

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker:
        pairs = [(have, item) for have in list(self.items(tx))]
        found = equal_numbers(tx, pairs, any)
        return tx.constant(any(equal(tx, *pair) for pair in pairs)) if found is None else found

    def tp_iter(self, tx: Tracer) -> VariableTracker:
        return IndexIterator(self, self.iterator_type)

    def comparable(self, other: VariableTracker) -> bool:
        """Whether the type's comparison knows the other."""
        raise NotImplementedError

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        other = data(tx, other)
        if not isinstance(other, SequenceVariable) or not self.comparable(other):
            return NOT_IMPLEMENTED
        mine, others = self.items(tx), other.items(tx)
        if op in ("==", "!="):
            alike = len(mine) == len(others)  # a look at items matters where it runs code or raises
            if not alike and (self.lengths_first or all(v.get_type() in _QUIET for v in (*mine, *others))):
                return tx.constant(op == "!=")
            same = equal_numbers(tx, list(zip(mine, others)), all) if alike else None
            if same is not None:
                return same if op == "==" else abstract.not_(tx, same)
        at = 0
        while at < min(len(mine), len(others)):  # comparing items may change the lists
            if not equal(tx, mine[at], others[at]):
                break
            at += 1
        if at < min(len(mine), len(others)):
            if op in ("==", "!="):
                return tx.constant(op == "!=")
            return abstract.richcompare(tx, op, mine[at].realize(tx), others[at].realize(tx))
        lengths = tx.constant(len(mine)), tx.constant(len(others))
        return abstract.richcompare(tx, op, *lengths)

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        if op == "+" and left is self:
            other = data(tx, right)
            if isinstance(other, SequenceVariable) and self.comparable(other):
                return self.like([*self.items(tx), *other.items(tx)])
            return NOT_IMPLEMENTED
        count = right if left is self else left
        if op == "*" and is_integer(tx, count):
            return self.like(natively(tx, operator.mul, self.items(tx), integer(tx, count)))
        return NOT_IMPLEMENTED

    def call_method(
        self, tx: Tracer, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        found = super().call_method(tx, name, args, kwargs)
        if name in _SLOTS_THAT_RAISE and found.is_constant() and found.as_constant(tx) is NotImplemented:
            kind, other = self.python_type.__name__, abstract.name_of(args[0].realize(tx))
            if name == "__add__":
                tx.raise_(TypeError, f'can only concatenate {kind} (not "{other}") to {kind}')
            tx.raise_(TypeError, f"'{other}' object cannot be interpreted as an integer")
        return found

    def m_count(self, tx: Tracer, item: VariableTracker, /) -> VariableTracker:
        return tx.constant(sum(equal(tx, have, item) for have in list(self.items(tx))))

    def m_index(
        self,
        tx: Tracer,
        item: VariableTracker,
        start: VariableTracker | None = None,
        stop: VariableTracker | None = None,
        /,
    ) -> VariableTracker:
        place = self.place_of(tx, item, search_bounds(tx, len(self.items(tx)), start, stop))
        if place is None:
            tx.raise_(ValueError, self.not_found(tx, item))
        return tx.constant(place)

    def place_of(self, tx: Tracer, item: VariableTracker, places: range) -> int | None:
        """The first of some places with an equal item."""
        items = self.items(tx)
        return next((i for i in places if i < len(items) and equal(tx, items[i], item)), None)

    def not_found(self, tx: Tracer, item: VariableTracker) -> str:
        """The error of `index`."""
        return f"{text(tx, item)} is not in {self.word()}"

    def as_proxy(self, tx: Tracer) -> Any:
        return self.collect([i.realize(tx).as_proxy(tx) for i in self.items(tx)])

    def as_meta(self, tx: Tracer) -> Any:
        return self.collect([i.realize(tx).as_meta(tx) for i in self.items(tx)])

    def collect(self, values: list[Any]) -> Any:
        """A Python object of this kind with these items, for graph arguments."""
        return values

    def snapshot(self, tx: Tracer) -> Any:
        """A fresh Python copy, when all items are constants."""
        return self.collect([python_value(tx, i) for i in self.items(tx)])


class ListVariable(SequenceVariable):
    """A list whose items are trackers. Invariant: a sourced list is length-guarded before an item is read."""

    __slots__ = ()
    python_type = list
    iterator_type: ClassVar[type] = type(iter([]))

    def comparable(self, other: VariableTracker) -> bool:
        return isinstance(other, ListVariable)

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker:
        found = equal_numbers(tx, [(have, item) for have in self.items(tx)], any)
        return tx.constant(self.find(tx, item) is not None) if found is None else found

    def find(self, tx: Tracer, item: VariableTracker) -> int | None:
        """The first position of an equal item; comparing may change the list, as in CPython."""
        i = 0
        while i < len(self.items(tx)):
            if equal(tx, self.items(tx)[i], item):
                return i
            i += 1
        return None

    def change(self, tx: Tracer) -> list[VariableTracker]:
        """The items, about to be changed."""
        items: list[VariableTracker] = self.items(tx)
        self.changing(tx)
        return items

    def mp_ass_subscript(self, tx: Tracer, key: VariableTracker, value: VariableTracker | None) -> None:
        key = key.realize(tx)
        items = self.items(tx)
        if isinstance(key, SliceVariable):
            bounds = key.bounds(tx)
            if value is None:
                self.change(tx)
                natively(tx, operator.delitem, items, bounds)
                return
            new = self._iterated(tx, value.realize(tx), bounds)
            self.change(tx)
            natively(tx, operator.setitem, items, bounds, new)
            return
        index = self.position(tx, key)
        if not -len(items) <= index < len(items):
            tx.raise_(IndexError, "list assignment index out of range")
        self.change(tx)
        if value is None:
            del items[index]
        else:
            items[index] = value

    def _iterated(self, tx: Tracer, value: VariableTracker, bounds: slice) -> list[VariableTracker]:
        if not abstract.is_iterable(tx, value):
            extended = bounds.step not in (None, 1)
            tx.raise_(
                TypeError,
                "must assign iterable to extended slice" if extended else "can only assign an iterable",
            )
        return listed(tx, abstract.get_iter(tx, value))

    def nb_inplace(self, tx: Tracer, op: str, right: VariableTracker) -> VariableTracker | object:
        if op == "+":
            self.m_extend(tx, right)
            return self
        if op == "*" and is_integer(tx, right):
            natively(tx, operator.imul, self.change(tx), integer(tx, right))
            return self
        return NOT_IMPLEMENTED

    def m_append(self, tx: Tracer, item: VariableTracker, /) -> None:
        self.change(tx).append(item)

    def m_clear(self, tx: Tracer) -> None:
        self.change(tx).clear()

    def m_copy(self, tx: Tracer) -> VariableTracker:
        return ListVariable(self.items(tx))

    def m_extend(self, tx: Tracer, values: VariableTracker, /) -> None:
        values = values.realize(tx)
        if isinstance(values, SequenceVariable):
            new = list(values.items(tx))
            self.change(tx).extend(new)
            return
        found: Iterable[VariableTracker] = items_of(tx, values)
        if getattr(values, "base", None) is self:
            found = list(found)  # by itself: as it was
        items = self.change(tx)
        for value in found:
            items.append(value)

    def m___init__(self, tx: Tracer, values: VariableTracker | None = None, /) -> None:
        self.change(tx).clear()
        if values is not None:
            self.m_extend(tx, values)

    def m_insert(self, tx: Tracer, index: VariableTracker, item: VariableTracker, /) -> None:
        self.change(tx).insert(integer(tx, index), item)

    def m_pop(self, tx: Tracer, index: VariableTracker | None = None, /) -> VariableTracker:
        where = -1 if index is None else integer(tx, index)
        result: VariableTracker = natively(tx, self.change(tx).pop, where)
        return result

    def m_remove(self, tx: Tracer, item: VariableTracker, /) -> None:
        found = self.find(tx, item)
        if found is None:
            tx.raise_(ValueError, "list.remove(x): x not in list")
        del self.change(tx)[found]

    def m_reverse(self, tx: Tracer) -> None:
        self.change(tx).reverse()

    def m_sort(
        self, tx: Tracer, *, key: VariableTracker | None = None, reverse: VariableTracker | None = None
    ) -> None:
        items = self.change(tx)
        backwards = reverse is not None and bool(integer(tx, reverse))
        taken = list(items)
        items.clear()  # CPython empties the list while sorting
        try:
            taken = sort(tx, taken, key, backwards)
        finally:
            changed = bool(items)
            items[:] = taken
        if changed:
            tx.raise_(ValueError, "list modified during sort")

    def m___reversed__(self, tx: Tracer) -> VariableTracker:
        return IndexIterator(self, type(reversed([])), start=len(self.items(tx)) - 1, step=-1)

    def hash_key(self, tx: Tracer) -> Any:
        unhashable(tx, self)

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        return tx.constant(listing(tx, self, "[", "]"))

    def reconstruct(self, to: Rebuilder) -> None:
        if not holds_itself(self):
            for item in self._items:
                to.load(item)
            to.build_list(len(self._items))
            to.remember(self)
            return
        to.build_list(0)
        to.remember(self)
        self.fill(to, self)

    def fill(self, to: Rebuilder, owner: VariableTracker) -> None:
        """Emit code that gives `owner`, a list or an object of a subclass, these items."""
        refill(to, replace_items, owner, self._items or ())

    def write_back(self, to: Rebuilder) -> None:
        self.fill(to, self)


class _Sortable:
    """An item being sorted: compares as the traced program would."""

    __slots__ = ("item", "key", "tx")

    def __init__(self, tx: Tracer, key: VariableTracker, item: VariableTracker) -> None:
        self.tx = tx
        self.key = key
        self.item = item

    def __lt__(self, other: _Sortable) -> bool:
        return abstract.is_true(self.tx, abstract.richcompare(self.tx, "<", self.key, other.key))


def sort(
    tx: Tracer, items: list[VariableTracker], key: VariableTracker | None, reverse: bool
) -> list[VariableTracker]:
    """The items sorted stably, calling `key` once per item in order."""
    keyed = key is not None and not abstract.is_none(tx, key)
    keys = [tx.call(key, [i]) if keyed and key is not None else i for i in items]
    for unknown in (k.realize(tx) for k in keys if len(keys) > 1):
        if isinstance(unknown, SymNumberVariable):
            unknown.needs_plain(tx, "sorting")
    pairs = [_Sortable(tx, k.realize(tx), i) for k, i in zip(keys, items)]
    pairs.sort(reverse=reverse)
    return [p.item for p in pairs]


def listing(tx: Tracer, value: SequenceVariable, begin: str, end: str) -> str:
    """The repr of a sequence that doesn't hold itself."""
    items = value.items(tx)
    if holds_itself(value):
        value.unmodelled(tx, "repr() of a sequence that holds itself")
    return begin + ", ".join([text(tx, i) for i in items]) + end


class TupleVariable(SequenceVariable):
    """A tuple whose items are trackers."""

    __slots__ = ()
    python_type: ClassVar[type] = tuple
    lengths_first = False

    def comparable(self, other: VariableTracker) -> bool:
        return isinstance(other, TupleVariable)

    def like(self, items: list[VariableTracker]) -> VariableTracker:
        return TupleVariable(items)

    def not_found(self, tx: Tracer, item: VariableTracker) -> str:
        return "tuple.index(x): x not in tuple"

    def is_constant(self) -> bool:
        return self._items is not None and all(i.is_constant() for i in self._items)

    def as_constant(self, tx: Tracer) -> Any:
        return self.collect([i.realize(tx).as_constant(tx) for i in self.items(tx)])

    def collect(self, values: list[Any]) -> Any:
        return tuple(values)

    def hash_key(self, tx: Tracer) -> Any:
        return tuple(i.realize(tx).hash_key(tx) for i in self.items(tx))

    def m___getnewargs__(self, tx: Tracer) -> VariableTracker:
        return TupleVariable([TupleVariable(self.items(tx))])

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        return tx.constant(listing(tx, self, "(", ",)" if len(self.items(tx)) == 1 else ")"))

    def reconstruct(self, to: Rebuilder) -> None:
        for item in self._items:
            to.load(item)
        to.build_tuple(len(self._items))
        to.remember(self)


class SizeVariable(TupleVariable):
    """A torch.Size: a tuple of integers, known or symbolic."""

    __slots__ = ()
    python_type: ClassVar[type] = torch.Size

    def word(self) -> str:
        return "tuple"

    def like(self, items: list[VariableTracker]) -> VariableTracker:
        return SizeVariable(items)

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        if op == "+":
            one, other = data(tx, left), data(tx, right)
            if isinstance(one, TupleVariable) and isinstance(other, TupleVariable):
                return SizeVariable([*one.items(tx), *other.items(tx)])
            if left is self:
                name = abstract.name_of(right)
                tx.raise_(TypeError, f"can only concatenate tuple (not {name}) to torch.Size")
        return super().nb_binary(tx, op, left, right)

    def as_constant(self, tx: Tracer) -> Any:
        return torch.Size(super().as_constant(tx))

    def snapshot(self, tx: Tracer) -> Any:
        return torch.Size(super().snapshot(tx))

    def m_numel(self, tx: Tracer) -> VariableTracker:
        total = tx.constant(1)
        for item in self.items(tx):
            total = abstract.binary(tx, "*", total, item.realize(tx))
        return total

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        return tx.constant(listing(tx, self, "torch.Size([", "])"))

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(torch.Size, lambda: TupleVariable(self._items).reconstruct(to))
        to.remember(self)


_SLOTS: Final = (
    "__len__", "__getitem__", "__iter__", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
    "__hash__", "__bool__", "__add__", "__radd__", "__mul__", "__rmul__", "__str__", "__format__",
    "__getattribute__", "__getattr__",
)  # fmt: skip


def keeps_slots(cls: type) -> bool:
    """Whether a kind of named tuple has no special method of the user's that reads it."""
    return not any(isinstance(type_lookup(cls, name), types.FunctionType) for name in _SLOTS)


class NamedTupleVariable(TupleVariable):
    """An instance of a tuple subclass without an instance dict: a named tuple or a C struct sequence.

    Args:
        cls: the class; fields are read from `_fields` or from its member descriptors.
        class_variable: the tracker of the class.
    """

    __slots__ = ("class_variable", "cls")

    def __init__(
        self,
        cls: type,
        items: Iterable[VariableTracker] | None,
        class_variable: VariableTracker | None = None,
        node: Node | None = None,
    ) -> None:
        super().__init__(items, node)
        self.cls = cls
        self.class_variable = class_variable

    def get_type(self) -> type:
        return self.cls

    def sample(self) -> Any:
        return ()

    def fields(self) -> tuple[str, ...]:
        """Field names in order."""
        return field_names(self.cls)

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        fields = self.fields()
        raw = type_lookup(self.cls, name)
        if name in fields and not callable(raw):
            item: VariableTracker = self.items(tx)[fields.index(name)]
            return item
        users = isinstance(raw, types.FunctionType) and raw.__module__ != "collections"
        if raw is ABSENT or (getattr(self, "m_" + name, None) is not None and not users):
            return super().tp_getattro(tx, name)
        found = bind_member(tx, self, self.cls, name, raw)
        return super().tp_getattro(tx, name) if found is None else found

    def m___getnewargs__(self, tx: Tracer) -> VariableTracker:
        return super().m___getnewargs__(tx) if is_structseq(self.cls) else TupleVariable(list(self.items(tx)))

    def m__asdict(self, tx: Tracer) -> VariableTracker:
        names = [tx.constant(name) for name in self.fields()]
        pairs = [TupleVariable([n, i]) for n, i in zip(names, self.items(tx))]
        return tx.call(tx.object(dict), [TupleVariable(pairs)])

    def m__replace(self, tx: Tracer, /, **changes: VariableTracker) -> VariableTracker:
        fields = self.fields()
        unexpected = [name for name in changes if name not in fields]
        if unexpected:
            tx.raise_(ValueError, f"Got unexpected field names: {unexpected!r}")
        items = [changes.get(n, i) for n, i in zip(fields, self.items(tx))]
        return NamedTupleVariable(self.cls, items, self.class_variable)

    def m__make(self, tx: Tracer, values: VariableTracker, /) -> VariableTracker:
        items = listed(tx, values)
        if len(items) != len(self.fields()):
            tx.raise_(TypeError, f"Expected {len(self.fields())} arguments, got {len(items)}")
        return NamedTupleVariable(self.cls, items, self.class_variable)

    def collect(self, values: list[Any]) -> Any:
        if is_structseq(self.cls):
            return tuple(values)
        return tuple.__new__(self.cls, values)

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        found = type_lookup(self.cls, "__repr__")
        if getattr(found, "__module__", None) not in (None, "collections"):
            own = bind_member(tx, self, self.cls, "__repr__", found)
            return self.unmodelled(tx, "repr()") if own is None else tx.call(own, [])
        named = ", ".join(f"{n}={text(tx, i)}" for n, i in zip(self.fields(), self.items(tx)))
        return tx.constant(f"{self.cls.__name__}({named})")

    def reconstruct(self, to: Rebuilder) -> None:
        def cls() -> None:
            if self.class_variable is not None:
                to.load(self.class_variable)
            else:
                to.load_const(self.cls)

        to.call_helper(new_tuple, cls, lambda: TupleVariable(self._items).reconstruct(to))
        to.remember(self)


def field_names(cls: type) -> tuple[str, ...]:
    """Field names of a named tuple class or a C struct sequence, in order."""
    names = type_lookup(cls, "_fields")
    if isinstance(names, tuple):
        return names
    if is_structseq(cls):
        matched = type_lookup(cls, "__match_args__")
        return matched if isinstance(matched, tuple) else ()
    return ()


def is_structseq(cls: type) -> bool:
    """Whether a tuple subclass is a C struct sequence (`torch.return_types.max`)."""
    return isinstance(type_lookup(cls, "n_sequence_fields"), int)


def new_tuple(cls: Any, items: tuple[Any, ...]) -> Any:
    """An instance of a tuple subclass, without running its `__new__` (used by rewritten code)."""
    return cls(items) if is_structseq(cls) else tuple.__new__(cls, items)
