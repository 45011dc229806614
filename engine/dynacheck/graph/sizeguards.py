"""Guards on sizes, from what a ShapeEnv holds: replacements, guards, ranges, assertions on inputs."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from dynacheck.graph.expressions import Step, UnknownExpression, constant, postfix
from dynacheck.guards.shapes import infix
from dynacheck.sources import Node, UserLine


@dataclass(frozen=True, slots=True)
class Dim:
    """What to make of one size, stride or number of an input.

    Args:
        kind: "static": the number itself. "auto": a symbol of its own (history made it dynamic). "duck": one
            symbol for equal values (`dynamic=True`). "marked": a symbol of its own that must not be
            specialised. "unbacked": a symbol that no decision may depend on.
        min: least value the user allows (marked, unbacked).
        max: greatest value the user allows.
        mark: what the user wrote, for messages: "mark_dynamic(x, 0)".
    """

    kind: Literal["static", "auto", "duck", "marked", "unbacked"]
    min: int | None = None
    max: int | None = None
    mark: str = ""


class Layout(NamedTuple):
    """What to make of the sizes of a tensor.

    Args:
        node: where the tensor comes from.
        sizes: what to make of each size.
        strides: "static" to infer from the sizes, "auto" for a symbol of its own.
        inner: of a traceable wrapper, the tensors it is made of, by attribute.
        base: of a view, what to make of the sizes of its base: torch looks at these, too.
    """

    node: Node
    sizes: Sequence[Dim]
    strides: Sequence[Dim]
    inner: Mapping[str, Layout] = {}
    base: Layout | None = None

    @property
    def is_static(self) -> bool:
        """Whether the tensor has no symbols; traceable wrappers are never taken for static."""
        own = not self.inner and all(d.kind == "static" for d in (*self.sizes, *self.strides))
        return own and (self.base is None or self.base.is_static)


@dataclass(frozen=True, slots=True)
class SymbolSource:
    """A property of an input that is symbolic.

    Args:
        node: the tensor, or the number.
        what: "size", "stride", "offset", "int" or "float".
        index: which dimension, for sizes and strides.
    """

    node: Node
    what: str
    index: int

    def load(self, slot: int) -> Step:
        """The step that loads it in a guard program.

        Args:
            slot: number of the node among the guard's nodes.

        Returns:
            The step.
        """
        return (self.what, slot, self.index) if self.what in ("size", "stride") else (self.what, slot)

    @property
    def path(self) -> str:
        """As logs spell it: `L['x'].size()[0]`."""
        return infix((self.load(0),), [self.node.path])


Slot: TypeAlias = SymbolSource


@dataclass(frozen=True, slots=True)
class SizeGuard:
    """A condition on inputs.

    Args:
        expression: the sympy expression over the attempt's symbols.
        program: the same as a postfix program for `guards.shapes.SizeExpression`.
        nodes: the values the program's slots stand for.
        line: the user's line that needed it, or None (0/1 specialisation, the backend).
        runtime: whether it comes from a run-time assertion (`torch._check` on unbacked inputs).
    """

    expression: Any
    program: tuple[Step, ...]
    nodes: tuple[Node, ...]
    line: UserLine | None
    runtime: bool = False

    @property
    def text(self) -> str:
        """As logs spell it: `2 <= L['a'].size()[0]`."""
        return infix(self.program, [n.path for n in self.nodes])


@dataclass(frozen=True, slots=True)
class ConstraintViolation:
    """A mark that the trace broke.

    Args:
        source: the marked property.
        mark: what the user wrote.
        value: the constant it became, or None when it is only narrower than the mark allows.
        allowed: the range that is left, as text.
        line: the user's line that specialised it, or None if no line of the user's did.
    """

    source: SymbolSource
    mark: str
    value: int | float | None
    allowed: str
    line: UserLine | None

    def __str__(self) -> str:
        return self.message

    @property
    def message(self) -> str:
        """What happened, for the user."""
        what = f"{self.source.node.user_path}.size()[{self.source.index}]"
        if self.source.what != "size":
            what = self.source.path
        became = (
            f"was specialised to {self.value}"
            if self.value is not None
            else f"was narrowed to {self.allowed}"
        )
        where = f" at {self.line}" if self.line is not None else ""
        if self.line is not None:
            text = (self.line.text or linecache.getline(self.line.file, self.line.line)).strip()
            where += f" (`{text}`)" if text else ""
        return f"{what} is marked dynamic{f' ({self.mark})' if self.mark else ''} but {became}{where}"


def spelled(expr: Any, sources: Mapping[Any, Sequence[SymbolSource]]) -> str:
    """An expression in the user's words: `x.size()[0] * 2`.

    Args:
        expr: a sympy expression.
        sources: the properties that each symbol is the expression of.
    """
    nodes: dict[Node, int] = {}

    def load(symbol: Any) -> Step:
        source = sources[symbol][0]
        return source.load(nodes.setdefault(source.node, len(nodes)))

    try:
        return infix(postfix(expr, load), [node.user_path for node in nodes])
    except (KeyError, UnknownExpression):
        return "a number that only the graph knows"


class _Collector:
    """Turns conditions over symbols into conditions over inputs."""

    def __init__(self, env: Any, sources: Mapping[Any, Sequence[SymbolSource]]) -> None:
        self.env = env
        self.sources = sources
        self.out: list[SizeGuard] = []
        self.seen: set[Any] = set()

    def line(self, sloc: Any) -> UserLine | None:
        """The user's line noted with a guard."""
        lines: dict[str, UserLine] = getattr(self.env, "__dict__", {}).get("user_lines", {})
        return lines.get(getattr(sloc, "maybe_user_loc", None) or "")

    def known(self, expr: Any) -> bool:
        """Whether all symbols of an expression are inputs'."""
        return all(s in self.sources for s in expr.free_symbols)

    def add(
        self, expr: Any, line: UserLine | None, at: SymbolSource | None = None, runtime: bool = False
    ) -> None:
        """Append a condition; with `at`, the condition that this property equals the expression."""
        key = (expr, at)
        if key in self.seen:
            return
        self.seen.add(key)
        nodes: dict[Node, int] = {}

        def load(symbol: Any) -> Step:
            source = self.sources[symbol][0]
            return source.load(nodes.setdefault(source.node, len(nodes)))

        if at is not None:
            first = at.load(nodes.setdefault(at.node, 0))
            program: tuple[Step, ...] = (first, *postfix(expr, load), ("eq",))
        else:
            program = postfix(expr, load)
        self.out.append(SizeGuard(expr, program, tuple(nodes), line, runtime))


def collect(
    env: Any, inputs: Iterable[tuple[SymbolSource, Any, Dim]], sources: Mapping[Any, Sequence[SymbolSource]]
) -> list[SizeGuard]:
    """The conditions on inputs that a ShapeEnv holds.

    Args:
        env: the ShapeEnv.
        inputs: each symbolic property of an input with the expression it was given and its policy.
        sources: the properties that each symbol is the expression of.

    Returns:
        The conditions, without duplicates and without those that others imply.
    """
    c = _Collector(env, sources)
    import sympy  # type: ignore[import-untyped]

    for at, given, _ in inputs:
        expr = env.replace(given)
        if expr.is_Symbol and sources.get(expr, (None,))[0] == at:
            continue
        if c.known(expr):
            c.add(expr, c.line(_first_sloc(env, given)), at)
    for guard in env.guards:
        expr = guard.expr
        if _implied(env, expr):
            continue
        expr = env.simplify(expr)
        if expr is not sympy.true and c.known(expr):
            c.add(expr, c.line(guard.sloc))
    for symbol in sources:
        if env.replace(symbol) == symbol:
            _ranges(c, symbol)
    for asserts in env.deferred_runtime_asserts.values():
        for check in asserts:
            expr = env.simplify(check.expr)
            if expr is not sympy.true and c.known(expr):
                c.add(expr, None, runtime=True)
    return c.out


def _implied(env: Any, expr: Any) -> bool:
    """Whether ranges and replacements alone decide a condition."""
    static = getattr(env, "_maybe_evaluate_static", None)
    return static is not None and static(expr, axioms=()) is not None


def _is_finite(bound: Any) -> bool:
    """Whether a bound of a range says anything."""
    return bool(bound.is_Integer or bound.is_Float) and abs(bound) < 2**63 - 1


def _ranges(c: _Collector, symbol: Any) -> None:
    """Append the bounds of a symbol."""
    import sympy

    range_ = c.env.var_to_range.get(symbol)
    if range_ is None:
        return
    slocs = getattr(c.env, "var_to_range_sloc", {}).get(symbol)
    at = c.sources[symbol][0]
    size = at.what in ("size", "stride", "offset")
    if _is_finite(range_.lower) and not (size and range_.lower <= 0):
        c.add(sympy.Le(range_.lower, symbol, evaluate=False), c.line(getattr(slocs, "lower", None)))
    if _is_finite(range_.upper):
        c.add(sympy.Le(symbol, range_.upper, evaluate=False), c.line(getattr(slocs, "upper", None)))


def _first_sloc(env: Any, expr: Any) -> Any:
    """Where the first replacement of a symbol of an expression was made."""
    slocs = getattr(env, "replacements_slocs", {})
    for symbol in sorted(expr.free_symbols, key=str):
        if symbol in slocs:
            return slocs[symbol]
    return None


def violations(env: Any, inputs: Iterable[tuple[SymbolSource, Any, Dim]]) -> list[ConstraintViolation]:
    """The marks that a trace broke.

    Args:
        env: the ShapeEnv.
        inputs: each symbolic property of an input with the expression it was given and its policy.

    Returns:
        One record per broken mark.
    """
    c = _Collector(env, {})
    out = []
    for at, given, policy in inputs:
        if policy.kind != "marked" or at.what == "stride":
            continue
        expr = env.replace(given)
        if expr.is_number:
            line = c.line(_first_sloc(env, given))
            out.append(ConstraintViolation(at, policy.mark, constant(expr), "", line))
            continue
        if policy.min is None and policy.max is None:
            continue
        out += _refusals(c, at, policy, expr)
        range_ = env.bound_sympy(expr)
        low = 2 if policy.min is None else policy.min
        narrower = range_.lower > low or (policy.max is not None and range_.upper < policy.max)
        if narrower or (policy.max is None and _is_finite(range_.upper)):
            slocs = getattr(env, "var_to_range_sloc", {}).get(given)
            lines = [c.line(getattr(slocs, side, None)) for side in ("lower", "upper")]
            line = next((x for x in lines if x is not None), None)
            out.append(ConstraintViolation(at, policy.mark, None, f"[{range_.lower}, {range_.upper}]", line))
    return out


def _refusals(c: _Collector, at: SymbolSource, policy: Dim, symbol: Any) -> list[ConstraintViolation]:
    """Conditions on a dimension with bounds, within which all sizes are to be served."""
    out = []
    for guard in c.env.guards:
        if _implied(c.env, guard.expr):
            continue
        expr = c.env.simplify(guard.expr)
        if expr.free_symbols == {symbol}:
            condition = infix(postfix(expr, lambda _: at.load(0)), [at.node.user_path])
            out.append(ConstraintViolation(at, policy.mark, None, condition, c.line(guard.sloc)))
    return out
