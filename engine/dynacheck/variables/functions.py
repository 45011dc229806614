"""Functions and bound methods."""

from __future__ import annotations

import builtins
import operator
import sys
import types
from collections.abc import Callable, Sequence
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, GenericAlias, MethodType, NoneType, UnionType
from typing import Any, Final

from dynacheck.guards import Is
from dynacheck.reasons import SKIPPED_CALL, UNKNOWN_ATTRIBUTE
from dynacheck.sources import ABSENT, HEAP_TYPE, CAttr, DictAttr, Node, is_a, type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.base import NOT_IMPLEMENTED, CantRebuild, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.cells import CellVariable
from dynacheck.variables.methods import bound_type

C_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)
VARARGS, VARKEYWORDS = 0x04, 0x08
WRITTEN_TYPES = (GenericAlias, UnionType)
"""Kinds of objects made by each evaluation of `list[int]` and `int | str`: equal ones stand for the same type."""


def make_function(
    code: CodeType,
    globals_: dict[str, Any],
    name: str,
    qualname: str,
    defaults: tuple[Any, ...] | None,
    kwdefaults: dict[str, Any] | None,
    closure: tuple[Any, ...],
    attributes: dict[str, Any],
) -> FunctionType:
    """A function object from its parts (used by rewritten code)."""
    fn = FunctionType(code, globals_, name, defaults, closure or None)
    fn.__qualname__ = qualname
    fn.__kwdefaults__ = kwdefaults
    for key, value in attributes.items():
        setattr(fn, key, value)
    return fn


class CallableVariable(VariableTracker):
    """Anything whose identity is what matters: hashing and comparing by identity."""

    __slots__ = ()

    def nb_bool(self, tx: Tracer) -> bool:
        return True

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        if op not in ("==", "!="):
            return NOT_IMPLEMENTED
        same = self is other
        if not same and hasattr(self, "value") and hasattr(other, "value"):
            same = self.value is other.value or (
                is_written_type(type(self.value)) and self.value == other.value
            )
        return tx.constant(same is (op == "=="))


class ObjectVariable(CallableVariable):
    """A callable of C code, a class of torch or the standard library: known by the object itself.

    Invariant: either it has a node guarded by identity, or the object is the same in every run.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any, node: Node | None = None) -> None:
        super().__init__(node)
        self.value = value

    def get_type(self) -> type:
        return type(self.value)

    def describe(self) -> str:
        module = getattr(self.value, "__module__", None)
        name = getattr(self.value, "__qualname__", getattr(self.value, "__name__", None)) or repr(self.value)
        return f"{module}.{name}" if module and module != "builtins" else str(name)

    def hash_key(self, tx: Tracer) -> Any:
        return self.value

    def as_proxy(self, tx: Tracer) -> Any:
        return self.value

    def as_meta(self, tx: Tracer) -> Any:
        return self.value

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.call_object(self, args, kwargs)

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        sides = [abstract.python_object(v) for v in (left, right)]
        if op != "|" or not all(map(is_type_expression, sides)):
            return NOT_IMPLEMENTED
        if any(map(_compares_itself, sides)):
            self.unmodelled(tx, "| with classes that a metaclass compares")
        return TypeExpressionVariable(sides[0] | sides[1], operator.or_, (left, right))  # `int | None`

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        return tx.object_attribute(self, name)

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        return tx.constant(repr(self.value))

    def reconstruct(self, to: Rebuilder) -> None:
        value = self.value
        if is_a(value, type) and not value.__flags__ & HEAP_TYPE:  # it lives as long as the process
            to.load_const_type(value)
            return
        module = getattr(value, "__module__", None) or (
            "builtins" if getattr(builtins, getattr(value, "__name__", ""), None) is value else None
        )
        to.call_helper(importable, lambda: to.load_const(_address(value, module)))


def is_written_type(kind: type) -> bool:
    """Whether objects of a type are written as types: `list[int]`, `int | str`, `Optional`, `Optional[int]`."""
    of_typing = kind.__module__ == "typing" and kind.__name__.endswith(("GenericAlias", "Form", "Type"))
    return of_typing or kind in WRITTEN_TYPES


def is_type_expression(value: object) -> bool:
    """Whether an object may be part of `int | None`, asked in a way that runs no user code."""
    kind = type(value)
    if is_a(value, type):
        return type_lookup(kind, "__or__") is type.__dict__["__or__"]
    return kind in (NoneType, *WRITTEN_TYPES) or kind.__module__ == "typing"


def _compares_itself(value: object) -> bool:
    """Whether comparing a type expression, as `|` does, runs code of a metaclass."""
    if is_a(value, type) and any(
        isinstance(type_lookup(type(value), name), FunctionType) for name in ("__eq__", "__hash__")
    ):
        return True
    inner = getattr(value, "__args__", ()) if type(value) in WRITTEN_TYPES else ()
    return any(map(_compares_itself, inner))


class TypeExpressionVariable(ObjectVariable):
    """`list[int]` or `int | None`, evaluated in the frame: it is evaluated again where it leaves."""

    __slots__ = ("function", "operands")

    def __init__(
        self, value: Any, function: Callable[..., Any], operands: tuple[VariableTracker, ...]
    ) -> None:
        super().__init__(value)
        self.function = function
        self.operands = operands

    def children(self) -> Sequence[VariableTracker]:
        return self.operands

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(self.function, *[partial(to.load, operand) for operand in self.operands])
        to.remember(self)


def _address(value: Any, module: Any) -> tuple[str, str]:
    """Where an object can be imported from.

    Raises:
        CantRebuild: nowhere.
    """
    name = str(getattr(value, "__qualname__", None) or getattr(value, "__name__", ""))
    for candidate in (module, "builtins", "torch", "operator", "math"):
        if candidate and candidate in sys.modules:
            try:
                found = importable((candidate, name))
                if found is value or (type(value) is BuiltinFunctionType and found == value):  # bound anew
                    return candidate, name
            except AttributeError:
                continue
    for name, kind in vars(types).items():  # types of C code that have no name of their own
        if kind is value:
            return "types", name
    raise CantRebuild(repr(value))


def importable(address: tuple[str, str]) -> Any:
    """The object at (module, dotted name) (used by rewritten code)."""
    found: Any = sys.modules[address[0]]
    for part in address[1].split("."):
        found = getattr(found, part)
    return found


_OF_CALLS: Final = frozenset({"__code__", "__defaults__", "__kwdefaults__"})
"""Attributes of a function that say what a call does."""


class UserFunctionVariable(CallableVariable):
    """A Python function: one that existed before the frame (`value`) or one made in it.

    Invariant: a sourced function is guarded by identity, or by `__code__` when it is a closure or a local function;
    its closure cells, defaults and attributes are read through its node.
    """

    __slots__ = (
        "_closure",
        "annotations",
        "attributes",
        "code",
        "defaults",
        "globals",
        "kwdefaults",
        "name",
        "namespace",
        "qualname",
        "value",
    )
    python_type = FunctionType

    def __init__(self, value: FunctionType | None, node: Node | None = None) -> None:
        super().__init__(node)
        self.value = value
        self.attributes: dict[str, VariableTracker] = {}
        self.annotations: VariableTracker | None = None
        self.defaults: tuple[VariableTracker, ...] | None = None
        self.kwdefaults: dict[str, VariableTracker] | None = None
        self._closure: tuple[CellVariable, ...] | None = None
        self.namespace: VariableTracker | None = None
        if value is not None:
            self.code = value.__code__
            self.globals: dict[str, Any] = value.__globals__
            self.name = value.__name__
            self.qualname = value.__qualname__

    @classmethod
    def made(
        cls,
        code: CodeType,
        globals_: dict[str, Any],
        defaults: tuple[VariableTracker, ...] | None,
        kwdefaults: dict[str, VariableTracker] | None,
        closure: tuple[CellVariable, ...],
    ) -> UserFunctionVariable:
        """A function that MAKE_FUNCTION makes."""
        fn = cls(None)
        fn.code = code
        fn.globals = globals_
        fn.name = code.co_name
        fn.qualname = code.co_qualname
        fn.defaults = defaults
        fn.kwdefaults = kwdefaults
        fn._closure = closure
        return fn

    def describe(self) -> str:
        return self.qualname

    def hash_key(self, tx: Tracer) -> Any:
        return self.value if self.value is not None else self

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.call_function(self, args, kwargs)

    def closure(self, tx: Tracer) -> tuple[CellVariable, ...]:
        """The closure's cells."""
        if self._closure is None:
            cells = self.value.__closure__ if self.value is not None else None
            if not cells:
                self._closure = ()
            elif self.node is not None:
                base = self.node.child(CAttr("__closure__"))
                self._closure = tuple(tx.cell_of(base.item(i)) for i in range(len(cells)))
            else:
                self._closure = tuple(CellVariable(None, tx.object(c.cell_contents)) for c in cells)
        return self._closure

    def positional_defaults(self, tx: Tracer) -> tuple[VariableTracker, ...]:
        """`__defaults__`, items lazy."""
        if self.defaults is None:
            values = self.value.__defaults__ if self.value is not None else None
            if not values:
                self.defaults = ()
            elif self.node is not None:
                base = self.node.child(CAttr("__defaults__"))
                tx.guard_length(base, len(values))
                self.defaults = tuple(tx.wrap(base.item(i)) for i in range(len(values)))
            else:
                self.defaults = tuple(tx.object(v) for v in values)
        return self.defaults

    def keyword_defaults(self, tx: Tracer) -> dict[str, VariableTracker]:
        """`__kwdefaults__`, values lazy."""
        if self.kwdefaults is None:
            values = self.value.__kwdefaults__ if self.value is not None else None
            if not values:
                self.kwdefaults = {}
            elif self.node is not None:
                base = self.node.child(CAttr("__kwdefaults__"))
                self.kwdefaults = {k: tx.wrap(base.key(k)) for k in values}
            else:
                self.kwdefaults = {k: tx.object(v) for k, v in values.items()}
        return self.kwdefaults

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name in self.attributes:
            return self.attributes[name]
        if (
            name in ("__name__", "__qualname__", "__module__")
            and self.value is not None
            and self.node is not None
        ):
            return tx.wrap(self.node.child(CAttr(name)))  # they may be set
        if name in ("__name__", "__qualname__"):
            return tx.constant(self.name if name == "__name__" else self.qualname)
        if name == "__module__":
            return tx.constant(self.globals.get("__name__"))
        if name == "__class__":
            return tx.object(FunctionType)
        if name == "__code__":
            return tx.object(self.code)
        if name == "__dict__" and self.node is not None:
            self.namespace = tx.wrap(self.node.child(CAttr(name)))
            return self.namespace
        raw = type_lookup(FunctionType, name)
        if isinstance(raw, C_METHODS) and (self.value is None or name not in self.value.__dict__):
            return ObjectMethodVariable(self, name)
        if self.namespace is not None and raw is ABSENT:  # it may have been written to
            held: Any = self.namespace.realize(tx)
            found: VariableTracker | None = held.lookup(tx, tx.constant(name))
            if found is None:
                tx.raise_(AttributeError, f"'function' object has no attribute {name!r}")
            return found
        if self.value is not None:
            if name in self.value.__dict__:
                if self.node is not None:
                    return tx.wrap(self.node.child(DictAttr(name)))
                return tx.object(self.value.__dict__[name])
            if self.node is not None and not hasattr(self.value, name):
                tx.guard_absent(self.node.child(DictAttr(name)))
                tx.raise_(AttributeError, f"'function' object has no attribute {name!r}")
            if self.node is not None and name in (
                "__closure__",
                "__doc__",
                "__globals__",
                "__annotations__",
                "__defaults__",
                "__kwdefaults__",
                "__wrapped__",
                "__type_params__",
                "__builtins__",
            ):
                return tx.wrap(self.node.child(CAttr(name)))
        elif name == "__doc__":
            doc = self.code.co_consts[0] if self.code.co_consts else None
            return tx.constant(doc if isinstance(doc, str) else None)
        elif name == "__annotations__":
            if self.annotations is None:
                self.annotations = tx.constant({})
            return self.annotations
        elif name == "__defaults__":
            values = self.positional_defaults(tx)
            return tx.tuple_of(values) if values else tx.constant(None)
        elif name == "__type_params__" and hasattr(
            _SAMPLE, name
        ):  # a function with some isn't made in a frame
            return tx.tuple_of([])
        elif not hasattr(_SAMPLE, name):
            tx.raise_(AttributeError, f"'function' object has no attribute {name!r}")
        tx.break_(UNKNOWN_ATTRIBUTE, name=name, what=self.describe())

    def tp_setattro(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        if value is None or self.value is not None or name in _OF_CALLS:
            tx.break_(UNKNOWN_ATTRIBUTE, name=name, what=self.describe())
        if name in ("__name__", "__qualname__"):
            text = value.realize(tx).as_constant(tx)
            if name == "__name__":
                self.name = text
            else:
                self.qualname = text
            return
        if name == "__annotations__":
            self.annotations = value
            return
        self.attributes[name] = value

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        if self.value is None:  # its address is known when it is made
            tx.break_(UNKNOWN_ATTRIBUTE, name="__repr__", what=self.describe())
        if self.node is not None:
            tx.guard(self.node, Is(self.value))
        name = self.tp_getattro(tx, "__qualname__").realize(tx).as_constant(tx)
        return tx.constant(f"<function {name} at {id(self.value):#x}>")

    def tp_format(self, tx: Tracer, spec: str) -> VariableTracker:
        if spec:
            self.unmodelled(tx, "formatting")
        return self.tp_str(tx)

    def children(self) -> Sequence[VariableTracker]:
        cells = self._closure or ()
        held = (*cells, *(self.defaults or ()), *(self.kwdefaults or {}).values(), *self.attributes.values())
        return held if self.annotations is None else (*held, self.annotations)

    def reconstruct(self, to: Rebuilder) -> None:
        if self.value is not None:
            to.call_helper(importable, lambda: to.load_const(_address(self.value, self.value.__module__)))
            return

        def closure() -> None:
            for cell in self._closure or ():
                to.load(cell)
            to.build_tuple(len(self._closure or ()))

        def defaults() -> None:
            if self.defaults is None:
                to.load_const(None)
                return
            for value in self.defaults:
                to.load(value)
            to.build_tuple(len(self.defaults))

        def mapping(values: dict[str, VariableTracker] | None) -> Callable[[], None]:
            def push() -> None:
                if values is None:
                    to.load_const(None)
                    return
                for key, value in values.items():
                    to.load_const(key)
                    to.load(value)
                to.build_map(len(values))

            return push

        attributes = dict(self.attributes)
        if self.annotations is not None:
            attributes["__annotations__"] = self.annotations
        to.call_helper(
            make_function,
            lambda: to.load_const(self.code),
            lambda: to.load_globals(self.globals),
            lambda: to.load_const(self.name),
            lambda: to.load_const(self.qualname),
            defaults,
            mapping(self.kwdefaults),
            closure,
            mapping(attributes),
        )
        to.remember(self)


def _sample() -> None: ...


_SAMPLE = _sample


class ObjectMethodVariable(CallableVariable):
    """A method of an object whose attribute is C code: bound by name, dispatched when called (`fn.__get__`)."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: VariableTracker, name: str, node: Node | None = None) -> None:
        super().__init__(node)
        self.owner = owner
        self.name = name

    def get_type(self) -> type:
        return bound_type(self.owner, self.name)

    def describe(self) -> str:
        return f"{self.owner.describe()}.{self.name}"

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.call_named_method(self.owner, self.name, args, kwargs)

    def children(self) -> Sequence[VariableTracker]:
        return (self.owner,)

    def reconstruct(self, to: Rebuilder) -> None:
        to.load(self.owner)
        to.load_attr(self.name)
        to.remember(self)


class HeldMethodVariable(CallableVariable):
    """A method of C code bound to a tensor, from outside of the frame: made anew by each attribute access.

    It is called as it is, as in torch, so nothing depends on which it is.
    """

    __slots__ = ()
    python_type = BuiltinFunctionType

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        tx.break_(SKIPPED_CALL, call=self.describe(), why="a bound method of a tensor")


class BoundMethodVariable(CallableVariable):
    """A Python function bound to an object."""

    __slots__ = ("function", "owner")
    python_type = MethodType

    def __init__(self, function: VariableTracker, owner: VariableTracker, node: Node | None = None) -> None:
        super().__init__(node)
        self.function = function
        self.owner = owner

    def describe(self) -> str:
        return self.function.describe()

    def hash_key(self, tx: Tracer) -> Any:
        return (self.function.realize(tx).hash_key(tx), self.owner.realize(tx).hash_key(tx))

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        if op not in ("==", "!=") or not isinstance(other, BoundMethodVariable):
            return NOT_IMPLEMENTED
        same = self.hash_key(tx) == other.hash_key(tx)
        return tx.constant(same is (op == "=="))

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.call(self.function, [self.owner, *args], kwargs)

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name == "__self__":
            return self.owner
        if name == "__func__":
            return self.function
        if name == "__class__":
            return super().tp_getattro(tx, name)
        if isinstance(type_lookup(MethodType, name), C_METHODS):
            return ObjectMethodVariable(self, name)
        return self.function.realize(tx).tp_getattro(tx, name)

    def children(self) -> Sequence[VariableTracker]:
        return (self.function, self.owner)

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(MethodType, lambda: to.load(self.function), lambda: to.load(self.owner))
        to.remember(self)
