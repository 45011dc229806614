"""Objects of classes derived from int, float, complex, str and bytes.

Operators go through the slots of the class. Where those are the builtin type's own, and wherever C code is handed such
an object, what counts is the value that it holds, whatever the class overrides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Final

from dynacheck.guards import ValueIs
from dynacheck.reasons import UNKNOWN_CALL
from dynacheck.sources import Converted, Node, is_a, type_lookup
from dynacheck.variables.base import NOT_IMPLEMENTED, NotConstant, Tracer, VariableTracker
from dynacheck.variables.classes import ClassVariable
from dynacheck.variables.constant import ConstantVariable, own_operator
from dynacheck.variables.objects import BINARY, UNARY, UserObjectVariable, or_not_implemented
from dynacheck.variables.results import python_value


def _reader(kind: type, plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """C code's own reading of a subclass's object; of other objects, which guards meet too, there is nothing to read."""
    return lambda value: plain(value) if is_a(value, kind) else None


_HELD: Final[dict[type, Callable[[Any], Any]]] = {
    kind: _reader(kind, plain)
    for kind, plain in (
        (int, int.__int__), (float, float.__float__), (complex, complex.__complex__), (str, str.__str__),
        (bytes, bytes.__bytes__),
    )
}  # fmt: skip
"""What gives the value held by an object of a subclass, as one of the type itself."""


class ScalarObjectVariable(UserObjectVariable):
    """An object with a builtin scalar for its base. Invariant: `base` is the ConstantVariable of what it holds."""

    __slots__ = ()
    base: Any

    def __init__(self, cls: type, value: Any, node: Node | None, contents: ConstantVariable) -> None:
        super().__init__(cls, value, node)
        self.base = contents

    def as_constant(self, tx: Tracer) -> Any:
        return self.base.value

    def as_proxy(self, tx: Tracer) -> Any:
        return self.base.value

    def as_meta(self, tx: Tracer) -> Any:
        return self.base.value

    def bind(self, tx: Tracer, name: str, raw: object, node: Node) -> VariableTracker:
        if raw is str.__dict__["format"] and not set("{}").intersection(self.base.value):
            self.unmodelled(tx, method=repr(name))  # CPython may give the object itself
        return super().bind(tx, name, raw, node)

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        forward = left is self
        found = self._slot(tx, f"__{'' if forward else 'r'}{BINARY[op]}__", right if forward else left)
        if found is not None:
            return or_not_implemented(tx, found)
        if op == "%" and forward and isinstance(self.base.value, str) and "%" not in self.base.value:
            self.unmodelled(tx, "%")  # CPython may give the object itself
        return own_operator(tx, self.base, op, right if forward else left, reflected=not forward)

    def nb_inplace(self, tx: Tracer, op: str, right: VariableTracker) -> VariableTracker | object:
        found = self._slot(tx, f"__i{BINARY[op]}__", right)
        return NOT_IMPLEMENTED if found is None else or_not_implemented(tx, found)

    def nb_unary(self, tx: Tracer, op: str) -> VariableTracker:
        held_alone = op == "index" and isinstance(self.base.value, int)
        if held_alone or self.method(tx, f"__{UNARY[op]}__") is None:
            found: VariableTracker = self.base.nb_unary(tx, op)
            return found
        return super().nb_unary(tx, op)

    def hash_key(self, tx: Tracer) -> Any:
        if isinstance(type_lookup(self.cls, "__eq__"), FunctionType) or self.base.value != self.base.value:
            self.unmodelled(tx, "hash()")  # a nan is hashed by the object's identity
        return super().hash_key(tx)

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        if self.method(tx, "__repr__") is not None:
            return super().tp_repr(tx)
        shown: VariableTracker = self.base.tp_repr(tx)
        return shown

    def tp_str(self, tx: Tracer) -> VariableTracker:
        own = type_lookup(self.cls, "__str__") is type_lookup(str, "__str__")
        return self.base if own else super().tp_str(tx)

    def tp_format(self, tx: Tracer, spec: str) -> VariableTracker:
        own = type_lookup(self.cls, "__format__") is type_lookup(self.base.get_type(), "__format__")
        return self.tp_str(tx) if own and not spec else super().tp_format(tx, spec)


def held(tx: Tracer, node: Node, value: Any) -> ConstantVariable | None:
    """What a sourced object of a subclass of a scalar type holds, guarded; None for other objects."""
    for kind, read in _HELD.items():
        if is_a(value, kind):
            number = read(value)
            assert number is not None
            tx.guard(node.child(Converted(read, kind.__name__)), ValueIs(number))
            return ConstantVariable(number)
    return None


def new(
    tx: Tracer, cls: ClassVariable, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker | None:
    """A new object of a subclass of what torch makes such objects of, by the `__new__` of that; None for others."""
    value: type = cls.value
    made_by = type_lookup(value, "__new__")
    kind = next((kind for kind in (int, str) if kind.__new__ is made_by), None)
    if kind is None:
        return None
    found = tx.call(tx.object(kind), args, kwargs)
    try:
        contents = python_value(tx, found)
    except NotConstant:
        tx.break_(UNKNOWN_CALL, what=f"the class {value.__qualname__}, a kind of {kind.__name__},")
    return ScalarObjectVariable(value, None, None, ConstantVariable(contents))
