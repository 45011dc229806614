"""Symbolic size expressions as operators over operands: for postfix guard programs and for graph nodes.

Expressions are torch's sympy expressions; their classes are recognised by name, so that nothing heavy is
imported here.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

import torch

Step = tuple[Any, ...]

_BINARY: Final = {
    "FloorDiv": "floordiv",
    "CleanDiv": "floordiv",
    "Mod": "mod",
    "PythonMod": "mod",
    "IntTrueDiv": "truediv",
    "FloatTrueDiv": "truediv",
    "Pow": "pow",
    "PowByNatural": "pow",
    "FloatPow": "pow",
    "LShift": "lshift",
    "RShift": "rshift",
    "BitwiseFn_bitwise_and": "bitand",
    "BitwiseFn_bitwise_or": "bitor",
    "BitwiseFn_bitwise_xor": "bitxor",
    "RoundDecimal": "rounddigits",
    "Equality": "eq",
    "Unequality": "ne",
    "StrictLessThan": "lt",
    "LessThan": "le",
    "StrictGreaterThan": "gt",
    "GreaterThan": "ge",
}
_FOLDED: Final = {"Add": "add", "Mul": "mul", "Max": "max", "Min": "min", "And": "and", "Or": "or"}
_UNARY: Final = {
    "Not": "not",
    "Abs": "abs",
    "ToFloat": "float",
    "TruncToInt": "int",
    "FloorToInt": "floor",
    "CeilToInt": "ceil",
    "RoundToInt": "round",
    "floor": "floor",
    "ceiling": "ceil",
}
_OPAQUE = "OpaqueUnaryFn_"

FOLDED: Final = frozenset(_FOLDED.values())
"""Operators that take any number of operands, folded from the left."""

FX_TARGETS: Final[dict[str, Callable[..., Any]]] = {
    "add": operator.add,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "truediv": operator.truediv,
    "pow": operator.pow,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
    "rounddigits": round,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "max": torch.sym_max,
    "min": torch.sym_min,
    "and": operator.and_,
    "or": operator.or_,
    "not": torch.sym_not,
    "abs": operator.abs,
    "float": torch.sym_float,
    "int": torch.sym_int,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "where": torch.sym_ite,
    **{
        name: getattr(torch, f"_sym_{name}")
        for name in (
            "sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "exp", "log", "log2",
        )
        if hasattr(torch, f"_sym_{name}")
    },
}  # fmt: skip
"""What a graph records for each operator."""


class UnknownExpression(Exception):
    """An expression has an operator that guards don't know."""


def parts(expr: Any) -> tuple[str, tuple[Any, ...]]:
    """An expression's operator, in the names of guard programs, and its operands.

    Args:
        expr: a sympy expression that is no number and no symbol.

    Returns:
        The operator's name, and its operands; operators of any number of operands are folded from the left.

    Raises:
        UnknownExpression: guards have no such operator.
    """
    name = type(expr).__name__
    if name in _BINARY or name in _FOLDED:
        return _BINARY.get(name) or _FOLDED[name], expr.args
    if name in _UNARY:
        return _UNARY[name], expr.args
    if name == "ModularIndexing":
        base, divisor, modulus = expr.args
        return "mod", (base // divisor, modulus)
    if name == "Where" and len(expr.args) == 3:
        return "where", expr.args
    if name == "Piecewise" and len(expr.args) == 2 and expr.args[1].cond == True:  # noqa: E712 - of sympy
        return "where", (expr.args[0].cond, expr.args[0].expr, expr.args[1].expr)
    if name.startswith(_OPAQUE):
        return name[len(_OPAQUE) :], expr.args
    raise UnknownExpression(f"{name} in {expr}")


def is_known(expr: Any) -> bool:
    """Whether guards and graphs have all operators of an expression.

    Args:
        expr: a sympy expression.
    """
    if expr.is_Symbol or is_constant(expr):
        return True
    try:
        return all(map(is_known, parts(expr)[1]))
    except UnknownExpression:
        return False


def is_constant(expr: Any) -> bool:
    """Whether an expression is a number or a truth value.

    Args:
        expr: a sympy expression.

    Returns:
        Whether `constant` gives its value.
    """
    return bool(expr.is_number) or type(expr).__name__ in ("BooleanTrue", "BooleanFalse")


def constant(expr: Any) -> int | float | bool:
    """The Python value of a number or truth value.

    Args:
        expr: a constant sympy expression.

    Returns:
        An int for integers, a bool for truth values, a float otherwise.
    """
    if type(expr).__name__ in ("BooleanTrue", "BooleanFalse"):
        return bool(expr)
    if expr.is_integer:
        return int(expr)
    return float(expr)


def postfix(expr: Any, load: Callable[[Any], Step]) -> tuple[Step, ...]:
    """An expression as a postfix program.

    Args:
        expr: a sympy expression.
        load: the step that loads a symbol.

    Returns:
        The steps: loads, ("const", value), and operators.

    Raises:
        UnknownExpression: guards have no such operator.
    """
    if expr.is_Symbol:
        return (load(expr),)
    if is_constant(expr):
        return (("const", constant(expr)),)
    if type(expr).__name__ == "Mul" and expr.args[0] == -1 and len(expr.args) == 2:
        return (*postfix(expr.args[1], load), ("neg",))
    op, operands = parts(expr)
    steps = list(postfix(operands[0], load))
    folded = type(expr).__name__ in _FOLDED
    for i, operand in enumerate(operands[1:], 1):
        steps.extend(postfix(operand, load))
        if folded or i == len(operands) - 1:
            steps.append((op,))
    if len(operands) == 1:
        steps.append((op,))
    return tuple(steps)
