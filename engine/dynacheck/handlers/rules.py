"""What users said about a function (`allow_in_graph`, `disallow_in_graph` and their relatives), followed before any
other rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dynacheck import errors, marks, reasons
from dynacheck.variables.base import Tracer, VariableTracker

Args = Sequence[VariableTracker]
Named = dict[str, VariableTracker]


def follow(tx: Tracer, fn: VariableTracker, value: Any, args: Args, kwargs: Named) -> VariableTracker | None:
    """Call a function as the user said.

    Args:
        tx: the translator.
        fn: the function's tracker.
        value: the function.
        args: positional arguments.
        kwargs: keyword arguments.

    Returns:
        The result's tracker, or None if nothing was said about it.
    """
    rule = marks.rule_of(value)
    if rule is None:
        return None
    return _RULES[rule.kind](tx, fn, value, rule, args, kwargs)


def _recorded(
    tx: Tracer, fn: VariableTracker, value: Any, rule: marks.Rule, args: Args, kwargs: Named
) -> VariableTracker:
    return tx.record("call_function", value, args, kwargs)


def _disallowed(
    tx: Tracer, fn: VariableTracker, value: Any, rule: marks.Rule, args: Args, kwargs: Named
) -> VariableTracker:
    tx.break_(reasons.SKIPPED_CALL, call=fn.describe(), why="disallow_in_graph was called on it")


def _forbidden(
    tx: Tracer, fn: VariableTracker, value: Any, rule: marks.Rule, args: Args, kwargs: Named
) -> VariableTracker:
    place = tx.where()
    where = f" at {place.file}:{place.line}" if place else ""
    text = f"{fn.describe()} must not be called in compiled code (forbid_in_graph), but is{where}"
    raise errors.make(errors.Unsupported, text)


def _substituted(
    tx: Tracer, fn: VariableTracker, value: Any, rule: marks.Rule, args: Args, kwargs: Named
) -> VariableTracker:
    return tx.call_python(rule.replacement, *args, **kwargs)


def _constant(
    tx: Tracer, fn: VariableTracker, value: Any, rule: marks.Rule, args: Args, kwargs: Named
) -> VariableTracker:
    """The one call, while translating, that the user asked for."""
    real = [_real(tx, fn, a) for a in args]
    named = {name: _real(tx, fn, a) for name, a in kwargs.items()}
    return tx.object(value(*real, **named))


def _real(tx: Tracer, fn: VariableTracker, arg: VariableTracker) -> Any:
    """An argument as the program has it."""
    found = arg.realize(tx)
    if found.is_constant():
        return found.as_constant(tx)
    if found.node is None:
        tx.break_(
            reasons.UNKNOWN_CALL, what=f"{fn.describe()}, assumed to be constant, on a value of the trace"
        )
    return found.node.peek()


_RULES: Final[
    dict[str, Callable[[Tracer, VariableTracker, Any, marks.Rule, Args, Named], VariableTracker]]
] = {
    marks.ALLOW: _recorded,
    marks.NONSTRICT: _recorded,
    marks.DISALLOW: _disallowed,
    marks.FORBID: _forbidden,
    marks.SUBSTITUTE: _substituted,
    marks.CONSTANT: _constant,
}
