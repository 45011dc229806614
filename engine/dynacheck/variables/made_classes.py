"""Classes that the frame makes: `type(name, bases, namespace)` and `collections.namedtuple(...)`."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable
from typing import Any

from dynacheck.reasons import UNKNOWN_CALL
from dynacheck.sources import MadeNode, type_lookup
from dynacheck.variables import abstract, class_writes
from dynacheck.variables.base import NotConstant, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.classes import ClassVariable
from dynacheck.variables.functions import UserFunctionVariable
from dynacheck.variables.mappings import DictVariable
from dynacheck.variables.results import python_value
from dynacheck.variables.sequences import TupleVariable
from dynacheck.variables.sets import AbstractSetVariable


class MadeClassVariable(ClassVariable):
    """A class made in the frame. Invariant: `value` is one made alike while translating, which no user code has seen.

    Args:
        value: the class.
        load: pushes one made anew, in rewritten code.
    """

    __slots__ = ("load_new",)

    def __init__(self, value: type, load: Callable[[Rebuilder], None]) -> None:
        super().__init__(value)
        self.load_new = load

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if not issubclass(
            self.value, (tuple, BaseException)
        ):  # as torch, which makes objects of known classes only
            tx.break_(UNKNOWN_CALL, what=f"the class {self.describe()}, which is made in the frame")
        return super().tp_call(tx, args, kwargs)

    def type_setattr(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        tx.break_(UNKNOWN_CALL, what=f"setattr() on the class {self.describe()}, which is made in the frame")

    def reconstruct(self, to: Rebuilder) -> None:
        self.load_new(to)
        to.remember(self)


def _new(tx: Tracer, made: type, base: type, load: Callable[[Rebuilder], None]) -> MadeClassVariable:
    """The tracker of a class that was made just now."""
    tracker = MadeClassVariable(made, load)
    MadeNode.of_class(made, tracker, tx.class_node(base))
    tx.meet(made, tracker)
    return tracker


def make_namedtuple(
    tx: Tracer, args: tuple[VariableTracker, ...], kwargs: dict[str, VariableTracker]
) -> VariableTracker | None:
    """`collections.namedtuple(...)`; None when an argument isn't a constant."""
    args = tuple(_in_order(tx, a) if i == 1 else a for i, a in enumerate(args))
    kwargs = {name: _in_order(tx, a) if name == "field_names" else a for name, a in kwargs.items()}
    try:
        values = [python_value(tx, a) for a in args]
        named = {name: python_value(tx, a) for name, a in kwargs.items()}
    except NotConstant:
        return None
    if named.get("module") is None:  # the module of the frame that calls it
        named["module"] = tx.module_name()
    make: Any = collections.namedtuple
    try:
        made: type = make(*values, **named)
    except (TypeError, ValueError) as error:
        tx.raise_(type(error), *error.args)

    def load(to: Rebuilder) -> None:
        to.push_callable(lambda: to.load_const(collections.namedtuple))
        for value in (*args, *(v for name, v in kwargs.items() if name != "module")):
            to.load(value)
        to.load_const(named["module"])
        to.call(len(args) + len(named), (*(name for name in kwargs if name != "module"), "module"))

    return _new(tx, made, tuple, load)


def _in_order(tx: Tracer, names: VariableTracker) -> VariableTracker:
    """Names of fields in the order that the program sees: that of a set of them is the set's own."""
    real = names.realize(tx)
    return TupleVariable(abstract.iterate(tx, real)) if isinstance(real, AbstractSetVariable) else real


def make_class(
    tx: Tracer, name: VariableTracker, bases: VariableTracker, namespace: VariableTracker
) -> VariableTracker:
    """`type(name, bases, namespace)`, of at most one base and of constants and functions, as torch has it."""
    kinds = (
        [abstract.python_class(b) for b in bases.items(tx)] if isinstance(bases, TupleVariable) else [None]
    )
    base = kinds[0] if kinds else object
    if len(kinds) > 1 or base is None or not isinstance(namespace, DictVariable) or not _is_plain(base):
        tx.break_(UNKNOWN_CALL, what="type() that makes a class")
    items = tx.string_items(namespace)
    functions = {
        key: v for key, value in items.items() if isinstance(v := value.realize(tx), UserFunctionVariable)
    }
    if functions and issubclass(base, BaseException):
        tx.break_(UNKNOWN_CALL, what="type() that makes a class")
    try:
        own: dict[str, Any] = {k: python_value(tx, v) for k, v in items.items() if k not in functions}
        called = python_value(tx, name)
    except NotConstant:
        tx.break_(UNKNOWN_CALL, what="type() that makes a class")
    module = tx.module_name()
    own.setdefault("__module__", module)
    try:
        made: type = type(called, (base,) if kinds else (), own | dict.fromkeys(functions, _stand_in))
    except (TypeError, ValueError) as error:
        tx.raise_(type(error), *error.args)

    def load(to: Rebuilder) -> None:
        to.push_callable(lambda: to.load_const_type(type))
        to.load(name)
        to.load(bases)
        for key, value in items.items():
            to.load_const(key)
            to.load(value)
        if "__module__" not in items:
            to.load_const("__module__")
            to.load_const(module)
        to.build_map(len(items) + ("__module__" not in items))
        to.call(3)

    tracker = _new(tx, made, base, load)
    if functions:
        class_writes.record(tx, made, dict(functions))
    return tracker


def _stand_in() -> None:
    """Stands for a function in a class's namespace, which lookups never give: they find its tracker before."""


def _is_plain(base: type) -> bool:
    """Whether deriving from a class runs no code of the user's."""
    hook = type_lookup(base, "__init_subclass__")
    return type(base) is type and not isinstance(getattr(hook, "__func__", None), types.FunctionType)
