"""Objects of user classes: attribute lookup as CPython does it."""

from __future__ import annotations

import collections
import contextlib
import sys
import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dynacheck.guards import Is
from dynacheck.reasons import UNKNOWN_ATTRIBUTE, UNKNOWN_OPERATION
from dynacheck.sources import ABSENT, CAttr, DictAttr, Node, SlotAttr, TypeAttr, instance_dict, type_lookup
from dynacheck.variables import abstract, class_writes, inherited
from dynacheck.variables.base import NOT_IMPLEMENTED, ObservedException, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.class_facts import hashed_fields, is_data_descriptor
from dynacheck.variables.coerce import integer
from dynacheck.variables.functions import C_METHODS, BoundMethodVariable, ObjectMethodVariable
from dynacheck.variables.methods import BuiltinObject
from dynacheck.variables.tensor import Overloaded

BINARY = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul",
    "<<": "lshift", ">>": "rshift", "&": "and", "|": "or", "^": "xor", "divmod": "divmod",
}  # fmt: skip
COMPARE = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}
UNARY = {
    "-": "neg",
    "+": "pos",
    "~": "invert",
    "abs": "abs",
    "int": "int",
    "float": "float",
    "index": "index",
    "complex": "complex",
}


FIELD_OF_NAMED_TUPLE = type(collections.namedtuple("_One", "field").field)  # type: ignore[attr-defined]
CONVERSIONS: dict[str, type] = {"int": int, "index": int, "float": float, "complex": complex}
"""What a conversion's special method must return."""


READ_BY_METHODS = ("__getitem__", "__contains__", "__missing__")


def set_attribute(obj: object, name: str, value: object) -> None:
    """Store an attribute by `object`'s own rule (used by rewritten code)."""
    object.__setattr__(obj, name, value)


def set_in_dict(obj: Any, name: str, value: object) -> None:
    """Store into an object's dict, past a descriptor of that name (used by rewritten code)."""
    obj.__dict__[name] = value


def delete_attribute(obj: object, name: str) -> None:
    """Remove an attribute from an object's dict or slots, if it is there (used by rewritten code)."""
    attributes = instance_dict(obj)
    if attributes is not None and name in attributes:
        del attributes[name]
        return
    raw = type_lookup(type(obj), name)
    if isinstance(raw, types.MemberDescriptorType):
        with contextlib.suppress(AttributeError):
            raw.__delete__(obj)


def _assign(raw: property, obj: object) -> None:
    raw.__set__(obj, None)


def refusal(raw: property, cls: type, use: Callable[[object], object]) -> str:
    """What a property without the function that is asked for says, tried on an object of a class of that name."""
    obj = type(cls.__name__, (), {"__qualname__": cls.__qualname__})()
    try:
        use(obj)
    except AttributeError as error:
        return str(error)
    raise AssertionError(f"{raw!r} has the function")


def _length(tx: Tracer, found: VariableTracker) -> VariableTracker:
    """What `len()` makes of a `__len__`'s result (`slot_sq_length`)."""
    real = found.realize(tx)
    if hasattr(real, "sym"):
        return real
    length = integer(tx, real)
    if length < 0:
        tx.raise_(ValueError, "__len__() should return >= 0")
    if length > sys.maxsize:
        tx.raise_(OverflowError, "cannot fit 'int' into an index-sized integer")
    return tx.constant(length)


def _text(tx: Tracer, found: VariableTracker, complaint: str) -> VariableTracker:
    """The result of a special method that has to give a string."""
    kind = found.realize(tx).get_type()
    if not issubclass(kind, str):
        tx.raise_(TypeError, complaint.format(kind.__name__))
    return found


class UserObjectVariable(VariableTracker):
    """An object of a class written in Python.

    Invariant: a sourced object's exact type is guarded. `attrs` holds what the frame stored (None: deleted); everything
    else is read from the object through its node. `base` is the tracker of a builtin base's data (dict, list, tuple).
    """

    __slots__ = ("attrs", "base", "cls", "dictionary", "own_dict", "remade", "value")

    def __init__(
        self, cls: type, value: Any = None, node: Node | None = None, base: BuiltinObject | None = None
    ) -> None:
        super().__init__(node)
        self.cls = cls
        self.value = value
        self.base = base
        self.attrs: dict[str, VariableTracker | None] = {}
        self.remade: frozenset[str] = frozenset()
        self.dictionary: VariableTracker | None = None
        self.own_dict = False  # whether its `__dict__` is the object itself: attributes are items

    def get_type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return self.node.user_path if self.node is not None else f"a {self.cls.__qualname__} object"

    # -- attributes
    def class_attribute(self, tx: Tracer, name: str) -> tuple[object, Node]:
        """The raw class attribute and its node (the raw value is ABSENT when the class has none)."""
        node = tx.class_node(self.cls).named(TypeAttr, name)
        return type_lookup(self.cls, name), node

    def guard_builtin(self, tx: Tracer, raw: object, node: Node) -> None:
        """Assume that the class keeps having no method of its own there: none at all, or that of C code."""
        if raw is ABSENT:
            tx.guard_absent(node)
        elif isinstance(raw, C_METHODS):
            tx.guard(node, Is(raw))

    def override(self, tx: Tracer, hook: str) -> VariableTracker | None:
        """What the class has in place of its base's own rule for reading or writing attributes, bound to the object."""
        raw, node = self.class_attribute(tx, hook)
        if raw is ABSENT or (isinstance(raw, types.WrapperDescriptorType) and raw.__name__ == hook):
            self.guard_builtin(tx, raw, node)
            return None
        if isinstance(raw, C_METHODS):  # `__getattr__ = dict.__getitem__`: as torch
            (tx.give_up if "get" in hook else tx.break_)(UNKNOWN_ATTRIBUTE, name=hook, what=self.describe())
        return self.bind(tx, hook, raw, node)

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        """`__getattribute__`, and `__getattr__` where that raises AttributeError (`slot_tp_getattr_hook`)."""
        try:
            custom = self.override(tx, "__getattribute__")
            return self.generic_getattr(tx, name) if custom is None else tx.call(custom, [tx.constant(name)])
        except ObservedException as observed:
            raw, node = self.class_attribute(tx, "__getattr__")
            self.guard_builtin(tx, raw, node)
            if raw is ABSENT or not abstract.raised(observed, AttributeError):
                raise
        return self.fallback(tx, name)

    def fallback(self, tx: Tracer, name: str) -> VariableTracker:
        """What the class's `__getattr__` gives."""
        method = self.override(tx, "__getattr__")
        assert method is not None
        try:
            return tx.call(method, [tx.constant(name)])
        except ObservedException:
            if self.node is not None:
                self.node.name_missing(name)
            raise

    def generic_getattr(self, tx: Tracer, name: str) -> VariableTracker:
        """`object.__getattribute__`."""
        raw, node = self.class_attribute(tx, name)
        stored = class_writes.stored(tx, self.cls, name)
        if stored is None and is_data_descriptor(raw) and type_lookup(type(raw), "__get__") is not ABSENT:
            return self.data_descriptor(tx, name, raw, node)
        found = self.instance_attribute(tx, name)
        if found is not None:
            if raw is ABSENT:  # a descriptor would come first
                tx.guard_absent(node)
            else:
                inherited.stays_behind(tx, raw, node)
            return found
        if stored is not None:
            return class_writes.bound(tx, stored, self, name)
        if raw is not ABSENT:
            return self.bind(tx, name, raw, node)
        return self.missing_attribute(tx, name, node)

    def instance_attribute(self, tx: Tracer, name: str) -> VariableTracker | None:
        """What the instance dict has; None, with a guard, when it has nothing."""
        if self.own_dict:
            return inherited.item(tx, self, name)
        if name in self.attrs:
            return self.attrs[name]
        attributes = None if self.node is None else instance_dict(self.value)
        if attributes is None or self.node is None:
            return None
        child = self.dict_node(name)
        if name in attributes:
            return tx.wrap(child)
        tx.guard_absent(child)
        return None

    def dict_node(self, name: Any) -> Node:
        """What the instance dict has under a name; read from the dict itself where an attribute is something else."""
        assert self.node is not None
        custom = isinstance(type_lookup(self.cls, "__getattribute__"), types.FunctionType)
        if custom or not isinstance(name, str) or is_data_descriptor(type_lookup(self.cls, name)):
            return self.node.child(CAttr("__dict__")).key(name)
        return self.node.named(DictAttr, name)

    def missing_attribute(self, tx: Tracer, name: str, node: Node) -> VariableTracker:
        """Neither the object nor its class has it: AttributeError."""
        tx.guard_absent(node)
        tx.raise_(AttributeError, f"{abstract.type_name(self.cls)!r} object has no attribute {name!r}")

    def data_descriptor(self, tx: Tracer, name: str, raw: object, node: Node) -> VariableTracker:
        """The value a data descriptor of the class gives."""
        if isinstance(raw, property):
            if raw.fget is None:
                tx.raise_(AttributeError, refusal(raw, self.cls, lambda obj: raw.__get__(obj)))
            return tx.call(tx.property_getter(node, raw), [self])
        if name == "__dict__" and not isinstance(type_lookup(type(raw), "__get__"), types.FunctionType):
            return tx.instance_dict(self)
        if (
            self.base is not None
            and isinstance(raw, (types.MemberDescriptorType, types.GetSetDescriptorType))
            and raw.__objclass__ is self.base.get_type()
        ):
            return self.base.tp_getattro(tx, name)  # `default_factory`, `maxlen`
        if isinstance(raw, types.MemberDescriptorType):
            found = self.slot(tx, name)
            if found is None:
                tx.raise_(AttributeError, f"{self.cls.__name__!r} object has no attribute {name!r}")
            return found
        if name == "__class__":
            return tx.class_of(self)
        if (
            isinstance(raw, FIELD_OF_NAMED_TUPLE) and self.base is not None
        ):  # past a `__getitem__` of the class
            return self.base.mp_subscript(tx, tx.constant(raw.__reduce__()[1][0]))
        got = self._python_get(tx, raw, node)
        if got is not None:
            return got
        tx.break_(UNKNOWN_ATTRIBUTE, name=name, what=self.describe())

    def _python_get(self, tx: Tracer, raw: object, node: Node) -> VariableTracker | None:
        """What a descriptor written in Python gives; None for another object."""
        if not isinstance(type_lookup(type(raw), "__get__"), types.FunctionType):
            return None
        get = tx.wrap(tx.class_node(type(raw)).child(TypeAttr("__get__")))
        return tx.call(get, [tx.wrap(node), self, tx.class_of(self)])

    def slot(self, tx: Tracer, name: str) -> VariableTracker | None:
        """What a slot holds; None, with a guard, when it is empty."""
        if name in self.attrs:
            return self.attrs[name]
        if self.node is None:
            return None
        child = self.node.child(SlotAttr(name))
        if child.peek() is not ABSENT:
            return tx.wrap(child)
        tx.guard_absent(child)
        return None

    def bind(self, tx: Tracer, name: str, raw: object, node: Node) -> VariableTracker:
        """What a non-data class attribute gives through an instance."""
        if isinstance(raw, types.FunctionType):
            return BoundMethodVariable(tx.wrap(node), self)
        if isinstance(raw, staticmethod):
            return tx.unwrap_method(node, raw)
        if isinstance(raw, classmethod):
            return BoundMethodVariable(tx.unwrap_method(node, raw), tx.class_of(self))
        if isinstance(raw, (*C_METHODS, types.BuiltinFunctionType)):
            if isinstance(raw, types.BuiltinFunctionType):
                return tx.wrap(node)
            another = raw.__name__ != name  # `__setattr__ = dict.__setitem__`
            return BoundMethodVariable(tx.object(raw), self) if another else ObjectMethodVariable(self, name)
        got = self._python_get(tx, raw, node)
        if got is not None:
            return got
        if type_lookup(type(raw), "__get__") is not ABSENT:
            return tx.bind_object(self, name, raw, node)
        return tx.wrap(node.asked_of(self.node))

    def tp_setattro(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        custom = self.override(tx, "__setattr__" if value is not None else "__delattr__")
        if custom is None:
            return self.generic_setattr(tx, name, value)
        tx.call(custom, [tx.constant(name), *([] if value is None else [value])])

    def generic_setattr(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        """`object.__setattr__` (or `__delattr__` when value is None)."""
        raw, node = self.class_attribute(tx, name)
        if raw is not ABSENT and is_data_descriptor(raw) and not isinstance(raw, types.MemberDescriptorType):
            if isinstance(raw, property):
                accessor = raw.fset if value is not None else raw.fdel
                if accessor is None:
                    refused = raw.__delete__ if value is None else partial(_assign, raw)
                    tx.raise_(AttributeError, refusal(raw, self.cls, refused))
                setter = tx.property_setter(node, raw, "fset" if value is not None else "fdel")
                tx.call(setter, [self] + ([] if value is None else [value]))
                return
            hook = "__delete__" if value is None else "__set__"
            if isinstance(type_lookup(type(raw), hook), types.FunctionType):
                method = tx.wrap(tx.class_node(type(raw)).child(TypeAttr(hook)))
                tx.call(method, [tx.wrap(node), self, *([] if value is None else [value])])
                return
            tx.break_(UNKNOWN_OPERATION, operation=f"writing the attribute {name!r}", what=self.describe())
        if isinstance(raw, types.MemberDescriptorType) and "__slots__" not in raw.__objclass__.__dict__:
            self.unmodelled(tx, f"writing the attribute {name!r}")  # C code's, which may refuse it
        if self.cls.__dictoffset__ == 0 and self.in_dict(name):
            lacks = (
                f"object has no attribute {name!r}"
                if raw is ABSENT
                else f"object attribute {name!r} is read-only"
            )
            tx.raise_(AttributeError, f"{self.cls.__name__!r} {lacks}")
        if value is None and isinstance(raw, types.MemberDescriptorType):
            if self.slot(tx, name) is None:
                tx.raise_(AttributeError, name)
        elif value is None and self.instance_attribute(tx, name) is None:
            tx.raise_(AttributeError, f"{abstract.type_name(self.cls)!r} object has no attribute {name!r}")
        self.store_attribute(tx, name, value)

    def store_attribute(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        """Put a value where instance attributes are kept, or remove it (None)."""
        if self.own_dict and self.in_dict(name):
            return inherited.set_item(tx, self, name, value)
        if name in self.attrs and self.attrs[name] is None:  # deleted before: the new one comes last
            del self.attrs[name]
            self.remade |= {name}
        self.attrs[name] = value
        if value is None and self.node is None:
            del self.attrs[name]
        tx.mutated(self)

    def in_dict(self, name: str) -> bool:
        """Whether an instance attribute of that name is kept in the instance dict rather than in a slot."""
        return not isinstance(type_lookup(self.cls, name), types.MemberDescriptorType)

    # -- slots that a class may define
    def method(self, tx: Tracer, name: str) -> VariableTracker | None:
        """A special method looked up on the type, bound to the object; None when the type has none."""
        raw, node = self.class_attribute(tx, name)
        self.guard_builtin(tx, raw, node)
        if raw is ABSENT or raw is None:
            return None
        if isinstance(raw, types.FunctionType):
            return BoundMethodVariable(tx.wrap(node), self)
        if isinstance(raw, types.WrapperDescriptorType) and raw.__name__ == name:
            return None  # the builtin base's or object's own
        if isinstance(raw, types.MethodDescriptorType) and name in READ_BY_METHODS:
            return None  # dict's own, which CPython has as methods too
        return self.bind(tx, name, raw, node)

    def _slot(self, tx: Tracer, name: str, *args: VariableTracker) -> VariableTracker | None:
        method = self.method(tx, name)
        if method is not None:
            return tx.call(method, list(args))
        raw = type_lookup(self.cls, name)
        if raw is None:  # blocked
            tx.raise_(TypeError, "'NoneType' object is not callable")
        if self.base is None and getattr(raw, "__objclass__", object) is not object:
            self.unmodelled(tx, name)  # C code of a class that has no tracker of its own
        return None

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        method = self.method(tx, "__call__")
        if method is None:
            if type_lookup(self.cls, "__call__") is ABSENT:
                tx.raise_(TypeError, f"{self.cls.__name__!r} object is not callable")
            return tx.call_named_method(self, "__call__", args, kwargs)
        return tx.call(method, args, kwargs)

    def tp_iter(self, tx: Tracer) -> VariableTracker:
        found = self._slot(tx, "__iter__")
        if found is not None:
            return found
        if self.base is not None:
            return self.base.tp_iter(tx)
        if self.method(tx, "__getitem__") is not None:
            return tx.sequence_iterator(self)
        tx.raise_(TypeError, f"{self.cls.__name__!r} object is not iterable")

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        method = self.method(tx, "__next__")
        if method is None:
            if type_lookup(self.cls, "__next__") is not ABSENT:
                self.unmodelled(tx, "__next__")
            tx.raise_(TypeError, f"{self.cls.__name__!r} object is not an iterator")
        return tx.call_next(method)

    def nb_bool(self, tx: Tracer) -> bool:
        found = self._slot(tx, "__bool__")
        if found is not None:
            kind = found.realize(tx).get_type()
            if kind is not bool:
                tx.raise_(TypeError, f"__bool__ should return bool, returned {kind.__name__}")
            return found.realize(tx).nb_bool(tx)
        found = self._slot(tx, "__len__")
        if found is not None:
            return _length(tx, found).nb_bool(tx)
        return True if self.base is None else self.base.nb_bool(tx)

    def sq_length(self, tx: Tracer) -> VariableTracker:
        found = self._slot(tx, "__len__")
        if found is not None:
            return _length(tx, found)
        if self.base is not None:
            return self.base.sq_length(tx)
        tx.raise_(TypeError, f"object of type {self.cls.__name__!r} has no len()")

    def mp_subscript(self, tx: Tracer, key: VariableTracker) -> VariableTracker:
        found = self._slot(tx, "__getitem__", key)
        if found is not None:
            return found
        if self.base is not None:
            return self.base_item(tx, key)
        tx.raise_(TypeError, f"{self.cls.__name__!r} object is not subscriptable")

    def base_item(self, tx: Tracer, key: VariableTracker) -> VariableTracker:
        """The builtin base's `__getitem__`; a dict asks the class's `__missing__`."""
        assert self.base is not None
        lookup = getattr(self.base, "lookup", None)
        if lookup is None or type_lookup(self.cls, "__missing__") is ABSENT:
            return self.base.mp_subscript(tx, key)
        found: VariableTracker | None = lookup(tx, key)
        if found is None and isinstance(type_lookup(self.cls, "__missing__"), types.FunctionType):
            return tx.call(self.tp_getattro(tx, "__missing__"), [key])
        return tx.call_named_method(self, "__missing__", [key], {}) if found is None else found

    def mp_ass_subscript(self, tx: Tracer, key: VariableTracker, value: VariableTracker | None) -> None:
        args = [key] if value is None else [key, value]
        if self._slot(tx, "__delitem__" if value is None else "__setitem__", *args) is not None:
            return
        if self.base is not None:
            self.base.mp_ass_subscript(tx, key, value)
            return
        what = "deletion" if value is None else "assignment"
        tx.raise_(TypeError, f"{self.cls.__name__!r} object does not support item {what}")

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker:
        found = self._slot(tx, "__contains__", item)
        if found is not None:
            return tx.constant(tx.truth(found))
        if self.base is not None:
            return self.base.sq_contains(tx, item)
        return tx.contains_by_iteration(self, item)

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        found = self._slot(tx, f"__{COMPARE[op]}__", other)
        if found is not None:
            return or_not_implemented(tx, found)
        if op == "!=" and type_lookup(self.cls, "__ne__") is object.__ne__:  # inverts __eq__
            equal = self._slot(tx, "__eq__", other)
            if equal is not None:
                result = or_not_implemented(tx, equal)
                return result if result is NOT_IMPLEMENTED else tx.constant(not tx.truth(equal))
        if self.base is not None:
            return self.base.tp_richcompare(tx, op, other)
        return NOT_IMPLEMENTED

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        if left is self:
            found = self._slot(tx, f"__{BINARY[op]}__", right)
        else:
            found = self._slot(tx, f"__r{BINARY[op]}__", left)
        if found is not None:
            return or_not_implemented(tx, found)
        return inherited.binary(tx, self, op, left, right)

    def nb_inplace(self, tx: Tracer, op: str, right: VariableTracker) -> VariableTracker | object:
        found = self._slot(tx, f"__i{BINARY[op]}__", right)
        return inherited.inplace(tx, self, op, right) if found is None else or_not_implemented(tx, found)

    def nb_unary(self, tx: Tracer, op: str) -> VariableTracker:
        found = self._slot(tx, f"__{UNARY[op]}__")
        if found is None:
            tx.raise_(TypeError, f"bad operand type for unary {op}: {self.cls.__name__!r}")
        wanted = CONVERSIONS.get(op)
        kind = found.realize(tx).get_type()
        if wanted is not None and not issubclass(kind, wanted):
            owner = f"{self.cls.__name__}." if op == "float" else ""
            tx.raise_(TypeError, f"{owner}__{op}__ returned non-{wanted.__name__} (type {kind.__name__})")
        if wanted is not None and found.realize(tx).is_constant() and kind is not wanted:
            self.unmodelled(tx, f"__{op}__ that returns a {kind.__name__}")  # with a DeprecationWarning
        return found

    def overloads(self, tx: Tracer) -> bool:
        """Whether torch's operations with it go to its class."""
        hook = type_lookup(self.cls, "__torch_function__")
        return isinstance(hook, (classmethod, staticmethod))

    def as_meta(self, tx: Tracer) -> Any:
        if self.overloads(tx):
            raise Overloaded
        return super().as_meta(tx)

    def hash_key(self, tx: Tracer) -> Any:
        raw = type_lookup(self.cls, "__hash__")
        if raw is None:
            tx.raise_(TypeError, f"unhashable type: {self.cls.__name__!r}")
        if isinstance(raw, types.FunctionType):
            names = hashed_fields(self.cls)
            if names is None:
                tx.break_(UNKNOWN_OPERATION, operation="hash()", what=self.describe())
            return (self.cls, *[self.tp_getattro(tx, name).realize(tx).hash_key(tx) for name in names])
        if self.base is not None and raw is not object.__hash__:
            return self.base.hash_key(tx)
        return self

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        found = self._slot(tx, "__repr__")
        if found is None and type_lookup(self.cls, "__repr__") is object.__repr__:
            return tx.call(tx.object(object.__repr__), [self])
        if found is None:
            tx.break_(UNKNOWN_OPERATION, operation="repr()", what=self.describe())
        return _text(tx, found, "__repr__ returned non-string (type {})")

    def tp_str(self, tx: Tracer) -> VariableTracker:
        found = self._slot(tx, "__str__")
        return (
            self.tp_repr(tx) if found is None else _text(tx, found, "__str__ returned non-string (type {})")
        )

    def tp_format(self, tx: Tracer, spec: str) -> VariableTracker:
        found = self._slot(tx, "__format__", tx.constant(spec))
        if found is not None:
            return _text(tx, found, "__format__ must return a str, not {}")
        if spec:
            tx.raise_(TypeError, f"unsupported format string passed to {self.cls.__name__}.__format__")
        return self.tp_str(tx)

    # -- rewritten code
    def children(self) -> Sequence[VariableTracker]:
        held = [v for v in self.attrs.values() if v is not None]
        return held if self.base is None else [*held, *self.base.children()]

    def _store_attributes(self, to: Rebuilder) -> None:
        for name, value in self.attrs.items():
            if value is None or name in self.remade:
                to.call_helper(delete_attribute, lambda: to.load(self), lambda: to.load_const(name))
                to.pop()
            if value is None:
                continue
            raw = type_lookup(self.cls, name)
            hidden = raw is not ABSENT and is_data_descriptor(raw) and self.in_dict(name)
            store = set_in_dict if hidden else set_attribute
            to.call_helper(store, lambda: to.load(self), lambda: to.load_const(name), lambda: to.load(value))
            to.pop()

    def reconstruct(self, to: Rebuilder) -> None:
        filled = inherited.emit_new(to, self)
        to.remember(self)
        if self.base is not None and not filled:
            self.base.fill(to, self)
        self._store_attributes(to)

    def base_type(self) -> type:
        """The builtin class whose `__new__` makes the object."""
        for cls in self.cls.__mro__:
            if not cls.__flags__ & (1 << 9):  # not a heap type
                return cls
        return object

    def write_back(self, to: Rebuilder) -> None:
        self._store_attributes(to)


def or_not_implemented(tx: Tracer, found: VariableTracker) -> VariableTracker | object:
    """What a special method returned, as a slot gives it."""
    real = found.realize(tx)
    if real.is_constant() and real.as_constant(tx) is NotImplemented:
        return NOT_IMPLEMENTED
    return real
