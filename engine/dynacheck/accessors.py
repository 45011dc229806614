"""How one value is reached from another: the steps of sources.

Each accessor is read in three ways: `fetch` (the value, from a live frame), `emit` (bytecode that loads it in the
rewritten code) and, by `native_op`, the native program's own accessor. None of them runs user code.
"""

from __future__ import annotations

import sys
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from types import CellType, FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, ClassVar, Final, Protocol, TypeGuard, TypeVar, cast

from dynacheck import _C


class _Absent:
    """The value of a path that leads nowhere."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<absent>"


ABSENT = _Absent()

HEAP_TYPE: Final = 1 << 9
"""The flag of a class that isn't static in C code (`Py_TPFLAGS_HEAPTYPE`)."""


_T = TypeVar("_T")


def is_a(value: object, cls: type[_T] | tuple[type[_T], ...]) -> TypeGuard[_T]:
    """`isinstance` by the object's real type: asking for `__class__` could run user code."""
    return issubclass(type(value), cls)


class Emitter(Protocol):
    """What a source may emit. Each method appends instructions that push one value, or replace the top of the stack."""

    def load_local(self, name: str) -> None: ...
    def load_free(self, name: str) -> None:
        """Push the contents of a cell or free variable of the frame."""

    def load_cell(self, name: str) -> None:
        """Push the cell itself."""

    def load_global(self, name: str) -> None: ...
    def load_const(self, value: object) -> None: ...
    def load_weak(self, ref: Callable[[], object]) -> None:
        """Push the object of a weak reference owned by the entry."""

    def load(self, value: Any) -> None:
        """Push the object a tracker stands for: its source, an object built before, or a new one."""

    def load_attr(self, name: str) -> None: ...
    def load_item(self, key: object) -> None:
        """Replace the top of the stack by its item at a constant key."""

    def call_helper(self, helper: Callable[..., object], *loads: Callable[[], None]) -> None:
        """Push the result of an engine function on the values that `loads` push."""


@dataclass(frozen=True, slots=True)
class FrameView:
    """The values of a frame that has not started: what guards and explanations read.

    Args:
        func: the function being called (globals, closure, defaults).
        args: the argument slots in order, as the hook hands them out.
    """

    func: FunctionType
    args: tuple[Any, ...]


class Accessor:
    """One step from a value to another. Frozen; compares by type and fields, so that it can key the trie."""

    __slots__ = ()
    native_op: ClassVar[str]

    @property
    def step(self) -> Hashable:
        """What the trie finds the step by. Most are asked for by kind and name far more often than they are new:
        these go without an object, and without hashing and comparing in Python."""
        return self

    def native(self) -> tuple[object, ...]:
        """Operands of the native accessor."""
        return ()

    def fetch(self, base: Any, frame: FrameView) -> Any:
        """The value reached from `base`, or ABSENT. Runs no user code."""
        raise NotImplementedError

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        raise NotImplementedError

    def path(self, base: str) -> str:
        """How logs spell it."""
        raise NotImplementedError

    def user_path(self, base: str) -> str:
        """How the user would spell it."""
        return self.path(base)


@dataclass(frozen=True, slots=True)
class Local(Accessor):
    """An argument slot of the frame."""

    name: str
    index: int
    native_op: ClassVar[str] = "LOCAL"

    def native(self) -> tuple[object, ...]:
        return (self.index,)

    def fetch(self, base: Any, frame: FrameView) -> Any:
        value = frame.args[self.index]
        return ABSENT if value is _C.NULL else value

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        to.load_local(self.name)

    def path(self, base: str) -> str:
        return f"L[{self.name!r}]"

    def user_path(self, base: str) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Free(Accessor):
    """The cell of a free variable of the frame; its contents are the child `CellContents`."""

    name: str
    index: int
    native_op: ClassVar[str] = "FREE"

    def native(self) -> tuple[object, ...]:
        return (self.index,)

    def fetch(self, base: Any, frame: FrameView) -> Any:
        closure = frame.func.__closure__
        return ABSENT if closure is None else closure[self.index]

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        to.load_cell(self.name)

    def path(self, base: str) -> str:
        return f"F[{self.name!r}]"

    def user_path(self, base: str) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class _LoadedByName(Accessor):
    """A name that LOAD_GLOBAL finds."""

    name: str

    def native(self) -> tuple[object, ...]:
        return (self.name,)

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        to.load_global(self.name)

    def user_path(self, base: str) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Global(_LoadedByName):
    """A name in the frame's own globals."""

    native_op: ClassVar[str] = "GLOBAL"

    def fetch(self, base: Any, frame: FrameView) -> Any:
        return frame.func.__globals__.get(self.name, ABSENT)

    def path(self, base: str) -> str:
        return f"G[{self.name!r}]"


@dataclass(frozen=True, slots=True)
class Builtin(_LoadedByName):
    """A name in the frame's builtins (guarded only together with its absence from the globals)."""

    native_op: ClassVar[str] = "BUILTIN"

    def fetch(self, base: Any, frame: FrameView) -> Any:
        function: Any = frame.func
        return function.__builtins__.get(self.name, ABSENT)

    def path(self, base: str) -> str:
        return f"B[{self.name!r}]"


@dataclass(frozen=True, slots=True)
class FrameGlobals(Accessor):
    """The dict of the frame's own globals (to compare with an inlined function's)."""

    native_op: ClassVar[str] = "GLOBALS"

    def fetch(self, base: Any, frame: FrameView) -> Any:
        return frame.func.__globals__

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        raise AssertionError("the globals are only compared, never loaded")

    def path(self, base: str) -> str:
        return "globals()"


def imported_module(name: str) -> object:
    """The module of that name in sys.modules (used by rewritten code for values of other modules)."""
    return sys.modules[name]


@dataclass(frozen=True, slots=True)
class Module(Accessor):
    """A module, by its name in sys.modules: the way to the globals of inlined functions."""

    name: str
    native_op: ClassVar[str] = "MODULE"

    def native(self) -> tuple[object, ...]:
        return (self.name,)

    def fetch(self, base: Any, frame: FrameView) -> Any:
        return sys.modules.get(self.name, ABSENT)

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        to.call_helper(imported_module, lambda: to.load_const(self.name))

    def path(self, base: str) -> str:
        return f"M[{self.name!r}]"

    def user_path(self, base: str) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Captured(Accessor):
    """An object reached only through a weak cell owned by the entry (it has no path from the frame)."""

    key: int
    name: str = ""
    native_op: ClassVar[str] = "CAPTURED"

    def native(self) -> tuple[object, ...]:
        return (self.key,)

    def path(self, base: str) -> str:
        return f"W[{self.name or self.key}]"

    def user_path(self, base: str) -> str:
        return self.name or self.path(base)


def instance_dict(obj: object) -> dict[str, Any] | None:
    """The instance dict of an object without running user code, or None.

    An object that has none yet keeps having none: a new, empty dict stands for it.
    """
    return {} if _C.lacks_dict(obj) else own_dict(obj)


def own_dict(obj: object) -> dict[str, Any] | None:
    """The instance dict of an object without running user code, to write to: made if there is none yet; or None."""
    try:
        d = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None
    return d if type(d) is dict else None


def is_own_dict(obj: object) -> bool:
    """Whether an object of a class derived from dict is its own instance dict (`self.__dict__ = self`)."""
    return is_a(obj, dict) and type(obj) is not dict and c_attribute(obj, "__dict__") is obj


@dataclass(frozen=True, slots=True)
class Attribute(Accessor):
    """A step named like an attribute; unless it says otherwise, rewritten code loads it as one."""

    name: str

    @property
    def step(self) -> Hashable:
        return type(self), self.name

    def native(self) -> tuple[object, ...]:
        return (self.name,)

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        load_base()
        to.load_attr(self.name)

    def path(self, base: str) -> str:
        return f"{base}.{self.name}"


@dataclass(frozen=True, slots=True)
class DictAttr(Attribute):
    """An entry of the object's instance dict (modules included)."""

    native_op: ClassVar[str] = "DICTATTR"

    def fetch(self, base: Any, frame: FrameView) -> Any:
        d = instance_dict(base)
        return ABSENT if d is None else d.get(self.name, ABSENT)


@dataclass(frozen=True, slots=True)
class TypeOf(Accessor):
    """The object's type."""

    native_op: ClassVar[str] = "TYPEOF"

    @property
    def step(self) -> Hashable:
        return TypeOf

    def fetch(self, base: Any, frame: FrameView) -> Any:
        return type(base)

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        to.call_helper(type, load_base)

    def path(self, base: str) -> str:
        return f"type({base})"


def type_lookup(cls: type, name: str) -> object:
    """What `_PyType_Lookup` finds: the raw entry of the first class of the MRO that has the name, or ABSENT."""
    return _C.type_lookup(cls, name, ABSENT)


@dataclass(frozen=True, slots=True)
class TypeAttr(Attribute):
    """A raw class attribute, looked up along the MRO; the base is a class."""

    native_op: ClassVar[str] = "TYPEATTR"

    def fetch(self, base: Any, frame: FrameView) -> Any:
        return type_lookup(base, self.name)

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        to.call_helper(type_lookup, load_base, lambda: to.load_const(self.name))

    def user_path(self, base: str) -> str:
        # type(self).scale is what the user wrote as self.scale
        return f"{base[5:-1] if base.startswith('type(') and base.endswith(')') else base}.{self.name}"


def c_attribute(obj: Any, name: str) -> object:
    """An attribute whose descriptor is C code (a `__slots__` member, a builtin's getter), or ABSENT."""
    descriptor: Any = type_lookup(type(obj), name)
    if type(descriptor) not in (MemberDescriptorType, GetSetDescriptorType):
        return ABSENT
    try:
        return descriptor.__get__(obj)
    except (AttributeError, ValueError, RuntimeError):
        return ABSENT


@dataclass(frozen=True, slots=True)
class SlotAttr(Attribute):
    """A `__slots__` member (a member descriptor of the type)."""

    native_op: ClassVar[str] = "SLOTATTR"

    def fetch(self, base: Any, frame: FrameView) -> Any:
        return c_attribute(base, self.name)


@dataclass(frozen=True, slots=True)
class CAttr(Attribute):
    """An attribute whose descriptor on the type is C code: `__code__`, `__self__`, a tensor's `grad`."""

    native_op: ClassVar[str] = "CATTR"

    def fetch(self, base: Any, frame: FrameView) -> Any:
        return c_attribute(base, self.name)


def cell_contents(cell: CellType) -> object:
    """The contents of a cell, or ABSENT when it is empty."""
    if type(cell) is not CellType:
        return ABSENT
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


@dataclass(frozen=True, slots=True)
class CellContents(Accessor):
    """What a cell holds; ABSENT when it is empty."""

    native_op: ClassVar[str] = "CELL"

    def fetch(self, base: Any, frame: FrameView) -> Any:
        return cell_contents(base)

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        load_base()
        to.load_attr("cell_contents")

    def path(self, base: str) -> str:
        return f"{base}.cell_contents"

    def user_path(self, base: str) -> str:
        return base


def referent(ref: Any) -> object:
    """What a weak reference refers to, or ABSENT when it died; runs no user code."""
    if not is_a(ref, weakref.ref):
        return ABSENT
    found = weakref.ref.__call__(ref)
    return ABSENT if found is None else found


@dataclass(frozen=True, slots=True)
class Referent(Accessor):
    """What a weak reference refers to; ABSENT when it died."""

    native_op: ClassVar[str] = "REFERENT"

    def fetch(self, base: Any, frame: FrameView) -> Any:
        return referent(base)

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        to.call_helper(referent, load_base)

    def path(self, base: str) -> str:
        return f"{base}()"


def list_item(obj: list[Any] | tuple[Any, ...] | deque[Any], index: int) -> object:
    """Item of a list, tuple or deque (or subclass) by the builtin's own rule, whatever the subclass overrides."""
    if is_a(obj, list):
        return list.__getitem__(obj, index)
    if is_a(obj, deque):
        return deque.__getitem__(obj, index)
    return tuple.__getitem__(cast("tuple[Any, ...]", obj), index)


def dict_item(obj: dict[Any, Any], key: object) -> object:
    """Item of a dict (or subclass) by dict's own rule, whatever the subclass overrides."""
    return dict.__getitem__(obj, key)


@dataclass(frozen=True, slots=True)
class Item(Accessor):
    """An item of a list, tuple or deque."""

    index: int
    native_op: ClassVar[str] = "ITEM"

    def native(self) -> tuple[object, ...]:
        return (self.index,)

    def fetch(self, base: Any, frame: FrameView) -> Any:
        if is_a(base, list):
            return list.__getitem__(base, self.index) if self.index < list.__len__(base) else ABSENT
        if is_a(base, tuple):
            return tuple.__getitem__(base, self.index) if self.index < tuple.__len__(base) else ABSENT
        if is_a(base, deque):
            return deque.__getitem__(base, self.index) if self.index < deque.__len__(base) else ABSENT
        return ABSENT

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        load_base()
        to.load_item(self.index)

    def path(self, base: str) -> str:
        return f"{base}[{self.index}]"


@dataclass(frozen=True, slots=True)
class OwnItem(Item):
    """An item of an object whose class has another `__getitem__`."""

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        to.call_helper(list_item, load_base, lambda: to.load_const(self.index))


@dataclass(frozen=True, slots=True)
class Key(Accessor):
    """A dict's item. The key is an exact builtin constant or an enum member."""

    key: Any
    native_op: ClassVar[str] = "KEY"

    def native(self) -> tuple[object, ...]:
        return (self.key,)

    def fetch(self, base: Any, frame: FrameView) -> Any:
        return dict.get(base, self.key, ABSENT) if is_a(base, dict) else ABSENT

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        to.call_helper(dict_item, load_base, lambda: to.load_const(self.key))

    def path(self, base: str) -> str:
        return f"{base}[{self.key!r}]"

    def user_path(self, base: str) -> str:
        for container in ("._parameters", "._buffers", "._modules"):
            if base.endswith(container):
                owner = base[: -len(container)]
                return f"{owner}[{self.key}]" if str(self.key).isdigit() else f"{owner}.{self.key}"
        return f"{base}[{self.key!r}]"

    # 1, 1.0 and True are equal keys of a dict but not the same constant
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and type(self.key) is type(other.key) and self.key == other.key

    def __hash__(self) -> int:
        return hash((type(self.key), self.key))


def dict_keys_of(d: dict[Any, Any]) -> Iterator[Any]:
    """The keys of a dict (or a subclass) in its order, whatever the subclass overrides."""
    return OrderedDict.__iter__(d) if is_a(d, OrderedDict) else dict.__iter__(d)


def dict_key_at(d: dict[Any, Any], index: int) -> object:
    """The key at a position of a dict's order."""
    for i, key in enumerate(dict_keys_of(d)):
        if i == index:
            return key
    return ABSENT


@dataclass(frozen=True, slots=True)
class KeyAt(Accessor):
    """The key object at a position of a dict (for keys that are neither constants nor enum members)."""

    index: int
    native_op: ClassVar[str] = "KEYAT"

    def native(self) -> tuple[object, ...]:
        return (self.index,)

    def fetch(self, base: Any, frame: FrameView) -> Any:
        return dict_key_at(base, self.index) if is_a(base, dict) else ABSENT

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        to.call_helper(dict_key_at, load_base, lambda: to.load_const(self.index))

    def path(self, base: str) -> str:
        return f"list({base})[{self.index}]"


@dataclass(frozen=True, slots=True)
class Converted(Accessor):
    """What an engine function makes of a value whose type is guarded: a tensor of an array. None: it can't.

    Args:
        function: makes it anew each time; runs no user code and doesn't raise.
        name: how logs spell it.
    """

    function: Callable[[Any], Any]
    name: str
    native_op: ClassVar[str] = "CONVERTED"

    def native(self) -> tuple[object, ...]:
        return (self.function,)

    def fetch(self, base: Any, frame: FrameView) -> Any:
        made = self.function(base)
        return ABSENT if made is None else made

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        to.call_helper(self.function, load_base)

    def path(self, base: str) -> str:
        return f"{self.name}({base})"

    def user_path(self, base: str) -> str:
        return base
