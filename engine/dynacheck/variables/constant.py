"""Constants: values of exact builtin types, whose operations are run for real while translating."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Mapping
from types import CodeType, EllipsisType, FunctionType, GetSetDescriptorType, NoneType, NotImplementedType
from typing import Any, Final

import torch

from dynacheck.guards import ValueIs
from dynacheck.guards.held import is_constant
from dynacheck.sources import ABSENT, Node, TypeAttr, is_a, type_lookup
from dynacheck.variables.base import (
    NOT_IMPLEMENTED,
    NotConstant,
    Rebuilder,
    Tracer,
    VariableTracker,
)
from dynacheck.variables.iterators import IndexIterator
from dynacheck.variables.members import bind_member
from dynacheck.variables.methods import BuiltinMethodVariable
from dynacheck.variables.results import fold, python_value, scalar
from dynacheck.variables.strings import format_method, join, percent

SCALAR_TYPES: Final[frozenset[type]] = frozenset(
    (NoneType, bool, int, float, complex, str, bytes, EllipsisType, NotImplementedType)
)
"""Exact types of plain constants."""

CONSTANT_TYPES: Final[frozenset[type]] = SCALAR_TYPES | {
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
    torch.qscheme,
    CodeType,
}
"""Exact types whose values are `ConstantVariable`s. Enum members are too."""

BINARY: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "@": operator.matmul,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "divmod": divmod,
}

COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}

UNARY: Final[Mapping[str, Callable[[Any], Any]]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "abs": abs,
    "int": int,
    "float": float,
    "index": operator.index,
    "complex": complex,
}

_UNARY_DUNDERS: Final = ("__neg__", "__pos__", "__invert__", "__abs__", "__int__", "__index__", "__float__")

_DUNDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "+": ("__add__", "__radd__"),
    "-": ("__sub__", "__rsub__"),
    "*": ("__mul__", "__rmul__"),
    "/": ("__truediv__", "__rtruediv__"),
    "//": ("__floordiv__", "__rfloordiv__"),
    "%": ("__mod__", "__rmod__"),
    "**": ("__pow__", "__rpow__"),
    "@": ("__matmul__", "__rmatmul__"),
    "<<": ("__lshift__", "__rlshift__"),
    ">>": ("__rshift__", "__rrshift__"),
    "&": ("__and__", "__rand__"),
    "|": ("__or__", "__ror__"),
    "^": ("__xor__", "__rxor__"),
    "divmod": ("__divmod__", "__rdivmod__"),
    "<": ("__lt__", "__gt__"),
    "<=": ("__le__", "__ge__"),
    "==": ("__eq__",),
    "!=": ("__ne__", "__eq__"),
    ">": ("__gt__", "__lt__"),
    ">=": ("__ge__", "__le__"),
}


def is_constant_value(value: object) -> bool:
    """Whether a value is one that `ConstantVariable` stands for.

    >>> is_constant_value(1.5), is_constant_value([])
    (True, False)
    """
    return type(value) in CONSTANT_TYPES or is_a(value, enum.Enum)


def _is_plain(value: object) -> bool:
    """Whether a value is a constant or a tuple of such."""
    return is_constant_value(value) or (type(value) is tuple and all(map(_is_plain, value)))


def runs_no_user_code(cls: type, *dunders: str) -> bool:
    """Whether the type's special methods are builtin ones (or the enum module's own).

    >>> runs_no_user_code(int, "__add__", "__radd__")
    True
    """
    if cls in CONSTANT_TYPES:
        return True
    for dunder in dunders:
        found = type_lookup(cls, dunder)
        if isinstance(found, FunctionType) and found.__module__ != "enum":
            return False
    return True


class ConstantVariable(VariableTracker):
    """A constant: its type is exact and builtin (or an enum), its value never changes.

    Invariant: a sourced constant was guarded by value when its lazy tracker was realized.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any, node: Node | None = None) -> None:
        super().__init__(node)
        self.value = value

    def get_type(self) -> type:
        return type(self.value)

    def describe(self) -> str:
        return self.node.user_path if self.node is not None else repr(self.value)

    def is_constant(self) -> bool:
        return True

    def as_constant(self, tx: Tracer) -> Any:
        return self.value

    def __repr__(self) -> str:
        return f"<ConstantVariable {self.value!r}>"

    # -- attributes and methods
    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        value = self.value
        if name == "__class__":
            return tx.object(type(value))
        found = type_lookup(type(value), name)
        if isinstance(value, enum.Enum):
            return self._enum_attribute(tx, name, found)
        if found is ABSENT:
            return fold(tx, getattr, value, name)  # the AttributeError, worded by CPython
        if callable(found) or isinstance(found, (staticmethod, classmethod)):
            return BuiltinMethodVariable(self, name)
        return fold(tx, getattr, value, name)

    def _enum_attribute(self, tx: Tracer, name: str, found: object) -> VariableTracker:
        """`name` and `value`, what a member was given, what its class defines; user code is interpreted."""
        value = self.value
        own_rule = isinstance(found, enum.property) and getattr(found.fget, "__module__", "enum") == "enum"
        if own_rule or (name in value.__dict__ and _is_plain(value.__dict__[name])):
            self._keeps(tx, f"_{name}_" if own_rule else name)
            return fold(tx, getattr, value, name)
        if name in value.__dict__:
            self.unmodelled(tx, f"the attribute {name!r}")
        if found is ABSENT:
            return fold(tx, getattr, value, name)
        member = type(value)._member_map_.get(name)
        if member is not None and getattr(found, "fget", None) is None:  # a getter of that name is asked
            return tx.object(member)
        bound = bind_member(tx, self, type(value), name, found)
        if bound is None and isinstance(
            found, GetSetDescriptorType
        ):  # of the builtin type that the enum mixes in
            return fold(tx, getattr, value, name)
        if bound is None and not callable(found):
            self.unmodelled(tx, f"the attribute {name!r}")
        return BuiltinMethodVariable(self, name) if bound is None else bound

    def _keeps(self, tx: Tracer, name: str) -> None:
        """Assume that a member of an enum keeps an attribute; what flags combine to isn't kept by its class."""
        value, kept = self.value, self.value.__dict__.get(name, ABSENT)
        if type(value)._member_map_.get(value._name_) is value and is_constant(kept):
            members = tx.class_node(type(value)).child(TypeAttr("_member_map_"))
            tx.guard(members.key(value._name_).attr(name), ValueIs(kept))

    def tp_setattro(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        if value is None:
            fold(tx, delattr, self.value, name)
        else:
            fold(tx, setattr, self.value, name, python_value(tx, value))

    def call_method(
        self, tx: Tracer, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """Run a builtin method of the constant for real."""
        if name == "join" and len(args) == 1 and isinstance(self.value, str):
            return join(tx, self.value, args[0])
        if isinstance(self.value, enum.Enum) and name[:2] != "__":
            self.unmodelled(tx, method=repr(name))  # of the builtin type that the enum mixes in
        if name == "format" and isinstance(self.value, str):
            return format_method(tx, self.value, args, kwargs)
        if self._breaks_as_torch(name, bool(args or kwargs)):
            self.unmodelled(tx, method=repr(name))
        try:
            values = [python_value(tx, a) for a in args]
            named = {k: python_value(tx, v) for k, v in kwargs.items()}
        except NotConstant:
            self.unmodelled(tx, method=f"{name!r} with arguments that aren't constants")
        if name == "__iter__" and not values and not named:
            return self.tp_iter(tx)
        return fold(tx, getattr(self.value, name), *values, **named)

    def _breaks_as_torch(self, name: str, takes: bool) -> bool:
        """Of bytes torch runs `decode` alone for real, of numbers only methods that take nothing or are operators, of
        dtypes none."""
        breaks = (
            name != "decode" if type(self.value) is bytes else takes and isinstance(self.value, (int, float))
        )
        breaks = breaks or isinstance(self.value, torch.dtype)
        return breaks and name[:2] != "__"

    # -- truth, length, items, iteration
    def nb_bool(self, tx: Tracer) -> bool:
        if not runs_no_user_code(type(self.value), "__bool__", "__len__"):
            self.unmodelled(tx, "a truth test")
        return bool(self.value)

    def sq_length(self, tx: Tracer) -> VariableTracker:
        return fold(tx, len, self.value)

    def mp_subscript(self, tx: Tracer, key: VariableTracker) -> VariableTracker:
        return fold(tx, operator.getitem, self.value, self._operand(tx, key, "indexing"))

    def mp_ass_subscript(self, tx: Tracer, key: VariableTracker, value: VariableTracker | None) -> None:
        name = type(self.value).__name__
        what = "doesn't support item deletion" if value is None else "does not support item assignment"
        tx.raise_(TypeError, f"{name!r} object {what}")

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker:
        return fold(tx, operator.contains, self.value, self._operand(tx, item, "`in`"))

    def tp_iter(self, tx: Tracer) -> VariableTracker:
        if type_lookup(type(self.value), "__iter__") is ABSENT:
            tx.raise_(TypeError, f"{type(self.value).__name__!r} object is not iterable")
        if isinstance(self.value, enum.Flag) and runs_no_user_code(type(self.value), "__iter__"):
            return tx.tuple_of([tx.object(member) for member in self.value]).tp_iter(tx)
        if type(self.value) not in SCALAR_TYPES:
            found = self._users_method(tx, "__iter__")
            if found is None and not isinstance(self.value, enum.Flag):
                self.unmodelled(tx, "iteration")
            return tx.constant(tuple(self.value)).tp_iter(tx) if found is None else found
        return IndexIterator(self, type(iter(self.value)))

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if type_lookup(type(self.value), "__call__") is ABSENT:
            tx.raise_(TypeError, f"{type(self.value).__name__!r} object is not callable")
        self.unmodelled(tx, "a call")

    def _operand(self, tx: Tracer, value: VariableTracker, operation: str) -> Any:
        try:
            return python_value(tx, value)
        except NotConstant:
            self.unmodelled(tx, operation)

    # -- operators
    def _pair(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> tuple[Any, Any] | None:
        """The two values, or None when an operand is of another family."""
        if not isinstance(left, ConstantVariable) or not isinstance(right, ConstantVariable):
            return None
        names = _DUNDERS[op]
        if not (runs_no_user_code(type(left.value), *names) and runs_no_user_code(type(right.value), *names)):
            self.unmodelled(tx, op)
        return left.value, right.value

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        found = self._users_method(tx, _DUNDERS[op][0], other)
        if found is not None:
            declined = found.is_constant() and found.as_constant(tx) is NotImplemented
            return NOT_IMPLEMENTED if declined else found
        if scalar(other) is not other:
            return own_operator(tx, self, op, other)
        pair = self._pair(tx, op, self, other)
        if pair is None and isinstance(self.value, tuple):  # an enum's member that is one
            return fold(tx, COMPARE[op], self.value, self._operand(tx, other, op))
        if pair is None:
            return NOT_IMPLEMENTED
        return fold(tx, COMPARE[op], *pair)

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        pair = self._pair(tx, op, left, right)
        if pair is not None:
            return fold(tx, BINARY[op], *pair)
        other = right if left is self else left
        symbol = getattr(other, "sym", None)
        if op == "*" and symbol is not None and isinstance(self.value, (str, bytes)):
            return fold(tx, operator.mul, self.value, tx.specialize(symbol))
        if op == "%" and left is self and isinstance(self.value, (str, bytes)):
            return percent(tx, self.value, right)
        if scalar(other) is not other:
            return own_operator(tx, self, op, other, reflected=left is not self)
        return NOT_IMPLEMENTED

    def nb_unary(self, tx: Tracer, op: str) -> VariableTracker:
        if not runs_no_user_code(
            type(self.value), "__neg__", "__pos__", "__invert__", "__abs__", "__int__", "__index__"
        ):
            self.unmodelled(tx, f"unary {op}")
        return fold(tx, UNARY[op], self.value)

    def hash_key(self, tx: Tracer) -> Any:
        if not runs_no_user_code(type(self.value), "__hash__", "__eq__"):
            self.unmodelled(tx, "hash()")
        return self.value

    def _users_method(self, tx: Tracer, name: str, *args: VariableTracker) -> VariableTracker | None:
        """Call a special method that an enum of the user defines; None when it defines none."""
        if runs_no_user_code(type(self.value), name):
            return None
        return tx.call(self.tp_getattro(tx, name), list(args))

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        found = self._users_method(tx, "__repr__")
        return fold(tx, repr, self.value) if found is None else found

    def tp_str(self, tx: Tracer) -> VariableTracker:
        found = self._users_method(tx, "__str__")
        if found is None and not runs_no_user_code(type(self.value), "__repr__"):
            self.unmodelled(tx, "str()")
        return fold(tx, str, self.value) if found is None else found

    def tp_format(self, tx: Tracer, spec: str) -> VariableTracker:
        found = self._users_method(tx, "__format__", tx.constant(spec))
        if found is None and not runs_no_user_code(type(self.value), "__repr__", "__str__"):
            if spec or type_lookup(type(self.value), "__format__") is not enum.Enum.__format__:
                self.unmodelled(tx, "formatting")
            return self.tp_str(tx)
        return fold(tx, format, self.value, spec) if found is None else found

    # -- rewritten code
    def reconstruct(self, to: Rebuilder) -> None:
        to.load_const(self.value)


def own_operator(
    tx: Tracer, value: ConstantVariable, op: str, other: VariableTracker, *, reflected: bool = False
) -> VariableTracker | object:
    """An operator of a constant's type alone, which takes an object of a subclass for the value that it holds."""
    operand = scalar(other)
    if not isinstance(operand, ConstantVariable):
        return value.nb_binary(tx, op, *((operand, value) if reflected else (value, operand)))
    names = _DUNDERS[op]
    method = getattr(value.value, names[1] if reflected else names[0], None)
    sequences = op == "+" and isinstance(value.value, (str, bytes))
    if method is None or (sequences and type(value.value) is not type(operand.value)):
        return NOT_IMPLEMENTED
    found = fold(tx, method, operand.value)
    declined = found.is_constant() and found.as_constant(tx) is NotImplemented
    return NOT_IMPLEMENTED if declined else found
