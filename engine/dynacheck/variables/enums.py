"""Enum classes. Members are constants (`ConstantVariable`)."""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from dynacheck.reasons import UNKNOWN_CALL
from dynacheck.sources import MadeNode, TypeAttr, type_lookup
from dynacheck.variables.base import NotConstant, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.classes import ClassVariable
from dynacheck.variables.coerce import natively
from dynacheck.variables.mappings import DictVariable
from dynacheck.variables.proxies import MappingProxyVariable
from dynacheck.variables.results import fold, python_value


class EnumClassVariable(ClassVariable):
    """An enum class, guarded by identity: its members never change."""

    __slots__ = ()

    def _own(self, tx: Tracer, name: str, operation: str) -> None:
        """Break where the metaclass is the user's."""
        raw = type_lookup(type(self.value), name)
        if isinstance(raw, FunctionType) and raw.__module__ != "enum":
            self.unmodelled(tx, operation)

    def members(self, tx: Tracer) -> list[VariableTracker]:
        """The members in definition order, without aliases."""
        self._own(tx, "__iter__", "iteration")
        return [tx.object(member) for member in natively(tx, list, self.value)]

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name == "__members__":
            # it grows while the class is made, which runs code of the user's
            members = tx.wrap(tx.class_node(self.value).child(TypeAttr("_member_map_"))).realize(tx)
            assert isinstance(members, DictVariable)
            return MappingProxyVariable(members)
        return super().tp_getattro(tx, name)

    def tp_iter(self, tx: Tracer) -> VariableTracker:
        return tx.tuple_of(self.members(tx)).tp_iter(tx)

    def sq_length(self, tx: Tracer) -> VariableTracker:
        self._own(tx, "__len__", "len()")
        return tx.wrap(tx.class_node(self.value).child(TypeAttr("_member_names_"))).realize(tx).sq_length(tx)

    def mp_subscript(self, tx: Tracer, key: VariableTracker) -> VariableTracker:
        self._own(tx, "__getitem__", "indexing")
        return fold(tx, operator.getitem, self.value, self._constant(tx, key, "indexing"))

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker:
        self._own(tx, "__contains__", "`in`")
        return fold(tx, operator.contains, self.value, self._constant(tx, item, "`in`"))

    def _constant(self, tx: Tracer, value: VariableTracker, operation: str) -> object:
        try:
            found: object = python_value(tx, value)
        except NotConstant:
            self.unmodelled(tx, operation)
        return found

    def call_method(
        self, tx: Tracer, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """`reversed()`."""
        if name != "__reversed__" or args or kwargs:
            self.unmodelled(tx, method=repr(name))
        return tx.tuple_of(self.members(tx)[::-1]).tp_iter(tx)


class MadeEnumVariable(EnumClassVariable):
    """An enum that the frame makes by a call: made once, while translating, as in torch, like its members."""

    __slots__ = ()

    def reconstruct(self, to: Rebuilder) -> None:
        to.load_const(self.value)


def call(
    tx: Tracer, value: type[enum.Enum], args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """The member of a value, or another enum. What the user's code finds isn't looked up."""
    raw: Any = type_lookup(value, "_missing_")
    missing = raw.__func__.__module__
    members = value._value2member_map_
    if not value._member_map_ and missing == value.__module__ == "enum":
        return _made(tx, value, args, kwargs)
    real = args[0].realize(tx)
    constant = real.is_constant() and len(args) == 1 and not kwargs and bool(members)
    if not constant or (missing != "enum" and real.as_constant(tx) not in members):
        tx.break_(UNKNOWN_CALL, what=f"the enum {value.__qualname__}")
    try:
        return tx.object(value(real.as_constant(tx)))
    except ValueError as error:
        tx.raise_(ValueError, *error.args)


def _made(
    tx: Tracer, base: type[enum.Enum], args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """`enum.Enum(name, names)`."""
    try:
        values = [python_value(tx, a) for a in args]
        named = {name: python_value(tx, a) for name, a in kwargs.items()}
    except NotConstant:
        tx.break_(UNKNOWN_CALL, what=f"the enum {base.__qualname__}")
    named.setdefault("module", tx.module_name())  # of the frame that calls it
    try:
        made: Any = base(*values, **named)
    except (TypeError, ValueError) as error:
        tx.raise_(type(error), *error.args)
    tracker = MadeEnumVariable(made)
    MadeNode.of_class(made, tracker, tx.class_node(base))
    tx.meet(made, tracker)
    return tracker


def is_enum_class(value: type) -> bool:
    """Whether a class is an enum."""
    return isinstance(value, enum.EnumType)
