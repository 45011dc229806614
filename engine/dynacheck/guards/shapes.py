"""Guards over sizes, strides and numbers: expressions as postfix programs over 64-bit integers and doubles.

The native program evaluates them without Python objects; what overflows is evaluated again here, where integers have
no bounds. An expression that is undefined (division by zero) fails.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import torch

from dynacheck.guards.base import Change, Guard, Slots
from dynacheck.sources import is_a

Step = tuple[Any, ...]
"""("size", slot, dim) · ("stride", slot, dim) · ("offset", slot) · ("int", slot) · ("float", slot) · ("const", value) ·
(operator,) with its operands already on the stack. Loads have operands, operators have none."""


def _where(condition: Any, yes: Any, no: Any) -> Any:
    return yes if condition else no


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of an expression: its arity, meaning and spelling; `native` says that the C program knows it."""

    arity: int
    apply: Callable[..., Any]
    spelling: str
    native: bool = True


OPERATORS: Final[dict[str, Operator]] = {
    "add": Operator(2, operator.add, "{} + {}"),
    "sub": Operator(2, operator.sub, "{} - {}"),
    "mul": Operator(2, operator.mul, "{} * {}"),
    "floordiv": Operator(2, operator.floordiv, "{} // {}"),
    "mod": Operator(2, operator.mod, "{} % {}"),
    "truediv": Operator(2, operator.truediv, "{} / {}"),
    "pow": Operator(2, operator.pow, "{} ** {}"),
    "min": Operator(2, min, "min({}, {})"),
    "max": Operator(2, max, "max({}, {})"),
    "neg": Operator(1, operator.neg, "-{}"),
    "abs": Operator(1, abs, "abs({})"),
    "eq": Operator(2, operator.eq, "{} == {}"),
    "ne": Operator(2, operator.ne, "{} != {}"),
    "lt": Operator(2, operator.lt, "{} < {}"),
    "le": Operator(2, operator.le, "{} <= {}"),
    "gt": Operator(2, operator.gt, "{} > {}"),
    "ge": Operator(2, operator.ge, "{} >= {}"),
    "and": Operator(2, lambda a, b: bool(a) and bool(b), "{} and {}"),
    "or": Operator(2, lambda a, b: bool(a) or bool(b), "{} or {}"),
    "not": Operator(1, operator.not_, "not {}"),
    "where": Operator(3, _where, "({1} if {0} else {2})"),
    "float": Operator(1, float, "float({})"),
    "int": Operator(1, int, "int({})"),
    "floor": Operator(1, math.floor, "math.floor({})"),
    "ceil": Operator(1, math.ceil, "math.ceil({})"),
    "round": Operator(1, round, "round({})"),
    "bitand": Operator(2, operator.and_, "{} & {}"),
    "bitor": Operator(2, operator.or_, "{} | {}"),
    "bitxor": Operator(2, operator.xor, "{} ^ {}"),
    "rounddigits": Operator(2, round, "round({}, {})", native=False),
    "lshift": Operator(2, operator.lshift, "{} << {}"),
    "rshift": Operator(2, operator.rshift, "{} >> {}"),
    **{
        name: Operator(1, getattr(math, name), f"math.{name}({{}})")
        for name in (
            "sqrt",
            "exp",
            "log",
            "log2",
            "sin",
            "cos",
            "tan",
            "sinh",
            "cosh",
            "tanh",
            "asin",
            "acos",
            "atan",
        )
    },
}

_MAX_STACK: Final = 32  # of the native evaluator


class _Undefined(Exception):
    """The expression has no value for these numbers, or a slot doesn't hold what it should."""


def _load(step: Step, slots: Slots) -> Any:
    if step[0] == "const":
        return step[1]
    value = slots[step[1]]
    if step[0] in ("int", "float"):
        if type(value) is not (int if step[0] == "int" else float):
            raise _Undefined
        return value
    if not is_a(value, torch.Tensor):
        raise _Undefined
    with torch._C.DisableTorchFunction():
        try:
            if step[0] == "offset":
                return value.storage_offset()
            dims = value.size() if step[0] == "size" else value.stride()
        except RuntimeError as e:
            raise _Undefined from e
    if step[2] >= len(dims):
        raise _Undefined
    return dims[step[2]]


def evaluate(program: Sequence[Step], slots: Slots) -> Any:
    """The value of a postfix program, or None where it is undefined."""
    stack: list[Any] = []
    try:
        for step in program:
            if len(step) > 1:
                stack.append(_load(step, slots))
            else:
                op = OPERATORS[step[0]]
                operands = stack[-op.arity :]
                del stack[-op.arity :]
                stack.append(op.apply(*operands))
    except (_Undefined, ArithmeticError, ValueError):
        return None
    return stack[0]


def _spell(step: Step, paths: Sequence[str]) -> str:
    if step[0] == "const":
        return repr(step[1])
    path = paths[step[1]]
    return {"size": "{}.size()[{}]", "stride": "{}.stride()[{}]", "offset": "{}.storage_offset()"}.get(
        step[0], "{}"
    ).format(path, *step[2:])


def infix(program: Sequence[Step], paths: Sequence[str]) -> str:
    """The expression as Python spells it: `2 <= L['a'].size()[0]`."""
    stack: list[tuple[str, bool]] = []
    for step in program:
        if len(step) > 1:
            stack.append((_spell(step, paths), False))
            continue
        op = OPERATORS[step[0]]
        operands = stack[-op.arity :]
        del stack[-op.arity :]
        call = op.spelling.endswith(")")
        texts = [f"({t})" if compound and not call else t for t, compound in operands]
        stack.append((op.spelling.format(*texts), not call))
    return stack[0][0]


def with_numbers(program: Sequence[Step], slots: Slots) -> str:
    """The expression with the numbers of now in place of what they are: `8 == 8`."""
    loads = {step: ("const", evaluate((step,), slots)) for step in program if len(step) > 1}
    return infix([loads.get(step, step) for step in program], ())


def _depth(program: Sequence[Step]) -> int:
    depth = most = 0
    for step in program:
        depth += 1 if len(step) > 1 else 1 - OPERATORS[step[0]].arity
        most = max(most, depth)
        if depth < 1:
            raise ValueError("malformed expression")
    if depth != 1:
        raise ValueError("malformed expression")
    return most


@dataclass(frozen=True, slots=True)
class SizeExpression(Guard):
    """A condition on sizes, strides, offsets, ints and floats holds.

    Args:
        program: postfix steps; `slot` counts the values of the relation.
        held: the expression with the numbers for which it was assumed (`8 == 8`), for people.

    Raises:
        ValueError: the steps are not one expression.
        KeyError: an operator is not one of OPERATORS.
    """

    program: tuple[Step, ...]
    held: str = field(default="", compare=False)
    native_op: ClassVar[str] = "EXPRESSION"

    def __post_init__(self) -> None:
        _depth(self.program)

    def native_form(self) -> tuple[str, tuple[object, ...]]:
        for step in self.program:
            if step[0] == "const":
                if type(step[1]) is int and not -(2**63) <= step[1] < 2**63:
                    return "PYCHECK", ()
            elif len(step) == 1 and not OPERATORS[step[0]].native:
                return "PYCHECK", ()
        if _depth(self.program) > _MAX_STACK:
            return "PYCHECK", ()
        return "EXPRESSION", (self.program,)

    def check(self, slots: Slots) -> bool:
        return bool(evaluate(self.program, slots))

    def explain(self, slots: Slots) -> Change:
        return self.changes(slots)[0]

    def changes(self, slots: Slots, paths: Sequence[str] = ()) -> list[Change]:
        names = paths or [str(i) for i in range(len(slots))]
        loads = list(dict.fromkeys(s for s in self.program if len(s) > 1 and s[0] != "const"))
        now = [evaluate((load,), slots) for load in loads]
        if len(loads) == 1:
            load, kind = loads[0], {"size": "size", "stride": "stride"}.get(loads[0][0], "value")
            detail = f"{load[0]} of dim {load[2]}" if len(load) > 2 else ""
            return [Change(kind, infix(self.program, names), now[0], detail)]
        spelled = [_spell(load, names) for load in loads]
        return [Change("expression", infix(self.program, names), dict(zip(spelled, now)), self.held)]

    def text(self, paths: Sequence[str]) -> str:
        return infix(self.program, paths)
