"""How guards hold values: plain constants by value, everything else by identity and weakly.

A guard may outlive what it speaks about, and what hangs on a code object is invisible to the garbage collector, so a
guard must not keep a user's object alive. A weakly held object that died never passes again, whatever is put at its
address later.
"""

from __future__ import annotations

import contextlib
import enum
import struct
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final

import torch

from dynacheck import _C
from dynacheck.events import Named
from dynacheck.sources import ABSENT, HEAP_TYPE, instance_dict, is_a

_BY_VALUE: Final = frozenset({int, str, bytes, bool, type(None), type(...), type(NotImplemented)})
_BY_IDENTITY: Final = frozenset({torch.dtype, torch.layout, torch.memory_format, torch.qscheme})
_SEQUENCES: Final = frozenset({tuple, torch.Size})
_NATIVE: Final = _BY_VALUE | _BY_IDENTITY | _SEQUENCES | {float, complex, slice, torch.device}
_HAVE_GC: Final = 1 << 14  # Py_TPFLAGS_HAVE_GC

DESCRIPTORS: Final = (
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)
_PARTS: Final[dict[type, tuple[str, ...]]] = {
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    _C.InstanceMethod: ("__func__",),
}


def constant_key(value: Any) -> Any:
    """A hashable that is equal for two constants exactly when they are the same constant.

    `1`, `1.0` and `True` differ, so do `0.0` and `-0.0`; a nan equals itself.

    Args:
        value: an exact builtin constant, or a tuple, frozenset or slice of them; also torch's dtypes, devices, layouts,
            sizes, and numpy scalars.

    Returns:
        The key.

    Raises:
        TypeError: the value isn't such a constant.
    """
    cls = type(value)
    if cls in _BY_VALUE or cls in _BY_IDENTITY:
        return cls, value
    if cls is float:
        return cls, struct.pack("d", value)
    if cls is complex:
        return cls, struct.pack("dd", value.real, value.imag)
    if cls in _SEQUENCES:
        return cls, tuple(map(constant_key, value))
    if cls is frozenset:
        return cls, frozenset(map(constant_key, value))
    if cls is slice or cls is range:
        return cls, constant_key(value.start), constant_key(value.stop), constant_key(value.step)
    if cls is torch.device:
        return cls, value.type, value.index
    if (
        cls.__module__ == "numpy"
        and cls.__flags__ & HEAP_TYPE == 0
        and hasattr(cls, "tobytes")
        and cls.__name__ != "ndarray"
    ):
        return cls, value.dtype.str, value.tobytes()
    raise TypeError(f"{cls.__name__} is not a constant type")


def is_constant(value: Any) -> bool:
    """Whether `constant_key` knows the value."""
    try:
        constant_key(value)
    except TypeError:
        return False
    return True


def is_native_constant(value: Any) -> bool:
    """Whether the native program can compare the constant itself (frozensets are compared as sets)."""
    cls = type(value)
    if cls in _SEQUENCES:
        return all(map(is_native_constant, value))
    if cls is slice:
        return all(map(is_native_constant, (value.start, value.stop, value.step)))
    return cls in _NATIVE


class Held:
    """An object known by identity.

    Args:
        value: the object. Held weakly; enum members through their class, descriptors of C code and properties by what
            they are made of. Strongly only objects that own nothing of the user's.

    Raises:
        TypeError: the object can only be held strongly and isn't ours to keep.
    """

    __slots__ = ("_get", "_parts", "address", "how", "name", "owner")

    def __init__(self, value: Any) -> None:
        cls = type(value)
        self.address: Final = id(value)
        self.name: Final = describe(value)
        self.owner: Held | None = None
        self._parts: tuple[Held | None, ...] = ()
        self._get: Callable[[], Any] = lambda: ABSENT
        self.how = "weak"
        if is_a(value, enum.Enum):
            self.how, self.owner = "enum", held(cls)
        elif cls in DESCRIPTORS:
            self.how, self.owner, self._parts = "descriptor", held(value.__objclass__), (held(cls),)
        elif cls in _PARTS:
            self.how = "parts"
            parts = [getattr(value, name) for name in _PARTS[cls]]
            self._parts = tuple(None if p is None else held(p) for p in parts)
            self.owner = held(cls)
        elif cls is types.MethodType or cls is types.MethodWrapperType:
            raise TypeError(
                f"{cls.__name__}: bound methods are made anew on each access; guard __func__ and __self__"
            )
        else:
            try:
                self._get = weakref.ref(value)
            except TypeError:
                kept = cls in _BY_VALUE or cls in _BY_IDENTITY or _owns_nothing(value)
                if not _is_numpys(value) and (cls.__flags__ & HEAP_TYPE or not kept):
                    raise TypeError(
                        f"{cls.__name__} objects can't be held by identity: no weak references"
                    ) from None
                self.how, self._get = "strong", lambda: value

    def get(self) -> Any:
        """The object, or ABSENT when it died or is known only by its make-up."""
        found = self._get()
        return ABSENT if found is None and self.how == "weak" else found

    @property
    def alive(self) -> bool:
        """False once the object, or what it is known by, died."""
        if self.how == "weak":
            return self._get() is not None
        parts = all(p is None or p.alive for p in self._parts)
        return parts and (self.owner is None or self.owner.alive)

    def matches(self, value: Any) -> bool:
        """Whether `value` is the object."""
        if self.how == "weak" or self.how == "strong":
            found = self._get()
            return value is found and (value is not None or self.how == "strong")
        if not self.alive or value is ABSENT:
            return False
        assert self.owner is not None
        if self.how == "enum":
            return id(value) == self.address
        if self.how == "descriptor":
            kind = self._parts[0]
            assert kind is not None
            return (
                kind.matches(type(value))
                and self.owner.matches(value.__objclass__)
                and value.__name__ == self.name
            )
        return self.owner.matches(type(value)) and all(
            mine.matches(theirs) if mine is not None else theirs is None
            for mine, theirs in zip(self._parts, (getattr(value, n) for n in _PARTS[type(value)]))
        )

    def native(self) -> tuple[Any, ...]:
        """The operand that the native program makes its own hold from."""
        if not self.alive:
            return ("DEAD",)
        if self.how == "weak":
            return ("WEAK", self._get())
        if self.how == "strong":
            return ("STRONG", self._get())
        assert self.owner is not None
        if self.how == "enum":
            return ("THROUGH", self.address, self.owner.get())
        if self.how == "descriptor":
            kind = self._parts[0]
            assert kind is not None
            return ("DESCRIPTOR", kind.get(), self.owner.get(), str(self.name))
        cls = self.owner.get()
        pairs = zip(_PARTS[cls], self._parts)
        return (
            "PARTS",
            cls,
            tuple((name, ("STRONG", None) if p is None else p.native()) for name, p in pairs),
        )

    def _identity(self) -> tuple[Any, ...]:
        owner = None if self.owner is None else self.owner._identity()
        parts = tuple(None if p is None else p._identity() for p in self._parts)
        address = self.address if self.how in ("weak", "strong", "enum") else self.name
        return self.how, address, owner, parts

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Held):
            return NotImplemented
        return self is other or (self._identity() == other._identity() and self.alive and other.alive)

    def __hash__(self) -> int:
        return hash(self.address if self.how in ("weak", "strong", "enum") else self.name)

    def __repr__(self) -> str:
        return f"<{self.how} {self.name}>"


class _Memo:
    """What guards of the running translation hold, by id; None while nothing is translated."""

    known: dict[int, Held] | None = None


@contextlib.contextmanager
def remembering() -> Iterator[None]:
    """A translation: an object is held once, however many guards speak of it. Nothing of that is kept afterwards."""
    outer, _Memo.known = _Memo.known, {}
    try:
        yield
    finally:
        _Memo.known = outer


def held(value: Any) -> Held:
    """The `Held` of an object, made once per translation.

    Raises:
        TypeError: as for `Held`.
    """
    known = _Memo.known
    if known is None:
        return Held(value)
    found = known.get(id(value))
    if found is not None and found.matches(value):
        return found
    made = Held(value)
    if made.how == "weak" or made.how == "descriptor":  # these notice when an id is used again
        known[id(value)] = made
    return made


def _owns_nothing(value: Any) -> bool:
    if type(value) is weakref.ReferenceType:  # the weak containers' callbacks refer weakly to them
        return value.__callback__ is None or value.__callback__.__module__ in ("weakref", "_weakrefset")
    return not type(value).__flags__ & _HAVE_GC


def _is_numpys(value: Any) -> bool:
    """Whether numpy itself holds an object for good: one of its functions or dtypes."""
    numpy: Any = sys.modules.get("numpy")
    if type(value).__module__.partition(".")[0] != "numpy":
        return False
    if is_a(value, numpy.dtype):
        return bool(value.isbuiltin == 1)
    name = getattr(value, "__name__", "")
    return any(getattr(place, name, None) is value for place in (numpy, numpy.linalg, numpy.fft))


def describe(value: Any) -> Named:
    """A short name for any object, made without running user code and without addresses."""
    return Named(_described(value))


def _described(value: Any) -> str:
    cls = type(value)
    if is_a(value, type):
        module, name = (
            type.__dict__["__module__"].__get__(value),
            type.__dict__["__qualname__"].__get__(value),
        )
        return name if module == "builtins" else f"{module}.{name}"
    if is_a(value, enum.Enum):
        member = (instance_dict(value) or {}).get("_name_")
        return f"{cls.__name__}.{member}"
    if cls is types.FunctionType:
        where = f"{value.__code__.co_filename}:{value.__code__.co_firstlineno}"
        return f"function {value.__qualname__} ({where})"
    if cls is types.CodeType:
        return f"{value.co_qualname} ({value.co_filename}:{value.co_firstlineno})"
    if cls is types.BuiltinFunctionType or cls in DESCRIPTORS:
        return str(value.__name__)
    if cls is types.ModuleType:
        return f"module {(instance_dict(value) or {}).get('__name__')}"
    if is_constant(value):
        return repr(value)
    return f"{cls.__qualname__} object"


def plain(value: Any) -> Any:
    """The value if it is a constant, else a description of it."""
    return value if value is ABSENT or is_constant(value) else describe(value)


def is_made_anew(function: types.FunctionType) -> bool:
    """Whether running the code around a function makes it again: a closure, a lambda, a function inside of another.

    Such functions are told apart by their code, others by identity.
    """
    return (
        bool(function.__closure__) or "<locals>" in function.__qualname__ or function.__name__ == "<lambda>"
    )
