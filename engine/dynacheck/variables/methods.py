"""Objects of builtin types: how their methods and attributes are found, called and worded when misused."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from types import BuiltinMethodType, FunctionType, MappingProxyType, MethodWrapperType, WrapperDescriptorType
from typing import Any, ClassVar, Final, NoReturn

from dynacheck.sources import ABSENT, Node, instance_dict, type_lookup
from dynacheck.variables.base import (
    NOT_IMPLEMENTED,
    CantRebuild,
    ObservedException,
    Rebuilder,
    Tracer,
    VariableTracker,
)
from dynacheck.versions import PY314

BINARY_DUNDERS: Final = MappingProxyType(
    {
        "add": "+",
        "sub": "-",
        "mul": "*",
        "truediv": "/",
        "floordiv": "//",
        "mod": "%",
        "pow": "**",
        "matmul": "@",
        "lshift": "<<",
        "rshift": ">>",
        "and": "&",
        "or": "|",
        "xor": "^",
        "divmod": "divmod",
    }
)
"""Operators by the middle of their special methods' names."""

COMPARE_DUNDERS: Final = MappingProxyType(
    {"__lt__": "<", "__le__": "<=", "__eq__": "==", "__ne__": "!=", "__gt__": ">", "__ge__": ">="}
)

UNARY_DUNDERS: Final = MappingProxyType(
    {
        "__neg__": "-",
        "__pos__": "+",
        "__invert__": "~",
        "__abs__": "abs",
        "__int__": "int",
        "__float__": "float",
        "__index__": "index",
        "__complex__": "complex",
    }
)


def bound_type(owner: VariableTracker, name: str) -> type:
    """The type of a method of C code, bound to `owner`."""
    raw = type_lookup(owner.get_type(), name)
    return MethodWrapperType if isinstance(raw, WrapperDescriptorType) else BuiltinMethodType


class BuiltinMethodVariable(VariableTracker):
    """A builtin method bound to a tracker. Invariant: `owner` has `call_method(tx, name, args, kwargs)`."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: VariableTracker, name: str, node: Node | None = None) -> None:
        super().__init__(node)
        self.owner = owner
        self.name = name

    def get_type(self) -> type:
        return bound_type(self.owner, self.name)

    def describe(self) -> str:
        return f"the method {self.name!r} of {self.owner.describe()}"

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        owner: Any = self.owner
        result: VariableTracker = owner.call_method(tx, self.name, args, kwargs)
        return result

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name == "__self__":
            return self.owner
        if name in ("__name__", "__qualname__"):
            kind = self.owner.get_type().__name__
            return tx.constant(self.name if name == "__name__" else f"{kind}.{self.name}")
        if not hasattr(self.get_type(), name):
            tx.raise_(AttributeError, f"'{self.get_type().__name__}' object has no attribute {name!r}")
        if name in ("__objclass__", "__doc__"):
            raw = type_lookup(self.owner.get_type(), self.name)
            return tx.object(getattr(raw, name))
        return super().tp_getattro(tx, name)

    def nb_bool(self, tx: Tracer) -> bool:
        return True

    def hash_key(self, tx: Tracer) -> Any:
        return (BuiltinMethodVariable, self.owner, self.name)

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        if op not in ("==", "!=") or not isinstance(other, BuiltinMethodVariable):
            return NOT_IMPLEMENTED
        same = self.name == other.name and self.owner.realize(tx) is other.owner.realize(tx)
        return tx.constant(same is (op == "=="))

    def reconstruct(self, to: Rebuilder) -> None:
        to.load(self.owner)
        to.load_attr(self.name)
        to.remember(self)

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.owner,)


@cache
def _arity(function: Callable[..., Any]) -> tuple[int, float, frozenset[str], bool]:
    """Of a method `(self, tx, ...)`: least and most positional arguments, keywords, whether it takes any."""
    least, most, names, any_name = 0, 0.0, set(), False
    for parameter in list(inspect.signature(function).parameters.values())[2:]:
        if parameter.kind is parameter.VAR_POSITIONAL:
            most = float("inf")
        elif parameter.kind is parameter.VAR_KEYWORD:
            any_name = True
        else:
            if parameter.kind is not parameter.KEYWORD_ONLY:
                most += 1
                least += parameter.default is parameter.empty
            if parameter.kind is not parameter.POSITIONAL_ONLY:
                names.add(parameter.name)
    return least, most, frozenset(names), any_name


def accepts(method: Any, args: list[VariableTracker], kwargs: dict[str, VariableTracker]) -> bool:
    """Whether a bound method `(tx, ...)` can be called with these arguments."""
    least, most, names, any_name = _arity(method.__func__)
    if not any_name and not names.issuperset(kwargs):
        return False
    return least - len(kwargs) <= len(args) <= most and (bool(kwargs) or len(args) >= least)


def _slot(name: str) -> Callable[..., VariableTracker] | None:
    """The slot behind a special method, as a function of (self, tx, *arguments)."""
    if name in COMPARE_DUNDERS:
        op = COMPARE_DUNDERS[name]
        return lambda self, tx, other: _or_not_implemented(tx, self.tp_richcompare(tx, op, other.realize(tx)))
    if name in UNARY_DUNDERS:
        return lambda self, tx: self.nb_unary(tx, UNARY_DUNDERS[name])
    middle = name[2:-2]
    if middle in BINARY_DUNDERS:
        op = BINARY_DUNDERS[middle]
        return lambda self, tx, o: _or_not_implemented(tx, self.nb_binary(tx, op, self, o.realize(tx)))
    if middle[:1] == "r" and middle[1:] in BINARY_DUNDERS:
        op = BINARY_DUNDERS[middle[1:]]
        return lambda self, tx, o: _or_not_implemented(tx, self.nb_binary(tx, op, o.realize(tx), self))
    if middle[:1] == "i" and middle[1:] in BINARY_DUNDERS:
        op = BINARY_DUNDERS[middle[1:]]
        return lambda self, tx, o: _or_not_implemented(tx, self.nb_inplace(tx, op, o.realize(tx)))
    return _OTHER_SLOTS.get(name)


def _or_not_implemented(tx: Tracer, value: VariableTracker | object) -> VariableTracker:
    return value if isinstance(value, VariableTracker) else tx.constant(NotImplemented)


def _next(self: VariableTracker, tx: Tracer) -> VariableTracker:
    item = self.tp_iternext(tx)
    if item is None:
        tx.raise_(StopIteration)
    return item


def _store(
    self: VariableTracker, tx: Tracer, key: VariableTracker, value: VariableTracker
) -> VariableTracker:
    self.mp_ass_subscript(tx, key, value)
    return tx.constant(None)


def _delete(self: VariableTracker, tx: Tracer, key: VariableTracker) -> VariableTracker:
    self.mp_ass_subscript(tx, key, None)
    return tx.constant(None)


def _getattribute(self: VariableTracker, tx: Tracer, name: VariableTracker) -> VariableTracker:
    return self.tp_getattro(tx, name.realize(tx).as_constant(tx))


def _format(self: VariableTracker, tx: Tracer, spec: VariableTracker) -> VariableTracker:
    return self.tp_format(tx, spec.realize(tx).as_constant(tx))


_OTHER_SLOTS: Final[dict[str, Callable[..., VariableTracker]]] = {
    "__len__": lambda self, tx: self.sq_length(tx),
    "__bool__": lambda self, tx: tx.constant(self.nb_bool(tx)),
    "__getitem__": lambda self, tx, key: self.mp_subscript(tx, key),
    "__setitem__": _store,
    "__delitem__": _delete,
    "__contains__": lambda self, tx, item: self.sq_contains(tx, item),
    "__iter__": lambda self, tx: self.tp_iter(tx),
    "__next__": _next,
    "__hash__": lambda self, tx: tx.constant(hash(self.hash_key(tx))),
    "__repr__": lambda self, tx: self.tp_repr(tx),
    "__str__": lambda self, tx: self.tp_str(tx),
    "__format__": _format,
    "__getattribute__": _getattribute,
}


class BuiltinObject(VariableTracker):
    """An object of a builtin type: methods are `m_<name>`, data attributes `a_<name>`, the rest its slots."""

    __slots__ = ()
    writable: ClassVar[tuple[str, ...]] = ()
    """Data attributes that can be written."""

    def sample(self) -> Any:
        """An empty object of the type; misuse is tried on it for CPython's wording of the error."""
        return self.get_type()()

    @property
    def keeper(self) -> VariableTracker:
        """The tracker whose write-back brings the real object to these contents."""
        return self

    def changing(self, tx: Tracer) -> None:
        """Called before the contents change."""
        tx.mutated(self)

    def fill(self, to: Rebuilder, owner: VariableTracker) -> None:
        """Emit code that gives `owner`, an empty object of a subclass, these contents."""
        raise CantRebuild(self.describe())

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        data = getattr(self, "a_" + name, None)
        if data is not None:
            value: VariableTracker = data(tx)
            return value
        cls = self.get_type()
        if name == "__class__":
            return tx.object(cls)
        found = type_lookup(cls, name)
        if found is ABSENT:
            if self.node is not None and instance_dict(
                self.node.peek()
            ):  # an OrderedDict may have attributes
                self.unmodelled(tx, f"the attribute {name!r}")
            tx.raise_(AttributeError, f"{cls.__name__!r} object has no attribute {name!r}")
        if found is None or isinstance(found, (str, tuple)):
            return tx.constant(found)
        return BuiltinMethodVariable(self, name)

    def tp_setattro(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        cls = self.get_type()
        if name in self.writable:
            self.unmodelled(tx, f"writing the attribute {name!r}")
        if type_lookup(cls, name) is ABSENT:
            if cls.__dictoffset__:
                self.unmodelled(tx, f"the attribute {name!r}")
            tx.raise_(AttributeError, f"{cls.__name__!r} object has no attribute {name!r}")
        if getattr(self, "a_" + name, None) is not None:
            tx.raise_(AttributeError, "readonly attribute")
        tx.raise_(AttributeError, f"{cls.__name__!r} object attribute {name!r} is read-only")

    def call_method(
        self, tx: Tracer, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """Call a method by name; wrong arguments raise what CPython raises."""
        method: Any = getattr(self, "m_" + name, None)
        if method is not None:
            if not accepts(method, args, kwargs):
                self.misuse(tx, name, args, kwargs)
            result: VariableTracker | None = method(tx, *args, **kwargs)
            return tx.constant(None) if result is None else result
        slot = _slot(name)
        if slot is None or kwargs or type_lookup(self.get_type(), name) is ABSENT:
            self.unmodelled(tx, method=repr(name))
        if slot.__code__.co_flags & 4 == 0 and slot.__code__.co_argcount != len(args) + 2:
            self.misuse(tx, name, args, kwargs)
        return slot(self, tx, *args)

    def misuse(
        self, tx: Tracer, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> NoReturn:
        """Raise the TypeError of a call with wrong arguments."""
        try:
            getattr(self.sample(), name)(*[None] * len(args), **dict.fromkeys(kwargs))
        except Exception as error:
            if isinstance(error, TypeError):
                tx.raise_(TypeError, *error.args)
        self.unmodelled(tx, f"the method {name!r} with these arguments")

    def tp_format(self, tx: Tracer, spec: str) -> VariableTracker:
        if spec:
            name = self.get_type().__name__
            tx.raise_(TypeError, f"unsupported format string passed to {name}.__format__")
        return self.tp_str(tx)

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        tx.raise_(TypeError, f"{self.get_type().__name__!r} object is not callable")

    def nb_bool(self, tx: Tracer) -> bool:
        return bool(self.sq_length(tx).as_constant(tx))


HASHED: Final = "where what was hashed by identity comes from"
"""In a tracer's state, by node: other objects that are one would be one key."""


def kept_apart(tx: Tracer, value: VariableTracker, key: Any) -> Any:
    """The key; what comes from outside of the frame and has it for being the object it is, is kept apart from others."""
    made_anew = isinstance(key, FunctionType)  # perhaps: then its code alone is guarded
    for part in (value,) if key is value or made_anew else key if type(key) is tuple else ():
        if isinstance(part, VariableTracker) and part.node is not None:
            tx.state.setdefault(HASHED, {})[part.node] = None
    return key


def key_of(tx: Tracer, value: VariableTracker, role: str) -> Any:
    """The hash key of what is used as a dict key or a set element: since 3.14 the error of hashing it says as which."""
    value = value.realize(tx)
    if not PY314:
        return kept_apart(tx, value, value.hash_key(tx))
    try:
        return kept_apart(tx, value, value.hash_key(tx))
    except ObservedException as observed:
        if observed.exception.get_type() is not TypeError:
            raise
        why = observed.exception.tp_str(tx)
        if not why.is_constant():
            raise
        cls = value.get_type()
        module = "" if cls.__module__ in ("builtins", "__main__") else f"{cls.__module__}."
        shown = f"'{module}{cls.__qualname__}'"
    tx.raise_(TypeError, f"cannot use {shown} as a {role} ({why.as_constant(tx)})")


def unhashable(tx: Tracer, value: VariableTracker) -> NoReturn:
    """Raise the TypeError of hashing an unhashable object."""
    tx.raise_(TypeError, f"unhashable type: {value.get_type().__name__!r}")
