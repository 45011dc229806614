"""Guards on Python objects: type, identity, value, length, keys, presence, code."""

from __future__ import annotations

import abc
import types
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias

from dynacheck.guards.base import Change, Guard, Slots
from dynacheck.guards.held import Held, constant_key, describe, held, is_constant, is_native_constant, plain
from dynacheck.sources import ABSENT, dict_keys_of, is_a


@dataclass(frozen=True, slots=True, init=False)
class TypeIs(Guard):
    """The value's type is exactly this class, which is held weakly."""

    cls: Held
    native_op: ClassVar[str] = "TYPE"

    def __init__(self, cls: type) -> None:
        object.__setattr__(self, "cls", held(cls))

    def native(self) -> tuple[object, ...]:
        return (self.cls.native(),)

    def check(self, slots: Slots) -> bool:
        return slots[0] is not ABSENT and self.cls.matches(type(slots[0]))

    def explain(self, slots: Slots) -> Change:
        return Change("type", self.cls.name, describe(type(slots[0])))

    def text(self, paths: Sequence[str]) -> str:
        return f"___check_type_id({paths[0]}, {self.cls.name})"


@dataclass(frozen=True, slots=True, init=False)
class Is(Guard):
    """The value is this object, which is held weakly.

    Raises:
        TypeError: the object has no weak references and isn't one that may be kept (guard its parts instead).
    """

    held: Held
    native_op: ClassVar[str] = "IS"

    def __init__(self, value: Any) -> None:
        object.__setattr__(self, "held", held(value))

    def native(self) -> tuple[object, ...]:
        return (self.held.native(),)

    def check(self, slots: Slots) -> bool:
        return self.held.matches(slots[0])

    def explain(self, slots: Slots) -> Change:
        now = describe(slots[0])
        return Change("identity", self.held.name, f"another {now}" if now == self.held.name else now)

    def text(self, paths: Sequence[str]) -> str:
        return f"{paths[0]} is {self.held.name}"


class EnumIs(Is):
    """The value is this enum member, which is held through its class."""

    __slots__ = ()

    def explain(self, slots: Slots) -> Change:
        return Change("value", self.held.name, plain(slots[0]))


@dataclass(frozen=True, slots=True, eq=False)
class ValueIs(Guard):
    """The value is this constant: same exact type, same value (floats bit by bit).

    Args:
        value: a constant as `held.constant_key` defines it.

    Raises:
        TypeError: the value isn't such a constant.
    """

    value: Any
    native_op: ClassVar[str] = "VALUE"

    def __post_init__(self) -> None:
        constant_key(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueIs) and constant_key(self.value) == constant_key(other.value)

    def __hash__(self) -> int:
        return hash(constant_key(self.value))

    def native_form(self) -> tuple[str, tuple[object, ...]]:
        if is_native_constant(self.value):
            return "VALUE", (("CONST", self.value),)
        if type(self.value) is frozenset and all(map(is_native_constant, self.value)):
            return "SET", (frozenset, tuple(("CONST", item) for item in self.value), 0)
        return "PYCHECK", ()

    def check(self, slots: Slots) -> bool:
        value = slots[0]
        if type(value) is not type(self.value):
            return False
        return value is self.value or (is_constant(value) and constant_key(value) == constant_key(self.value))

    def explain(self, slots: Slots) -> Change:
        return Change("value", self.value, plain(slots[0]))

    def text(self, paths: Sequence[str]) -> str:
        single = self.value is None or self.value is ... or type(self.value) is bool
        return f"{paths[0]} {'is' if single else '=='} {self.value!r}"


_SIZED: Final[tuple[Any, ...]] = (list, tuple, dict, set, frozenset, str, bytes, bytearray, deque, range)


def builtin_length(value: Any) -> int | None:
    """Length by the rule of the builtin container the value is (or derives from); None when it is none of them."""
    for cls in _SIZED:
        if is_a(value, cls):
            length: int = cls.__len__(value)
            return length
    return None


@dataclass(frozen=True, slots=True)
class LengthIs(Guard):
    """The builtin container (or one derived from it) has this many items.

    Args:
        length: how many.
        keys: those that a dict had, for people.
    """

    length: int
    keys: tuple[str, ...] = field(default=(), compare=False)
    native_op: ClassVar[str] = "LENGTH"

    def native(self) -> tuple[object, ...]:
        return (self.length,)

    def check(self, slots: Slots) -> bool:
        return builtin_length(slots[0]) == self.length

    def explain(self, slots: Slots) -> Change:
        base = next((cls for cls in (dict, set, frozenset) if is_a(slots[0], cls)), None)
        return Change("length", self.length, builtin_length(slots[0]), "" if base is None else base.__name__)

    def changes(self, slots: Slots, paths: Sequence[str] = ()) -> list[Change]:
        found = [self.explain(slots)]
        if (
            found[0].detail == "dict"
            and dict.__len__(slots[0]) <= _MOST_KEYS
            and len(self.keys) == self.length
        ):
            found.append(Change("keys", list(self.keys), list(shown_keys(slots[0]))))
        return found

    def text(self, paths: Sequence[str]) -> str:
        return f"len({paths[0]}) == {self.length}"


_MOST_KEYS: Final = 8


def shown_keys(d: Any) -> tuple[str, ...]:
    """The keys of a dict as reports show them."""
    return tuple(repr(key) if is_constant(key) else describe(key) for key in dict_keys_of(d))


def length_of_dict(d: Any) -> LengthIs:
    """The guard that a dict keeps its number of keys."""
    length = dict.__len__(d)
    return LengthIs(length, shown_keys(d) if length <= _MOST_KEYS else ())


class AnyKey:
    """In `KeysAre`: a key that is looked at through its own node (`KeyAt`)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "..."


ANY_KEY: Final = AnyKey()
Element: TypeAlias = Held | tuple[Any, Any] | AnyKey
"""A constant as (key, value), or what is held by identity."""


def _element(value: Any) -> Element:
    if isinstance(value, AnyKey):
        return value
    return (constant_key(value), value) if is_constant(value) else held(value)


def _element_native(element: Element) -> tuple[Any, ...]:
    if isinstance(element, Held):
        return element.native()
    return ("ANY",) if isinstance(element, AnyKey) else ("CONST", element[1])


def _element_matches(element: Element, value: Any) -> bool:
    if isinstance(element, Held):
        return element.matches(value)
    if isinstance(element, AnyKey):
        return True
    return type(value) is type(element[1]) and is_constant(value) and constant_key(value) == element[0]


def _element_text(element: Element) -> str:
    if isinstance(element, Held):
        return element.name
    return repr(element) if isinstance(element, AnyKey) else repr(element[1])


def _natively(elements: Iterable[Element]) -> bool:
    return all(not isinstance(e, tuple) or is_native_constant(e[1]) for e in elements)


@dataclass(frozen=True, slots=True, init=False)
class KeysAre(Guard):
    """The dict (or one derived from it) has exactly these keys, in this order.

    Args:
        keys: constants by value, others by identity; `ANY_KEY` for a key with guards of its own.
    """

    keys: tuple[Element, ...]
    native_op: ClassVar[str] = "KEYS"

    def __init__(self, keys: Iterable[Any]) -> None:
        object.__setattr__(self, "keys", tuple(map(_element, keys)))

    def native_form(self) -> tuple[str, tuple[object, ...]]:
        return (
            ("KEYS", (tuple(map(_element_native, self.keys)),)) if _natively(self.keys) else ("PYCHECK", ())
        )

    def check(self, slots: Slots) -> bool:
        d = slots[0]
        if not is_a(d, dict) or dict.__len__(d) != len(self.keys):
            return False
        return all(map(_element_matches, self.keys, dict_keys_of(d)))

    def explain(self, slots: Slots) -> Change:
        d = slots[0]
        then = [_element_text(k) for k in self.keys]
        return Change("keys", then, list(shown_keys(d)) if is_a(d, dict) else describe(d))

    def text(self, paths: Sequence[str]) -> str:
        return f"list(dict.keys({paths[0]})) == [{', '.join(map(_element_text, self.keys))}]"


def elements_of(value: Any) -> list[Any]:
    """The elements of a set in its order, past an `__iter__` of a subclass."""
    return list((set if is_a(value, set) else frozenset).__iter__(value))


@dataclass(frozen=True, slots=True, init=False)
class SetIs(Guard):
    """The set or frozenset (exact type) has exactly these elements: constants by value, others by identity.

    Args:
        value: the set.
        ordered: in this order, too, which also depends on how a set came about.
    """

    cls: type[Any]
    elements: frozenset[Element]
    order: tuple[Element, ...] | None
    native_op: ClassVar[str] = "SET"

    def __init__(self, value: set[Any] | frozenset[Any], ordered: bool = False) -> None:
        order = tuple(map(_element, elements_of(value)))
        object.__setattr__(self, "cls", type(value))
        object.__setattr__(self, "elements", frozenset(order))
        object.__setattr__(self, "order", order if ordered else None)

    def native_form(self) -> tuple[str, tuple[object, ...]]:
        elements = self.elements if self.order is None else self.order
        if not _natively(elements):
            return "PYCHECK", ()
        return "SET", (self.cls, tuple(map(_element_native, elements)), int(self.order is not None))

    def check(self, slots: Slots) -> bool:
        value: Any = slots[0]
        if type(value) is not self.cls:
            return False
        found = elements_of(value)
        if len(found) != len(self.elements):
            return False
        if self.order is not None:
            return all(map(_element_matches, self.order, found))
        return all(any(_element_matches(e, v) for v in found) for e in self.elements)

    def explain(self, slots: Slots) -> Change:
        value: Any = slots[0]
        now: Any = describe(value)
        if self.cls is type(value):
            shown = [repr(v) if is_constant(v) else describe(v) for v in elements_of(value)]
            now = sorted(shown)
            if self.order is not None and now == sorted(map(_element_text, self.elements)):
                return Change("order", list(map(_element_text, self.order)), shown)
        return Change("value", sorted(map(_element_text, self.elements)), now)

    def text(self, paths: Sequence[str]) -> str:
        if self.order is not None:
            return f"list({paths[0]}) == [{', '.join(map(_element_text, self.order))}]"
        return f"{paths[0]} == {{{', '.join(sorted(map(_element_text, self.elements)))}}}"


@dataclass(frozen=True, slots=True, eq=False)
class HasKey(Guard):
    """The dict has (or hasn't) this key, by `dict.__contains__`; the key is a constant or an enum member."""

    key: Any
    present: bool = True
    native_op: ClassVar[str] = "HASKEY"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, HasKey)
            and self.present == other.present
            and _element(self.key) == _element(other.key)
        )

    def __hash__(self) -> int:
        return hash((self.present, self.key))

    def native(self) -> tuple[object, ...]:
        return (self.key, int(self.present))

    def check(self, slots: Slots) -> bool:
        return is_a(slots[0], dict) and dict.__contains__(slots[0], self.key) == self.present

    def explain(self, slots: Slots) -> Change:
        states = ("absent", "present")
        now = states[not self.present] if is_a(slots[0], dict) else describe(slots[0])
        return Change("presence", states[self.present], now, f"key {describe(self.key)}")

    def text(self, paths: Sequence[str]) -> str:
        return f"{'' if self.present else 'not '}dict.__contains__({paths[0]}, {describe(self.key)})"


@dataclass(frozen=True, slots=True)
class Absent(Guard):
    """The path leads nowhere: no such attribute, key, global, or an empty cell."""

    native_op: ClassVar[str] = "ABSENT"

    def check(self, slots: Slots) -> bool:
        return slots[0] is ABSENT

    def explain(self, slots: Slots) -> Change:
        return Change("presence", "absent", plain(slots[0]))

    def text(self, paths: Sequence[str]) -> str:
        return f"not ___exists({paths[0]})"


class EmptyCell(Absent):
    """The cell is empty (on the `CellContents` node)."""

    __slots__ = ()

    def text(self, paths: Sequence[str]) -> str:
        return f"___cell_is_empty({paths[0]})"


@dataclass(frozen=True, slots=True)
class NotAbsent(Guard):
    """The path leads somewhere."""

    native_op: ClassVar[str] = "PRESENT"

    def check(self, slots: Slots) -> bool:
        return slots[0] is not ABSENT

    def explain(self, slots: Slots) -> Change:
        return Change("presence", "present", "absent")

    def text(self, paths: Sequence[str]) -> str:
        return f"___exists({paths[0]})"


@dataclass(frozen=True, slots=True, init=False)
class CodeIs(Guard):
    """The value is a function with this code object, which is held weakly.

    Closure, defaults and globals are nodes of their own: `CAttr("__closure__")`, `CAttr("__defaults__")`,
    `CAttr("__globals__")` (with `Same` to `FrameGlobals` or a module's `CAttr("__dict__")`).
    """

    code: Held
    native_op: ClassVar[str] = "CODE"

    def __init__(self, function: types.FunctionType | types.CodeType) -> None:
        code = function.__code__ if isinstance(function, types.FunctionType) else function
        object.__setattr__(self, "code", held(code))

    def native(self) -> tuple[object, ...]:
        return (self.code.native(),)

    def check(self, slots: Slots) -> bool:
        return type(slots[0]) is types.FunctionType and self.code.matches(slots[0].__code__)

    def explain(self, slots: Slots) -> Change:
        value = slots[0]
        now = describe(value.__code__) if type(value) is types.FunctionType else describe(value)
        return Change("code", self.code.name, f"another {now}" if now == self.code.name else now)

    def text(self, paths: Sequence[str]) -> str:
        return f"{paths[0]}.__code__ is {self.code.name}"


@dataclass(frozen=True, slots=True)
class NoSubclass(Guard):
    """The class is no subclass of an abstract one, which it could be registered with at any time (and stays one then).

    Args:
        wanted: the abstract class.
        token: what `abc.get_cache_token` gave: nothing was registered anywhere while it gives the same.
    """

    wanted: Held
    token: object = field(compare=False)
    native_op: ClassVar[str] = "PYCHECK"

    @classmethod
    def now(cls, wanted: type) -> NoSubclass:
        """What holds now."""
        return cls(held(wanted), abc.get_cache_token())

    def check(self, slots: Slots) -> bool:
        if abc.get_cache_token() == self.token:
            return slots[0] is not ABSENT
        wanted = self.wanted.get()
        return wanted is not None and is_a(slots[0], type) and not issubclass(slots[0], wanted)

    def explain(self, slots: Slots) -> Change:
        return Change("value", False, True, f"is a subclass of {self.wanted.name}")

    def text(self, paths: Sequence[str]) -> str:
        return f"not issubclass({paths[0]}, {self.wanted.name})"


@dataclass(frozen=True, slots=True)
class RangeIs(Guard):
    """The value is a range with this start, stop and step (ranges of equal items but other ends differ)."""

    start: int
    stop: int
    step: int
    native_op: ClassVar[str] = "IS"

    def native(self) -> tuple[object, ...]:
        ends = (("start", self.start), ("stop", self.stop), ("step", self.step))
        return (("PARTS", range, tuple((name, ("CONST", value)) for name, value in ends)),)

    def check(self, slots: Slots) -> bool:
        r = slots[0]
        return type(r) is range and (r.start, r.stop, r.step) == (self.start, self.stop, self.step)

    def explain(self, slots: Slots) -> Change:
        return Change("value", range(self.start, self.stop, self.step), plain(slots[0]))

    def text(self, paths: Sequence[str]) -> str:
        return f"{paths[0]} == {range(self.start, self.stop, self.step)!r}"
