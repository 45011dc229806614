"""Symbolic numbers: sizes, ints and floats that an attempt keeps as symbols."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NoReturn

import torch

from dynacheck.graph.expressions import is_known
from dynacheck.reasons import SYMBOLIC_NUMBER
from dynacheck.sources import Node
from dynacheck.variables import abstract
from dynacheck.variables.base import (
    DELAYED_SLOTS,
    NOT_IMPLEMENTED,
    LazyVariable,
    Rebuilder,
    Tracer,
    VariableTracker,
)
from dynacheck.variables.methods import BINARY_DUNDERS, COMPARE_DUNDERS, UNARY_DUNDERS, BuiltinMethodVariable
from dynacheck.variables.tensor import COMPARE, TensorVariable

BINARY: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_,
    "|": operator.or_, "^": operator.xor,
}  # fmt: skip
OPERATOR_METHODS: Final = frozenset(
    [*COMPARE_DUNDERS, *UNARY_DUNDERS]
    + [f"__{side}{name}__" for name in BINARY_DUNDERS for side in ("", "r") if name != "matmul"]
)
UNARY: Final[dict[str, Callable[[Any], Any]]] = {"-": operator.neg, "+": operator.pos, "abs": operator.abs}


class SymNumberVariable(VariableTracker):
    """A symbolic int, float or bool.

    Invariant: `sym` is a SymInt, SymFloat or SymBool of the attempt's environment; the recorder makes graph nodes of its
    expression where the graph uses it.
    """

    __slots__ = ("sym",)

    def __init__(self, sym: Any, node: Node | None = None) -> None:
        super().__init__(node)
        self.sym = sym

    def get_type(self) -> type:
        return {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}[type(self.sym)]

    def describe(self) -> str:
        return self.node.user_path if self.node is not None else f"the size expression {self.sym}"

    def as_constant(self, tx: Tracer) -> Any:
        """The number, which the frame then depends on: for what needs to know it while tracing."""
        return tx.specialize(self.sym)

    def as_proxy(self, tx: Tracer) -> Any:
        return self.sym

    def as_meta(self, tx: Tracer) -> Any:
        return self.sym

    def needs_plain(self, tx: Tracer, operation: str) -> NoReturn:
        """Break: the operation has no symbolic form, and torch breaks there too rather than fix the number."""
        what = self.describe() if self.node is not None else tx.env.spelled(self.sym)
        tx.break_(SYMBOLIC_NUMBER, operation=operation, what=what)

    def is_unbacked(self) -> bool:
        """Whether only the graph knows the number."""
        return not self.sym.node.expr.is_number and not self.sym.node.has_hint()

    def _derived(
        self, tx: Tracer, target: Callable[..., Any], operands: list[VariableTracker]
    ) -> VariableTracker:
        """The number that an operation on symbols gives; recorded when the graph uses it."""
        found = tx.evaluate_symbolic(target, [v.as_meta(tx) for v in operands])
        if isinstance(found, torch.SymFloat) and found.node.expr.is_number:
            # algebra folds 0 * n to an int, though it may be -0.0 or nan: the symbols' values tell
            known = [_known(tx, v) for v in operands]
            return tx.constant(tx.evaluate_symbolic(target, [v.as_meta(tx) for v in known]))
        if isinstance(found, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            if not is_known(found.node.expr):
                self.needs_plain(tx, f"{target.__name__}()")
            return SymNumberVariable(found)
        return tx.constant(found)

    def nb_bool(self, tx: Tracer) -> bool:
        return bool(tx.specialize(self.sym != 0 if not isinstance(self.sym, torch.SymBool) else self.sym))

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        other = right if left is self else left
        if isinstance(other, TensorVariable) or not issubclass(other.get_type(), (int, float, complex)):
            return NOT_IMPLEMENTED
        if (op not in BINARY and op != "divmod") or issubclass(other.get_type(), complex):
            return abstract.binary(tx, op, _known(tx, left), _known(tx, right))
        if bool in (left.get_type(), right.get_type()):
            both = left.get_type() is right.get_type()
            return abstract.binary(tx, op, _known_bool(tx, left, both), _known_bool(tx, right, both))
        if op == "divmod":
            pair = [
                self._derived(tx, BINARY["//"], [left, right]),
                self._derived(tx, BINARY["%"], [left, right]),
            ]
            return tx.tuple_of(pair)
        return self._derived(tx, BINARY[op], [left, right])

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        if isinstance(other, TensorVariable) or not issubclass(other.get_type(), (int, float, complex)):
            return NOT_IMPLEMENTED
        if issubclass(other.get_type(), complex):
            return abstract.richcompare(tx, op, _known(tx, self), other)
        if bool in (self.get_type(), other.get_type()):
            return abstract.richcompare(tx, op, _known_bool(tx, self), _known_bool(tx, other))
        return self._derived(tx, COMPARE[op], [self, other])

    def nb_unary(self, tx: Tracer, op: str) -> VariableTracker:
        if isinstance(self.sym, torch.SymBool):
            return tx.constant(tx.specialize(self.sym)).nb_unary(tx, op)
        if op in UNARY:
            return self._derived(tx, UNARY[op], [self])
        if op == "index" and isinstance(self.sym, torch.SymInt):
            return self
        if op == "float":
            return self._derived(tx, torch.sym_float, [self])
        if op == "int":
            return self._derived(tx, torch.sym_int, [self])
        if op == "complex" or (op == "~" and isinstance(self.sym, torch.SymInt)):
            self.needs_plain(tx, f"{op}()" if op == "complex" else op)
        return tx.constant(tx.specialize(self.sym)).nb_unary(tx, op)

    def call_math(
        self, tx: Tracer, fn: Callable[..., Any], operands: list[VariableTracker]
    ) -> VariableTracker:
        """`math.sqrt`, `math.floor`, `min`, `max` and the like on symbols."""
        return self._derived(tx, SYM_FORMS.get(fn, fn), operands)

    def rounded(self, tx: Tracer, digits: VariableTracker | None) -> VariableTracker:
        """`round(number, digits)`."""
        if isinstance(self.sym, torch.SymInt) and digits is None:
            return self
        if isinstance(self.sym, torch.SymFloat):
            return self._derived(tx, round, [self] if digits is None else [self, _known(tx, digits)])
        extra = [] if digits is None else [digits]
        return tx.call(_known(tx, self).tp_getattro(tx, "__round__"), extra)

    def hash_key(self, tx: Tracer) -> Any:
        return tx.specialize(self.sym)

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        self.needs_plain(tx, "str()")

    def tp_format(self, tx: Tracer, spec: str) -> VariableTracker:
        return UnreadTextVariable.of(tx, format, [self, tx.constant(spec)])

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if isinstance(self.sym, torch.SymInt) and not hasattr(torch.SymInt, name) and hasattr(int, name):
            if not callable(getattr(int, name)):
                self.needs_plain(tx, f"the attribute {name!r}")
            return BuiltinMethodVariable(self, name)
        if name in OPERATOR_METHODS or name == "conjugate":
            return BuiltinMethodVariable(self, name)
        return tx.constant(tx.specialize(self.sym)).tp_getattro(tx, name)

    def call_method(
        self, tx: Tracer, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """An operator by its special method; `conjugate`, which is the number itself."""
        if name == "conjugate" and not args:
            return self
        if name in ("__index__", "__int__", "__float__", "__complex__") or not hasattr(torch.SymInt, name):
            self.needs_plain(tx, f"{name}()")
        if name in UNARY_DUNDERS and not args:
            return abstract.unary(tx, UNARY_DUNDERS[name], self)
        if len(args) != 1 or kwargs:
            return tx.constant(tx.specialize(self.sym)).call_method(tx, name, args, kwargs)  # type: ignore[attr-defined, no-any-return]
        other = args[0].realize(tx)
        if name in COMPARE_DUNDERS:
            found = self.tp_richcompare(tx, COMPARE_DUNDERS[name], other)
        else:
            pair = (other, self) if name[2:-2] not in BINARY_DUNDERS else (self, other)
            found = self.nb_binary(tx, BINARY_DUNDERS[name[2:-2].removeprefix("r")], *pair)
        return found if isinstance(found, VariableTracker) else tx.constant(NotImplemented)

    def reconstruct(self, to: Rebuilder) -> None:
        to.graph_output(self)


class UnreadTextVariable(VariableTracker):
    """Text with symbols in it: they become numbers when the text is looked at, if it ever is.

    Args:
        function: makes the text; no user code.
        operands: of what: symbols, constants, other such texts.
    """

    __slots__ = ("function", "operands", "real")

    def __init__(self, function: Callable[..., str], operands: Sequence[VariableTracker]) -> None:
        super().__init__()
        self.function = function
        self.operands = operands
        self.real: VariableTracker | None = None

    @classmethod
    def of(
        cls, tx: Tracer, function: Callable[..., str], operands: Sequence[VariableTracker]
    ) -> VariableTracker:
        """The text, looked at now if making it raises, or if bools are among the symbols."""
        made = cls(function, operands)
        if any(isinstance(o, SymNumberVariable) and o.is_unbacked() for o in operands):
            return made
        try:
            made.hinted()
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError):
            return made.realize(tx)
        return made

    def stays_unread(self) -> bool:
        """Whether it is made of the numbers when the frame ends, as torch does where it can't or needn't know them."""
        return self.function is not format or any(
            isinstance(o, SymNumberVariable) and o.is_unbacked() for o in self.operands
        )

    def hinted(self) -> str:
        """The text of the symbols' values, without depending on them.

        Raises:
            TypeError: an operand has no value.
        """
        return self.function(*map(_hint, self.operands))

    def realize(self, tx: Tracer) -> VariableTracker:
        if self.real is None:
            values = [operand.realize(tx).as_constant(tx) for operand in self.operands]
            try:
                self.real = tx.constant(self.function(*values))
            except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
                tx.raise_(type(error), *error.args)
        return self.real

    def get_type(self) -> type:
        return str

    def describe(self) -> str:
        return "a text"

    def children(self) -> Sequence[VariableTracker]:
        return self.operands if self.real is None else (self.real,)

    def reconstruct(self, to: Rebuilder) -> None:
        if self.real is not None:
            to.load(self.real)
            return
        to.call_helper(self.function, *[lambda o=o: to.load(o) for o in self.operands])
        to.remember(self)


for _name in DELAYED_SLOTS:
    setattr(UnreadTextVariable, _name, getattr(LazyVariable, _name))


def joined(*parts: str) -> str:
    """The text of an f-string from the texts of its parts."""
    return "".join(parts)


def _hint(operand: VariableTracker) -> Any:
    if isinstance(operand, UnreadTextVariable):
        return operand.hinted()
    if isinstance(operand, SymNumberVariable):
        if not isinstance(operand.sym, torch.SymBool) and operand.sym.node.has_hint():
            return operand.sym.node.hint
    elif operand.is_constant() and hasattr(operand, "value"):
        return operand.value
    raise TypeError("looked at now")


def equal_numbers(
    tx: Tracer,
    pairs: Sequence[tuple[VariableTracker, VariableTracker]],
    which: Callable[[Iterable[bool]], bool],
) -> VariableTracker | None:
    """Whether all or any of the pairs are equal ints, as one question: it makes no symbol a number by itself.

    Args:
        tx: the translator.
        pairs: what is compared.
        which: `all` or `any`.

    Returns:
        The answer, symbolic until something depends on it; None where something else than ints is compared, or no
        symbol is among them.
    """
    sides = [side for pair in pairs for side in pair]
    if not any(type(side) is SymNumberVariable for side in sides):
        return None
    if any(isinstance(side, LazyVariable) or side.get_type() is not int for side in sides):
        return None
    settles = which is any
    asked: list[Any] = []
    for a, b in pairs:
        found = a is b or tx.evaluate_symbolic(operator.eq, [a.as_meta(tx), b.as_meta(tx)])
        if not isinstance(found, torch.SymBool):
            if found is settles:
                return tx.constant(settles)
        else:
            asked.append(found)
    if not asked:
        return tx.constant(not settles)
    return SymNumberVariable(functools.reduce(operator.or_ if settles else operator.and_, asked))


def _known(tx: Tracer, value: VariableTracker) -> VariableTracker:
    """An operand of an operation that there is none of for symbols: a symbol's value is looked at."""
    return tx.constant(tx.specialize(value.sym)) if isinstance(value, SymNumberVariable) else value


def _known_bool(tx: Tracer, value: VariableTracker, both: bool = False) -> VariableTracker:
    """An operand of an operation on symbols: a bool is looked at, and beside another number counts as the int it is."""
    if value.get_type() is not bool:
        return value
    found: bool = value.as_constant(tx)
    return tx.constant(found if both else int(found))


SYM_FORMS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {  # what computes with symbols
    math.sqrt: torch.sym_sqrt if hasattr(torch, "sym_sqrt") else math.sqrt,
    max: torch.sym_max,
    min: torch.sym_min,
    math.floor: math.floor,
    math.ceil: math.ceil,
    math.trunc: math.trunc,
    **{
        getattr(math, name): getattr(torch, f"_sym_{name}")
        for name in ("log2", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan")
        if hasattr(torch, f"_sym_{name}")
    },
}
