"""Immutable objects of C code whose methods depend on nothing else: compiled patterns and matches."""

from __future__ import annotations

import re
from typing import Any

from dynacheck.guards import Is
from dynacheck.sources import ABSENT, Node, type_lookup
from dynacheck.variables.base import (
    NOT_IMPLEMENTED,
    CantRebuild,
    NotConstant,
    Rebuilder,
    Tracer,
    VariableTracker,
)
from dynacheck.variables.methods import BuiltinObject
from dynacheck.variables.results import CONTAINERS, fold, python_value
from dynacheck.variables.wrap import wraps


class FrozenVariable(BuiltinObject):
    """A pattern or a match: its methods are run for real on constants."""

    __slots__ = ("value",)

    def __init__(self, value: Any, node: Node | None = None) -> None:
        super().__init__(node)
        self.value = value

    def get_type(self) -> type:
        return type(self.value)

    def sample(self) -> Any:
        return self.value

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        found = type_lookup(type(self.value), name)
        if name == "__class__" or found is ABSENT or callable(found):
            return super().tp_getattro(tx, name)
        return fold(tx, getattr, self.value, name)

    def call_method(
        self, tx: Tracer, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name in ("sub", "subn") and isinstance(self.value, re.Pattern):
            function = (args[0] if args else kwargs.get("repl", self)).realize(tx)
            if not function.is_constant():
                return self._substitute(tx, name, function, args, kwargs)
        try:
            values = [python_value(tx, a) for a in args]
            named = {k: python_value(tx, v) for k, v in kwargs.items()}
        except NotConstant:
            self.unmodelled(tx, method=f"{name!r} with arguments that aren't constants")
        if name in ("finditer", "groupdict"):
            self.unmodelled(tx, method=repr(name))
        return fold(tx, getattr(self.value, name), *values, **named)

    def _substitute(
        self, tx: Tracer, name: str, function: Any, args: list[Any], kwargs: dict[str, Any]
    ) -> VariableTracker:
        """`sub` with a function: it is asked about all matches, then what it gave is put in for real."""
        try:
            rest = [python_value(tx, a) for a in args[1:]]
            named = {k: python_value(tx, v) for k, v in kwargs.items() if k != "repl"}
        except NotConstant:
            self.unmodelled(tx, method=repr(name))
        matches: list[re.Match[str]] = []
        fold(tx, self.value.sub, matches.append, *rest, **named)
        made = [tx.call(function, [FrozenVariable(match)]).realize(tx) for match in matches]
        if not all(value.is_constant() for value in made):
            self.unmodelled(tx, method=repr(name))
        texts = iter(made)
        return fold(tx, getattr(self.value, name), lambda _: next(texts).as_constant(tx), *rest, **named)

    def mp_subscript(self, tx: Tracer, key: VariableTracker) -> VariableTracker:
        return self.call_method(tx, "__getitem__", [key], {})

    def nb_bool(self, tx: Tracer) -> bool:
        return True

    def hash_key(self, tx: Tracer) -> Any:
        return self.value

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        if op not in ("==", "!=") or not isinstance(other, FrozenVariable):
            return NOT_IMPLEMENTED
        return tx.constant((self.value == other.value) is (op == "=="))

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        return fold(tx, repr, self.value)

    def reconstruct(self, to: Rebuilder) -> None:
        value = self.value
        if not isinstance(value, re.Pattern):
            raise CantRebuild("a match")
        to.call_helper(re.compile, lambda: to.load_const(value.pattern), lambda: to.load_const(value.flags))
        to.remember(self)


@wraps(re.Pattern)
def wrap_pattern(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    """A pattern, by identity."""
    tx.guard(node, Is(value))
    return FrozenVariable(value, node)


CONTAINERS[re.Pattern] = lambda tx, value: FrozenVariable(value)
CONTAINERS[re.Match] = lambda tx, value: FrozenVariable(value)
