"""dict, OrderedDict and defaultdict."""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, ClassVar, Final, NoReturn

from dynacheck.accessors import dict_key_at, dict_keys_of
from dynacheck.guards.held import is_constant as is_plain_key
from dynacheck.guards.objects import ANY_KEY, KeysAre, NotAbsent, length_of_dict
from dynacheck.sources import ABSENT, Accessor, Emitter, FrameView, KeyAt, Node, type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.abstract import equal
from dynacheck.variables.base import NOT_IMPLEMENTED, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.coerce import data, holds_itself, text
from dynacheck.variables.iterators import NativeIterator
from dynacheck.variables.methods import BuiltinObject, kept_apart, key_of, unhashable
from dynacheck.variables.replay import BACKWARDS, add_items, clear, discard_key, store_item
from dynacheck.variables.results import python_value
from dynacheck.versions import PY312

Pair = tuple[VariableTracker, VariableTracker]


def _is_lasting_class(key: Any) -> bool:
    """Whether a key is a class that is there as long as the process: it may be held."""
    by_identity = isinstance(key, type) and type(key).__hash__ is type.__hash__
    return by_identity and key.__module__.partition(".")[0] in ("builtins", "collections", "torch")


def dict_value_at(d: dict[Any, Any], index: int) -> object:
    """The value at a position of a dict's order."""
    key = dict_key_at(d, index)
    return ABSENT if key is ABSENT else dict.__getitem__(d, key)


@dataclass(frozen=True, slots=True)
class ValueAt(Accessor):
    """The value at a position of a dict (for keys that are neither constants nor enum members)."""

    index: int
    native_op: ClassVar[str] = "VALUEAT"

    def native(self) -> tuple[object, ...]:
        return (self.index,)

    def fetch(self, base: Any, frame: FrameView) -> Any:
        return dict_value_at(base, self.index)

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        to.call_helper(dict_value_at, load_base, lambda: to.load_const(self.index))

    def path(self, base: str) -> str:
        return f"list({base}.values())[{self.index}]"


@dataclass(slots=True)
class Write:
    """What the frame did last to one key of a dict that existed before it.

    Args:
        key: the key's tracker.
        value: the stored value; None when the key was deleted.
        anew: the key was deleted first, so that a stored one goes to the end.
    """

    key: VariableTracker
    value: VariableTracker | None
    anew: bool


class DictVariable(BuiltinObject):
    """A dict. Invariant: a sourced one is guarded only by the keys that were asked for, until all are needed.

    Attributes:
        entries: the pairs by hash key in order, or None while a sourced dict isn't read as a whole.
        writes: what the frame did to a dict that existed before it, in order, to be done again at the end.
        cleared: the frame emptied it before the writes.
    """

    __slots__ = ("cleared", "entries", "writes")
    python_type: ClassVar[type] = dict
    nothing_to_pop: ClassVar[str] = "popitem(): dictionary is empty"

    def __init__(self, entries: dict[Any, Pair] | None, node: Node | None = None) -> None:
        super().__init__(node)
        self.entries = entries
        self.writes: dict[Any, Write] = {}
        self.cleared = False

    @classmethod
    def of(cls, tx: Tracer, pairs: Iterable[Pair]) -> DictVariable:
        """A new dict of these pairs; a later equal key replaces the value."""
        made = cls({})
        for key, value in pairs:
            made.store(tx, key, value)
        return made

    # -- reading
    def content(self, tx: Tracer) -> dict[Any, Pair]:
        """All pairs; a sourced dict is guarded by its keys in order."""
        if self.entries is None:
            assert self.node is not None
            keys = list(dict_keys_of(self.node.peek()))
            entries: dict[Any, Pair] = {}
            if not self.cleared:
                tx.guard(self.node, KeysAre(k if is_plain_key(k) else ANY_KEY for k in keys))
                for i, key in enumerate(keys):
                    tracker, value = self._sourced_pair(tx, i, key)
                    entries[tracker.hash_key(tx)] = (tracker, value)
            self.entries = entries
            for found, write in self.writes.items():
                if write.anew or write.value is None:
                    entries.pop(found, None)
                if write.value is not None:
                    old = entries.get(found)
                    entries[found] = (write.key if old is None else old[0], write.value)
        return self.entries

    def _sourced_pair(self, tx: Tracer, index: int, key: Any) -> Pair:
        assert self.node is not None
        if is_plain_key(key) or isinstance(key, enum.Enum):
            return tx.constant(key), tx.wrap(self.node.key(key))
        tracker = tx.wrap(self.node.child(KeyAt(index))).realize(tx)
        return tracker, tx.wrap(self.node.child(ValueAt(index)))

    def lookup(self, tx: Tracer, key: VariableTracker) -> VariableTracker | None:
        """The value of a key, or None; presence and absence are guarded."""
        key = key.realize(tx)
        found = key_of(tx, key, "dict key")
        if self.entries is None:
            if found in self.writes:
                return self.writes[found].value
            if self.cleared:
                return None
            if key.is_constant():
                return self._sourced_value(tx, key.as_constant(tx))
            if _is_lasting_class(found):
                return self._sourced_value(tx, found)
        entries = self.content(tx)
        if self.node is not None and isinstance(found, (VariableTracker, FunctionType)):
            for mine, (tracker, _) in entries.items():  # of which it is one, or none
                kept_apart(tx, tracker, mine)
        pair = entries.get(found)
        return None if pair is None else pair[1]

    def _sourced_value(self, tx: Tracer, key: Any) -> VariableTracker | None:
        assert self.node is not None
        if not is_plain_key(key) and not isinstance(key, enum.Enum) and not _is_lasting_class(key):
            pair = self.content(tx).get(key)
            return None if pair is None else pair[1]
        child = self.node.key(key)
        if child.peek() is ABSENT:
            tx.guard_absent(child)
            return None
        tx.guard(child, NotAbsent())
        return tx.wrap(child)

    def children(self) -> Sequence[VariableTracker]:
        written = [v for w in self.writes.values() for v in (w.key, w.value) if v is not None]
        if self.entries is None:
            return written
        return [*(v for pair in self.entries.values() for v in pair), *written]

    def sq_length(self, tx: Tracer) -> VariableTracker:
        if self.entries is None and not self.writes and not self.cleared:
            assert self.node is not None
            self.keeps_its_length(tx)
            return tx.constant(dict.__len__(self.node.peek()))
        return tx.constant(len(self.content(tx)))

    def keeps_its_length(self, tx: Tracer) -> None:
        assert self.node is not None
        tx.guard(self.node, length_of_dict(self.node.peek()))

    def mp_subscript(self, tx: Tracer, key: VariableTracker) -> VariableTracker:
        found = self.lookup(tx, key)
        return self.missing(tx, key) if found is None else found

    def missing(self, tx: Tracer, key: VariableTracker) -> VariableTracker:
        """The value of `d[key]` for a key that isn't there."""
        raise_key_error(tx, key)

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker:
        may_change = item.node is not None and not _is_lasting_class(abstract.python_object(item.realize(tx)))
        if may_change and self.node is not None and not self.cleared:  # as torch: the key itself may change
            self.keeps_its_length(tx)
        return tx.constant(self.lookup(tx, item) is not None)

    # -- writing
    def mp_ass_subscript(self, tx: Tracer, key: VariableTracker, value: VariableTracker | None) -> None:
        if value is not None:
            self.store(tx, key, value)
        elif self.lookup(tx, key) is None:
            raise_key_error(tx, key)
        else:
            self.delete(tx, key)

    def store(self, tx: Tracer, key: VariableTracker, value: VariableTracker) -> None:
        """`d[key] = value`."""
        key = key.realize(tx)
        found = key_of(tx, key, "dict key")
        if self.node is not None:
            if not key.is_constant():
                self.content(tx)
            if not self.writes and not self.cleared:
                self.keeps_its_length(tx)  # what is written to does
            self.changing(tx)
            write = self.writes.get(found)
            if write is None:
                self.writes[found] = Write(key, value, False)
            elif write.value is None:
                del self.writes[found]
                self.writes[found] = Write(key, value, True)
            else:
                write.value = value
        if self.entries is not None:
            old = self.entries.get(found)
            self.entries[found] = (key if old is None else old[0], value)

    def delete(self, tx: Tracer, key: VariableTracker) -> None:
        """`del d[key]` of a key that is there."""
        key = key.realize(tx)
        found = key_of(tx, key, "dict key")
        if self.node is not None:
            self.changing(tx)
            self.writes.pop(found, None)
            self.writes[found] = Write(key, None, True)
        if self.entries is not None:
            self.entries.pop(found, None)

    # -- iteration
    def tp_iter(self, tx: Tracer) -> VariableTracker:
        return self.iterate(tx, "keys", False)

    def iterate(self, tx: Tracer, what: str, backwards: bool) -> VariableTracker:
        """An iterator over keys, values or items that notices changes as CPython's."""
        entries = self.content(tx)
        natural: Iterator[Any] = reversed(entries.items()) if backwards else iter(entries.items())
        sample: Any = getattr(self.python_type(), what)()
        kind = type(reversed(sample) if backwards else iter(sample))
        pick: Callable[[Any], VariableTracker] = {
            "keys": lambda item: item[1][0],
            "values": lambda item: item[1][1],
            "items": lambda item: tx.tuple_of(list(item[1])),
        }[what]
        return NativeIterator(
            self, natural, pick, kind, BACKWARDS[what] if backwards else None, lambda: list(self.content(tx))
        )

    # -- methods
    def m_get(
        self, tx: Tracer, key: VariableTracker, default: VariableTracker | None = None, /
    ) -> VariableTracker:
        found = self.lookup(tx, key)
        if found is not None:
            return found
        return tx.constant(None) if default is None else default

    def m_setdefault(
        self, tx: Tracer, key: VariableTracker, default: VariableTracker | None = None, /
    ) -> VariableTracker:
        found = self.lookup(tx, key)
        if found is None:
            found = tx.constant(None) if default is None else default
            self.store(tx, key, found)
        return found

    def m_pop(
        self, tx: Tracer, key: VariableTracker, default: VariableTracker | None = None, /
    ) -> VariableTracker:
        found = self.lookup(tx, key)
        if found is not None:
            self.delete(tx, key)
            return found
        if default is None:
            raise_key_error(tx, key)
        return default

    def m_popitem(self, tx: Tracer) -> VariableTracker:
        return self._popitem(tx, True)

    def _popitem(self, tx: Tracer, last: bool) -> VariableTracker:
        entries = self.content(tx)
        if not entries:
            tx.raise_(KeyError, self.nothing_to_pop)
        key, value = entries[next(reversed(entries) if last else iter(entries))]
        self.delete(tx, key)
        return tx.tuple_of([key, value])

    def m_clear(self, tx: Tracer) -> None:
        if self.node is not None:
            self.changing(tx)
            self.writes.clear()
            self.cleared = True
        if self.entries is None:
            self.entries = {}
        self.entries.clear()

    def m_copy(self, tx: Tracer) -> VariableTracker:
        return self.same_kind(tx, dict(self.content(tx)))

    def same_kind(self, tx: Tracer, entries: dict[Any, Pair]) -> DictVariable:
        """What `copy` and `|` give."""
        return DictVariable(entries)

    def m_update(self, tx: Tracer, other: VariableTracker | None = None, /, **named: VariableTracker) -> None:
        if other is not None:
            for key, value in pairs_of(tx, other):
                self.store(tx, key, value)
        for name, value in named.items():
            self.store(tx, tx.constant(name), value)

    m___init__ = m_update

    def m_keys(self, tx: Tracer) -> VariableTracker:
        return self.view(tx, "keys")

    def m_values(self, tx: Tracer) -> VariableTracker:
        return self.view(tx, "values")

    def m_items(self, tx: Tracer) -> VariableTracker:
        return self.view(tx, "items")

    def view(self, tx: Tracer, what: str) -> VariableTracker:
        """A live view; `views.py` puts its own maker here."""
        return VIEWS[what](self)

    def m_fromkeys(
        self, tx: Tracer, keys: VariableTracker, value: VariableTracker | None = None, /
    ) -> VariableTracker:
        filler = tx.constant(None) if value is None else value
        return type(self).of(tx, [(k, filler) for k in abstract.iterate(tx, keys)])

    def m___reversed__(self, tx: Tracer) -> VariableTracker:
        return self.iterate(tx, "keys", True)

    # -- operators
    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        one, other = data(tx, left), data(tx, right)
        if op != "|" or not isinstance(one, DictVariable) or not isinstance(other, DictVariable):
            return NOT_IMPLEMENTED
        keeper = other if type(one) is DictVariable else one  # a special kind of dict beside a plain one
        merged = keeper.same_kind(tx, dict(one.content(tx)))
        merged.m_update(tx, right)
        return merged

    def nb_inplace(self, tx: Tracer, op: str, right: VariableTracker) -> VariableTracker | object:
        if op != "|":
            return NOT_IMPLEMENTED
        self.m_update(tx, right)
        return self

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        other = data(tx, other)
        if op not in ("==", "!=") or not isinstance(other, DictVariable):
            return NOT_IMPLEMENTED
        return tx.constant(self.equals(tx, other) is (op == "=="))

    def equals(self, tx: Tracer, other: DictVariable) -> bool:
        """Whether both have equal keys with equal values."""
        mine, others = self.content(tx), other.content(tx)
        if len(mine) != len(others):
            return False
        for found, (_, value) in list(mine.items()):
            pair = others.get(found)
            if pair is None or not equal(tx, value, pair[1]):
                return False
        return True

    def hash_key(self, tx: Tracer) -> Any:
        unhashable(tx, self)

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        return tx.constant(self.listing(tx))

    def listing(self, tx: Tracer) -> str:
        """`{key: value, ...}`."""
        content = self.content(tx)
        if holds_itself(self):
            self.unmodelled(tx, "repr() of a dict that holds itself")
        return "{" + ", ".join([f"{text(tx, k)}: {text(tx, v)}" for k, v in content.values()]) + "}"

    def as_proxy(self, tx: Tracer) -> Any:
        pairs = self.content(tx).values()
        return {k.as_proxy(tx): v.realize(tx).as_proxy(tx) for k, v in pairs}

    def as_meta(self, tx: Tracer) -> Any:
        pairs = self.content(tx).values()
        return {k.as_meta(tx): v.realize(tx).as_meta(tx) for k, v in pairs}

    def snapshot(self, tx: Tracer) -> Any:
        """A Python copy, when all is constant."""
        return {python_value(tx, k): python_value(tx, v) for k, v in self.content(tx).values()}

    # -- rewritten code
    def push_pairs(self, to: Rebuilder) -> None:
        """Push a plain dict of the pairs."""
        entries = self.entries or {}
        for key, value in entries.values():
            to.load(key)
            to.load(value)
        to.build_map(len(entries))

    def push_empty(self, to: Rebuilder) -> None:
        """Push an empty object of the type."""
        to.build_map(0)

    def reconstruct(self, to: Rebuilder) -> None:
        if type(self) is DictVariable and not holds_itself(self):
            self.push_pairs(to)
            to.remember(self)
            return
        self.push_empty(to)
        to.remember(self)
        self.fill(to, self)

    def fill(self, to: Rebuilder, owner: VariableTracker) -> None:
        """Emit code that adds the pairs to `owner`, an empty dict or an object of a subclass."""
        if self.entries:
            to.call_helper(add_items, lambda: to.load(owner), lambda: self.push_pairs(to))
            to.pop()

    def write_back(self, to: Rebuilder) -> None:
        if self.cleared:
            to.call_helper(clear, lambda: to.load(self))
            to.pop()
        for write in self.writes.values():
            self._write(to, write)

    def _write(self, to: Rebuilder, write: Write) -> None:
        if write.anew:
            to.call_helper(discard_key, lambda: to.load(self), lambda: to.load(write.key))
            to.pop()
        value = write.value
        if value is not None:
            to.call_helper(
                store_item, lambda: to.load(self), lambda: to.load(write.key), lambda: to.load(value)
            )
            to.pop()


def raise_key_error(tx: Tracer, key: VariableTracker) -> NoReturn:
    """KeyError of a key."""
    tx.raise_(KeyError, key.realize(tx))


def _merged_directly(cls: type) -> bool:
    """Whether `dict_merge` takes a mapping's items past the methods of its class."""
    own = all(type_lookup(cls, n) is type_lookup(OrderedDict, n) for n in ("__iter__", "keys", "__getitem__"))
    return own or type_lookup(cls, "__iter__") is dict.__iter__


def pairs_of(tx: Tracer, value: VariableTracker) -> list[Pair]:
    """The pairs that `dict(value)` and `update(value)` take: a mapping's, or an iterable of pairs."""
    value = value.realize(tx)
    mapping = data(tx, value)
    if isinstance(mapping, DictVariable) and _merged_directly(value.get_type()):
        return list(mapping.content(tx).values())
    missing = tx.constant(None)
    if abstract.has(tx, value, "keys") or (
        not isinstance(value, BuiltinObject)  # any attribute will do
        and abstract.getattr_default(tx, value, "keys", missing) is not missing
    ):
        keys = abstract.iterate(tx, tx.call(abstract.getattr_(tx, value, "keys"), []))
        return [(k, abstract.getitem(tx, value, k)) for k in keys]
    pairs: list[Pair] = []
    for i, item in enumerate(abstract.iterate(tx, value)):
        if not abstract.is_iterable(tx, item.realize(tx)):
            tx.raise_(TypeError, f"cannot convert dictionary update sequence element #{i} to a sequence")
        two = abstract.iterate(tx, item)
        if len(two) != 2:
            tx.raise_(
                ValueError, f"dictionary update sequence element #{i} has length {len(two)}; 2 is required"
            )
        pairs.append((two[0], two[1]))
    return pairs


class OrderedDictVariable(DictVariable):
    """An OrderedDict; one made in the frame may have attributes (a state dict's `_metadata`)."""

    __slots__ = ("attrs",)
    python_type = OrderedDict
    nothing_to_pop = "dictionary is empty"

    def __init__(self, entries: dict[Any, Pair] | None, node: Node | None = None) -> None:
        super().__init__(entries, node)
        self.attrs: dict[str, VariableTracker] = {}

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        return self.attrs[name] if name in self.attrs else super().tp_getattro(tx, name)

    def tp_setattro(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        if value is None or self.node is not None or type_lookup(OrderedDict, name) is not ABSENT:
            super().tp_setattro(tx, name, value)
        else:
            self.attrs[name] = value

    def children(self) -> Sequence[VariableTracker]:
        return [*super().children(), *self.attrs.values()]

    def fill(self, to: Rebuilder, owner: VariableTracker) -> None:
        super().fill(to, owner)
        for name, value in self.attrs.items():
            to.load(value)
            to.load(owner)
            to.store_attr(name)

    def same_kind(self, tx: Tracer, entries: dict[Any, Pair]) -> DictVariable:
        return OrderedDictVariable(entries)

    def m_popitem(self, tx: Tracer, last: VariableTracker | None = None) -> VariableTracker:
        return self._popitem(tx, last is None or abstract.is_true(tx, last))

    def m_move_to_end(self, tx: Tracer, key: VariableTracker, last: VariableTracker | None = None) -> None:
        value = self.lookup(tx, key)
        if value is None:
            raise_key_error(tx, key)
        kept = self.content(tx)[key.realize(tx).hash_key(tx)][0]
        if last is None or abstract.is_true(tx, last):
            self.delete(tx, kept)
            self.store(tx, kept, value)
            return
        pairs = [(kept, value), *(p for p in self.content(tx).values() if p[0] is not kept)]
        self.m_clear(tx)
        for k, v in pairs:
            self.store(tx, k, v)

    def m___reversed__(self, tx: Tracer) -> VariableTracker:
        return self.iterate(tx, "keys", True)

    def equals(self, tx: Tracer, other: DictVariable) -> bool:
        if not super().equals(tx, other):
            return False
        if not isinstance(other, OrderedDictVariable):
            return True
        return list(self.content(tx)) == list(other.content(tx))

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        pairs = [tx.tuple_of(list(p)) for p in self.content(tx).values()]
        shown = self.listing(tx) if PY312 else f"[{', '.join(text(tx, p) for p in pairs)}]"
        return tx.constant(f"OrderedDict({shown if pairs else ''})")

    def as_proxy(self, tx: Tracer) -> Any:
        return OrderedDict(super().as_proxy(tx))

    def as_meta(self, tx: Tracer) -> Any:
        return OrderedDict(super().as_meta(tx))

    def snapshot(self, tx: Tracer) -> Any:
        return OrderedDict(super().snapshot(tx))

    def push_empty(self, to: Rebuilder) -> None:
        to.call_helper(OrderedDict)


VIEWS: Final[dict[str, Callable[[DictVariable], VariableTracker]]] = {}
"""Makers of views by method name, filled by `views.py`."""
