"""What users say about functions, classes and dimensions of tensors: stored here, read while translating.

The same marks made through torch are honoured: those that torch keeps as attributes are the same attributes,
    those that it keeps in tables are looked up there if its compiler is loaded.
"""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from dynacheck import interop

F = TypeVar("F", bound=Callable[..., Any])

ALLOW: Final = "allow"
"""A call becomes a node of the graph; the function isn't looked into."""
NONSTRICT: Final = "nonstrict"
"""Like ALLOW, for functions over structures of tensors; what it closes over is a constant."""
DISALLOW: Final = "disallow"
"""A call is a graph break."""
FORBID: Final = "forbid"
"""A call is an error."""
CONSTANT: Final = "constant"
"""What it returns is a constant of the trace."""
SUBSTITUTE: Final = "substitute"
"""Another function is traced in its place."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a user said about a function.

    Args:
        kind: ALLOW, NONSTRICT, DISALLOW, FORBID, CONSTANT or SUBSTITUTE.
        replacement: the function to trace instead.
    """

    kind: str
    replacement: Any = None


class _Rules:
    """Rules by identity of the object, which is held weakly where it can be."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[Any, Rule]] = {}

    def set(self, obj: Any, rule: Rule | None) -> None:
        key = id(obj)
        if rule is None:
            self._rows.pop(key, None)
            return
        try:
            held: Any = weakref.ref(obj, lambda _: self._rows.pop(key, None))
        except TypeError:

            def held(obj: Any = obj) -> Any:  # C functions live as long as the process
                return obj

        self._rows[key] = (held, rule)

    def get(self, obj: Any) -> Rule | None:
        row = self._rows.get(id(obj))
        return row[1] if row is not None and row[0]() is obj else None


_rules = _Rules()


def rule_of(obj: Any) -> Rule | None:
    """What a user said about a function or class, here or through torch; None if nothing.

    Args:
        obj: the function.
    """
    found = _rules.get(obj)
    if found is not None:
        return found
    kind = interop.torch_rule(obj)
    if kind is not None:
        return Rule(*kind)
    namespace = getattr(obj, "__dict__", None)
    if namespace and namespace.get("_dynamo_marked_constant"):
        return Rule(CONSTANT)
    if namespace and namespace.get("_dynamo_forbidden"):
        return Rule(FORBID)
    return None


def _each(fn: Any, say: Callable[[Any], Any]) -> Any:
    return [say(f) for f in fn] if isinstance(fn, (list, tuple)) else say(fn)


def _callable(fn: Any, who: str) -> Any:
    if not callable(fn):
        raise TypeError(f"{who} takes a callable, not {type(fn).__name__}")
    return fn


def allow_in_graph(fn: Any) -> Any:
    """Record calls of a function in the graph as they are, without looking into it.

    Nothing that it reads besides its arguments is guarded: a global or attribute that changes goes unnoticed.

    Args:
        fn: the function, or a list of them; also as a decorator.

    Returns:
        `fn`.

    Example:
        >>> @allow_in_graph
        ... def opaque(x):
        ...     return x + 1
    """

    def say(f: Any) -> Any:
        _rules.set(_callable(f, "allow_in_graph"), Rule(ALLOW))
        return f

    return _each(fn, say)


def disallow_in_graph(fn: Any) -> Any:
    """Break the graph at every call of a function (`torch.sub`, say).

    Args:
        fn: the function, or a list of them.

    Returns:
        `fn`.
    """

    def say(f: Any) -> Any:
        _rules.set(_callable(f, "disallow_in_graph"), Rule(DISALLOW))
        return f

    return _each(fn, say)


def nonstrict_trace(traceable_fn: F) -> F:
    """Record calls of a function as one node; a backend may look into it, the engine doesn't.

    Tensors that it closes over are constants: updates of them aren't seen and gradients don't reach them.

    Args:
        traceable_fn: the function.

    Returns:
        A function to be called in its place.
    """
    _callable(traceable_fn, "nonstrict_trace")

    @functools.wraps(traceable_fn)
    def traced(*args: Any, **kwargs: Any) -> Any:
        return traceable_fn(*args, **kwargs)

    _rules.set(traced, Rule(NONSTRICT))
    return traced  # type: ignore[return-value]


def assume_constant_result(fn: F) -> F:
    """Take what a function returns while translating as a constant: it isn't called again and nothing guards
    it.

    Args:
        fn: the function.

    Returns:
        `fn`.
    """
    _callable(fn, "assume_constant_result")._dynamo_marked_constant = True
    return fn


def forbid_in_graph(fn: Any) -> Any:
    """Make a call of a function in compiled code an error.

    Args:
        fn: the function, or a list of them.

    Returns:
        `fn`.
    """

    def say(f: Any) -> Any:
        _callable(f, "forbid_in_graph")._dynamo_forbidden = True
        return f

    return _each(fn, say)


def substitute_in_graph(
    original_fn: Callable[..., Any],
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
) -> Callable[[F], Callable[..., Any]]:
    """Trace a Python function in place of one that can't be looked into, usually C code.

    Args:
        original_fn: the function that programs call.
        can_constant_fold_through: accepted as torch does; calls with constant arguments are computed anyway.
        skip_signature_check: don't require equal signatures.

    Returns:
        A decorator for the replacement; it returns a function that calls the original.

    Raises:
        TypeError: not a function, or signatures differ.
        ValueError: there is a replacement already.

    Example:
        >>> import operator
        >>> @substitute_in_graph(operator.indexOf)
        ... def index_of(a, b, /):
        ...     for i, item in enumerate(a):
        ...         if item is b or item == b:
        ...             return i
        ...     raise ValueError("sequence.index(x): x not in sequence")
    """
    if not (inspect.isroutine(original_fn)):
        raise TypeError(f"substitute_in_graph takes a function, not {type(original_fn).__name__}")
    have = _rules.get(original_fn)
    if have is not None and have.kind == SUBSTITUTE:
        raise ValueError(f"{original_fn!r} has a replacement already")

    def substitute(fn: F) -> Callable[..., Any]:
        if not inspect.isfunction(fn):
            raise TypeError(f"the replacement must be a Python function, not {type(fn).__name__}")
        if not skip_signature_check:
            _same_signature(original_fn, fn)

        @functools.wraps(fn)
        def calls_original(*args: Any, **kwargs: Any) -> Any:
            return original_fn(*args, **kwargs)

        _rules.set(original_fn, Rule(SUBSTITUTE, fn))
        _rules.set(calls_original, Rule(SUBSTITUTE, fn))
        return calls_original

    return substitute


def _parameters(fn: Callable[..., Any]) -> tuple[list[str], dict[str, Any]] | None:
    """Names of positional parameters, and all with their defaults; None if it says nothing or takes
    anything."""
    try:
        signature = inspect.signature(fn)
    except ValueError:
        return None
    named = [p for p in signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not named:
        return None
    return [p.name for p in named if p.kind != p.KEYWORD_ONLY], {p.name: p.default for p in named}


def _same_signature(original: Callable[..., Any], replacement: Callable[..., Any]) -> None:
    one, other = _parameters(original), _parameters(replacement)
    if one is not None and other is not None and one != other:
        raise TypeError(
            f"signatures differ: {inspect.signature(original)} of {original!r}, "
            f"{inspect.signature(replacement)} of the replacement"
        )


# -- dimensions of tensors


@dataclass(frozen=True, slots=True)
class DimRange:
    """Bounds of a marked dimension; None: unbounded. Has the fields that torch's has."""

    dim: int
    min: int | None
    max: int | None


def _rank(t: Any, who: str) -> int:
    dim = getattr(t, "dim", None)
    if not callable(dim):
        raise TypeError(f"{who} takes a tensor, not {type(t).__name__}")
    rank: int = dim()
    return rank


def _dims(t: Any, index: int | Iterable[int], who: str) -> list[int]:
    rank = _rank(t, who)
    dims = [index] if isinstance(index, int) else list(index)
    for dim in dims:
        if not isinstance(dim, int) or not 0 <= dim < rank:
            raise IndexError(f"{who}: dimension {dim!r} of a tensor with {rank} dimensions")
    return dims


def _in_order(low: int | None, high: int | None, who: str) -> None:
    if low is not None and high is not None and low > high:
        raise ValueError(f"{who}: min={low} is above max={high}")


def _unconditional(specialize_on: list[Any] | None, who: str) -> None:
    if specialize_on:
        raise NotImplementedError(
            f"{who}: specialize_on isn't supported: one graph serves all sizes and no second one is compiled for those "
            "that meet a condition; leave it out, or use torch._dynamo's mark, whose conditions are ignored"
        )


def _marked(t: Any, attribute: str) -> Any:
    have = t.__dict__.get(attribute)
    if have is None:
        have = set()
        setattr(t, attribute, have)
    t._has_dynamo_dim_marking = True
    caller = sys._getframe(2)
    t._dynacheck_marked_at = f"{caller.f_code.co_filename}:{caller.f_lineno}"
    return have


def marked_at(t: Any) -> str:
    """File and line of the last mark on a tensor that was made here; "" if torch's function made it."""
    return str((getattr(t, "__dict__", None) or {}).get("_dynacheck_marked_at", ""))


def mark_dynamic(
    t: Any,
    index: int | list[int] | tuple[int, ...],
    *,
    hint_override: int | None = None,
    min: int | None = None,
    max: int | None = None,
    specialize_on: list[Any] | None = None,
) -> None:
    """Make sizes of a tensor symbols from the first compile on; an error where the trace makes them constant.

    Args:
        t: the tensor, before it is passed.
        index: one dimension or several.
        hint_override: accepted as torch does: a size for backends to tune with.
        min: least size.
        max: greatest size.
        specialize_on: not supported.

    Raises:
        IndexError: no such dimension.
        ValueError: `min` is above `max`.
        NotImplementedError: there are conditions to specialise on.

    Example:
        >>> import torch
        >>> x = torch.ones(4, 8)
        >>> mark_dynamic(x, 0, min=2, max=64)
    """
    _in_order(min, max, "mark_dynamic")
    _unconditional(specialize_on, "mark_dynamic")
    for dim in _dims(t, index, "mark_dynamic"):
        _marked(t, "_dynamo_dynamic_indices").add(dim)
        _marked(t, "_dynamo_dynamic_range").add(DimRange(dim, min, max))
        overrides = t.__dict__.setdefault("_dynamo_hint_overrides", {})
        if hint_override:
            overrides[dim] = hint_override


def maybe_mark_dynamic(t: Any, index: int | list[int] | tuple[int, ...]) -> None:
    """Make sizes of a tensor symbols from the first compile on, unless the trace makes them constant.

    Args:
        t: the tensor.
        index: one dimension or several.
    """
    for dim in _dims(t, index, "maybe_mark_dynamic"):
        _marked(t, "_dynamo_weak_dynamic_indices").add(dim)


def mark_static(t: Any, index: int | list[int] | tuple[int, ...] | None = None) -> Any:
    """Keep sizes of a tensor constant, whatever their history and `dynamic=True` say; or ints of a module
    class.

    Args:
        t: the tensor, or a subclass of nn.Module.
        index: one dimension or several; all if None.

    Returns:
        The class, if one was given.
    """
    if isinstance(t, type):
        t._dynamo_marked_static = True  # type: ignore[attr-defined]
        return t
    for dim in range(_rank(t, "mark_static")) if index is None else _dims(t, index, "mark_static"):
        _marked(t, "_dynamo_static_indices").add(dim)
    return None


def mark_unbacked(
    t: Any,
    index: int | list[int] | tuple[int, ...],
    hint_override: int | None = None,
    strict: bool = False,
    specialize_on: list[Any] | None = None,
    shape_id: str | None = None,
    min: int | None = None,
    max: int | None = None,
) -> None:
    """Treat sizes of a tensor as depending on data: no branch may look at them, assertions about them run in
    the graph.

    Args:
        t: the tensor.
        index: one dimension or several.
        hint_override: accepted as torch does: a size for backends to tune with.
        strict: branches may look at the size after all, as in torch; an error where the trace makes it constant.
        specialize_on: not supported.
        shape_id: dimensions with the same one have the same size.
        min: least size, checked at run time.
        max: greatest size, checked at run time.

    Raises:
        IndexError: no such dimension.
        ValueError: `min` is above `max`.
        NotImplementedError: there are conditions to specialise on.
    """
    attribute = "_dynamo_strict_unbacked_indices" if strict else "_dynamo_unbacked_indices"
    _in_order(min, max, "mark_unbacked")
    _unconditional(specialize_on, "mark_unbacked")
    for dim in _dims(t, index, "mark_unbacked"):
        _marked(t, attribute).add(dim)
        if min is not None or max is not None:
            t.__dict__.setdefault("_dynamo_unbacked_bounds", {})[dim] = (min, max)
        if shape_id is not None:
            t.__dict__.setdefault("_dynamo_shape_ids", {})[dim] = shape_id
        if hint_override:
            t.__dict__.setdefault("_dynamo_hint_overrides", {})[dim] = hint_override
