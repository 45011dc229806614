"""Classes, `super()` and Python modules: attribute lookup as CPython does it."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any, Final

from dynacheck.guards import Absent, Is, NotAbsent
from dynacheck.reasons import UNKNOWN_ATTRIBUTE
from dynacheck.sources import ABSENT, CAttr, DictAttr, Node, TypeAttr, instance_dict, type_lookup
from dynacheck.variables import abstract, class_writes
from dynacheck.variables.base import Rebuilder, Tracer, VariableTracker
from dynacheck.variables.class_facts import is_data_descriptor
from dynacheck.variables.functions import (
    BoundMethodVariable,
    CallableVariable,
    ObjectMethodVariable,
    ObjectVariable,
)
from dynacheck.variables.namespaces import ModuleNamespaceVariable, class_namespace
from dynacheck.variables.objects import (
    BINARY,
    COMPARE,
    delete_attribute,
    or_not_implemented,
    set_attribute,
)
from dynacheck.variables.proxies import MappingProxyVariable
from dynacheck.variables.results import fold
from dynacheck.variables.torch_names import NAMES, PUT_IN_GRAPHS, TorchNameVariable

_OF_TYPE: Final = tuple(
    f"__{n}__" for n in ("name", "qualname", "module", "doc", "mro", "bases", "base", "annotations", "flags")
)
"""Attributes of every class that are read from the class itself."""


_DESCRIPTORS_OF_C: Final = (
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
)


def set_class_attribute(cls: type, name: str, value: object) -> None:
    """Store a class attribute by `type`'s own rule (used by rewritten code)."""
    type.__setattr__(cls, name, value)


def delete_class_attribute(cls: type, name: str) -> None:
    """Remove an attribute from a class by `type`'s own rule, if it is there (used by rewritten code)."""
    if name in type.__dict__["__dict__"].__get__(cls):
        type.__delattr__(cls, name)


def keeps_making(tx: Tracer, cls: type) -> None:
    """Assume that objects of a class go on being made by C code: by `__call__` of its metaclass and `__new__`."""
    for owner, name in ((type(cls), "__call__"), (cls, "__new__")):
        raw = type_lookup(owner, name)
        if owner is not type and isinstance(raw, types.BuiltinFunctionType | types.WrapperDescriptorType):
            tx.guard(tx.class_node(owner).child(TypeAttr(name)), Is(raw))


class PythonModuleVariable(CallableVariable):
    """A Python module. Invariant: guarded by identity, or one of torch's or the standard library's."""

    __slots__ = ("attrs", "namespace", "value")
    python_type = types.ModuleType

    def __init__(self, value: types.ModuleType, node: Node | None = None) -> None:
        super().__init__(node)
        self.value = value
        self.attrs: dict[str, VariableTracker | None] = {}
        self.namespace: ModuleNamespaceVariable | None = None

    def describe(self) -> str:
        return f"module {(instance_dict(self.value) or {}).get('__name__')}"

    def hash_key(self, tx: Tracer) -> Any:
        return self.value

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name in self.attrs:
            found = self.attrs[name]
            if found is not None:
                return found
        elif name == "__dict__":
            if self.namespace is None:
                node = tx.root.module(self.value.__name__) if self.node is None else self.node
                self.namespace = ModuleNamespaceVariable(self, node)
            return self.namespace
        elif name in self.value.__dict__:
            if self.node is not None:
                return tx.wrap(self.node.child(DictAttr(name)))
            return tx.object(self.value.__dict__[name])
        elif hasattr(self.value, name):  # a lazy module's __getattr__
            getter = self.value.__dict__.get("__getattr__")
            if self.node is not None and isinstance(getter, types.FunctionType):
                tx.wrap(self.node.child(DictAttr("__getattr__"))).realize(tx)
            return tx.object(getattr(self.value, name))
        if self.node is not None:
            for missing in (name, "__getattr__") if "__getattr__" not in self.value.__dict__ else (name,):
                tx.guard_absent(self.node.child(DictAttr(missing)))
        own = (instance_dict(self.value) or {}).get("__name__")
        which = f"module {own!r}" if isinstance(own, str) else "module"
        tx.raise_(AttributeError, f"{which} has no attribute {name!r}")

    def tp_setattro(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        if value is None and not self._has(tx, name):
            fold(tx, delattr, self.value, name)  # the AttributeError, worded by CPython
        self.attrs[name] = value
        tx.mutated(self)

    def _has(self, tx: Tracer, name: str) -> bool:
        """Whether the module has an attribute to delete; that it has is assumed."""
        if name in self.attrs:
            return self.attrs[name] is not None
        there = name in self.value.__dict__
        if self.node is not None:
            tx.guard(self.node.named(DictAttr, name), NotAbsent() if there else Absent())
        return there

    def children(self) -> Sequence[VariableTracker]:
        return [v for v in self.attrs.values() if v is not None]

    def write_back(self, to: Rebuilder) -> None:
        for name, value in self.attrs.items():
            if value is None:
                to.call_helper(delete_attribute, lambda: to.load(self), lambda: to.load_const(name))
            else:
                to.call_helper(
                    set_attribute, lambda: to.load(self), lambda: to.load_const(name), lambda: to.load(value)
                )
            to.pop()

    def reconstruct(self, to: Rebuilder) -> None:
        to.load_module(self.value.__name__)


class ClassVariable(ObjectVariable):
    """A class written in Python (or any class of the user's). Invariant: guarded by identity."""

    __slots__ = ("attrs",)

    def __init__(self, value: type, node: Node | None = None) -> None:
        super().__init__(value, node)
        self.attrs: dict[str, VariableTracker | None] = {}

    def describe(self) -> str:
        return str(self.value.__qualname__)

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.call_class(self, args, kwargs)

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        cls = self.value
        stored = class_writes.stored(tx, cls, name)
        if stored is not None:
            return class_writes.bound(tx, stored, None, name)
        if name in NAMES and cls in PUT_IN_GRAPHS:
            return TorchNameVariable(getattr(cls, name))
        meta_raw = type_lookup(type(cls), name)
        if meta_raw is not ABSENT and is_data_descriptor(meta_raw):
            return self._meta_descriptor(tx, name, meta_raw)
        raw = type_lookup(cls, name)
        node = tx.class_node(cls).named(TypeAttr, name)
        if raw is not ABSENT:
            return self._bind(tx, name, raw, node)
        if meta_raw is not ABSENT:
            tx.guard_absent(node)
            return self._through_metaclass(tx, name, meta_raw)
        tx.guard_absent(node)
        tx.raise_(AttributeError, f"type object {cls.__name__!r} has no attribute {name!r}")

    def _through_metaclass(self, tx: Tracer, name: str, raw: object) -> VariableTracker:
        """What the metaclass has, and the class doesn't."""
        meta = type(self.value)
        stored = class_writes.stored(tx, meta, name)
        if stored is not None:
            return class_writes.bound(tx, stored, self, name)
        node = tx.class_node(meta).named(TypeAttr, name)
        if isinstance(raw, types.FunctionType):
            return BoundMethodVariable(tx.wrap(node), self)
        if isinstance(raw, staticmethod):
            return tx.unwrap_method(node, raw)
        if isinstance(raw, classmethod):
            return BoundMethodVariable(tx.unwrap_method(node, raw), tx.class_variable(meta))
        get = type_lookup(type(raw), "__get__")
        if get is ABSENT:
            return tx.wrap(node)
        if isinstance(get, types.FunctionType):
            method = tx.wrap(tx.class_node(type(raw)).child(TypeAttr("__get__")))
            return tx.call(method, [tx.wrap(node), self, tx.class_variable(meta)])
        return ObjectMethodVariable(self, name)

    def _meta_descriptor(self, tx: Tracer, name: str, raw: object) -> VariableTracker:
        if name in _OF_TYPE:
            return tx.wrap(tx.class_node(self.value).child(CAttr(name)))  # they may be set
        if name == "__class__":
            return tx.class_variable(type(self.value))
        if name == "__abstractmethods__":
            node = tx.class_node(self.value).child(CAttr(name))
            if node.peek() is not ABSENT:
                return tx.wrap(node)
            tx.guard_absent(node)
            tx.raise_(AttributeError, name)
        if name == "__dict__" and not class_writes.written(tx, self.value):
            return MappingProxyVariable(class_namespace(tx, self.value))
        if isinstance(raw, property):
            return tx.call(
                tx.property_getter(tx.class_node(type(self.value)).child(TypeAttr(name)), raw), [self]
            )
        tx.break_(UNKNOWN_ATTRIBUTE, name=name, what=self.describe())

    def _bind(self, tx: Tracer, name: str, raw: object, node: Node) -> VariableTracker:
        if isinstance(raw, types.FunctionType):
            return tx.wrap(node)
        if isinstance(raw, staticmethod):
            return tx.unwrap_method(node, raw)
        if isinstance(raw, classmethod):
            return BoundMethodVariable(tx.unwrap_method(node, raw), self)
        if isinstance(raw, (types.ClassMethodDescriptorType,)):
            return ObjectMethodVariable(self, name)
        if isinstance(
            raw,
            (*_DESCRIPTORS_OF_C, property),
        ):
            return tx.object(raw) if not isinstance(raw, property) else tx.wrap(node)
        getter = type_lookup(type(raw), "__get__")
        if isinstance(getter, types.FunctionType):
            call = tx.wrap(tx.class_node(type(raw)).child(TypeAttr("__get__")))
            return tx.call(call, [tx.wrap(node), tx.constant(None), self])
        return tx.wrap(node.asked_of(self.node))

    def tp_setattro(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        cls = self.value
        if self.node is None:
            super().tp_setattro(tx, name, value)
        meta = type(cls)
        hook = "__setattr__" if value is not None else "__delattr__"
        if isinstance(type_lookup(meta, hook), types.FunctionType):
            method = tx.wrap(tx.class_node(meta).child(TypeAttr(hook)))
            tx.call(method, [self, tx.constant(name), *([] if value is None else [value])])
            return
        self.type_setattr(tx, name, value)

    def type_setattr(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        """`type.__setattr__` (or `__delattr__` when value is None)."""
        cls = self.value
        if (
            cls.__module__.partition(".")[0] == "torch"
        ):  # as torch: what its own code counts isn't the frame's
            self.unmodelled(tx, f"writing the attribute {name!r}")
        raw = type_lookup(type(cls), name)
        if (raw is not ABSENT and is_data_descriptor(raw)) or (name[:2] == "__" and name[-2:] == "__"):
            tx.break_(UNKNOWN_ATTRIBUTE, name=name, what=self.describe())  # it changes what others do
        if value is None and not self._has(tx, name):
            tx.raise_(AttributeError, f"type object {cls.__name__!r} has no attribute {name!r}")
        self.attrs[name] = value
        class_writes.record(tx, cls, self.attrs)
        tx.mutated(self)

    def _has(self, tx: Tracer, name: str) -> bool:
        """Whether the class itself has an attribute to delete; that it has is assumed."""
        if name in self.attrs:
            return self.attrs[name] is not None
        return class_namespace(tx, self.value).lookup(tx, tx.constant(name)) is not None

    def _of_metaclass(self, tx: Tracer, name: str, other: VariableTracker) -> VariableTracker | None:
        """What a method written in Python of the class's own class gives."""
        meta = type(self.value)
        if not isinstance(type_lookup(meta, name), types.FunctionType):
            return None
        return tx.call(tx.wrap(tx.class_node(meta).child(TypeAttr(name))), [self, other])

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        found = self._of_metaclass(tx, f"__{COMPARE[op]}__", other)
        return super().tp_richcompare(tx, op, other) if found is None else or_not_implemented(tx, found)

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        mine = left is self
        found = self._of_metaclass(tx, f"__{'' if mine else 'r'}{BINARY[op]}__", right if mine else left)
        return super().nb_binary(tx, op, left, right) if found is None else or_not_implemented(tx, found)

    def children(self) -> Sequence[VariableTracker]:
        return [v for v in self.attrs.values() if v is not None]

    def write_back(self, to: Rebuilder) -> None:
        for name, value in self.attrs.items():
            if value is None:
                to.call_helper(delete_class_attribute, lambda: to.load(self), lambda: to.load_const(name))
            else:
                to.call_helper(
                    set_class_attribute,
                    lambda: to.load(self),
                    lambda: to.load_const(name),
                    lambda: to.load(value),
                )
            to.pop()

    def reconstruct(self, to: Rebuilder) -> None:
        to.load_class(self.value)


ASKED_FOR_ITS_CLASS: Final = object()
"""Set while an object is asked for its `__class__` by its own code: torch lets the object itself answer, without
tracing, so nothing breaks there."""


def claimed_class(tx: Tracer, value: VariableTracker) -> type | None:
    """What an object gives as its `__class__`, if its class has a say about that; else None."""
    kind = value.get_type()
    own = type_lookup(kind, "__class__") is type_lookup(object, "__class__")
    if own and not isinstance(type_lookup(kind, "__getattribute__"), types.FunctionType):
        return None
    tx.state[ASKED_FOR_ITS_CLASS] = True
    try:
        found = abstract.python_class(
            abstract.getattr_default(tx, value, "__class__", tx.constant(None)).realize(tx)
        )
    finally:
        tx.state.pop(ASKED_FOR_ITS_CLASS, None)
    return None if found is kind else found


class SuperVariable(VariableTracker):
    """`super()`: attribute lookup that starts after a class in the MRO of an object's type."""

    __slots__ = ("kind", "of_class", "owner", "start")
    python_type = super

    def __init__(self, start: type, owner: VariableTracker, node: Node | None = None) -> None:
        super().__init__(node)
        self.start = start
        self.owner = owner
        cls = owner.value if isinstance(owner, ObjectVariable) and isinstance(owner.value, type) else None
        # a class below `start` stands for itself, one whose metaclass is below it is an instance
        self.of_class = cls is not None and issubclass(cls, start)
        self.kind: type = cls if cls is not None and self.of_class else owner.get_type()

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        owner, is_class = self.owner, self.of_class
        if name == "__class__":  # of the super object itself, as in CPython
            return super().tp_getattro(tx, name)
        mro = self.kind.__mro__ or ()  # none yet while it is computed
        for c in mro[mro.index(self.start) + 1 :] if mro else ():
            stored = class_writes.stored_in(tx, c, name)
            if stored is not None:
                return class_writes.bound(tx, stored, None if is_class else owner, name)
            if name not in c.__dict__:
                continue
            raw = c.__dict__[name]
            node = tx.class_node(c).named(TypeAttr, name)
            if isinstance(raw, types.FunctionType):
                return tx.wrap(node) if is_class else BoundMethodVariable(tx.wrap(node), owner)
            if isinstance(raw, staticmethod):
                return ObjectVariable(raw.__func__) if c is object else tx.unwrap_method(node, raw)
            if isinstance(raw, classmethod):
                return BoundMethodVariable(
                    tx.unwrap_method(node, raw), owner if is_class else tx.class_of(owner)
                )
            if isinstance(raw, property):
                return tx.wrap(node) if is_class else tx.call(tx.property_getter(node, raw), [owner])
            if isinstance(raw, types.BuiltinFunctionType):
                return ObjectVariable(raw)  # __new__ of a builtin base
            if isinstance(
                raw,
                (types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType),
            ):
                return SlotWrapperVariable(owner, c, name)
            return tx.wrap(node)
        tx.raise_(AttributeError, f"'super' object has no attribute {name!r}")

    def children(self) -> Sequence[VariableTracker]:
        return (self.owner,)


class SlotWrapperVariable(CallableVariable):
    """A C method of a builtin base, bound past the overrides of the object's class (`super().__setattr__`)."""

    __slots__ = ("base", "name", "owner")
    python_type = types.MethodWrapperType

    def __init__(self, owner: VariableTracker, base: type, name: str) -> None:
        super().__init__()
        self.owner = owner
        self.base = base
        self.name = name

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.call_base_method(self.owner, self.base, self.name, args, kwargs)

    def children(self) -> Sequence[VariableTracker]:
        return (self.owner,)
