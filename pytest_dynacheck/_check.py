"""Compiled against eager over several calls: results, exceptions, mutations, state, gradients."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pytest_dynacheck._public import Args
from pytest_dynacheck._sides import Difference, Same, clone, fresh, outcome, same_state, tensors

Outcome = tuple[Any, Exception | None]
"""What a call returned, or what it raised."""


def compare(
    fn: Callable[..., Any],
    calls: Iterable[Any],
    compile: Callable[[Any], Any],
    *,
    grad: bool,
    rtol: float | None,
    atol: float | None,
) -> None:
    """Run every call on both sides.

    Raises:
        AssertionError: the first difference.
        TypeError: something that isn't a function, isn't several calls, or isn't a tolerance.
    """
    __tracebackhide__ = True
    import torch

    if not callable(fn):
        raise TypeError(f"dynacheck.check takes a function or a module, not {type(fn).__name__}")
    if isinstance(calls, torch.Tensor | Args | Mapping | str) or not isinstance(calls, Iterable):
        raise TypeError(f"dynacheck.check takes a list of calls, not {type(calls).__name__}")
    _refuse(grad, {"rtol": rtol, "atol": atol})
    eager, plain = fresh(fn), fresh(fn)
    compiled = compile(plain)
    for number, call in enumerate(calls, 1):
        given = call if isinstance(call, Args) else Args(*(call if isinstance(call, tuple) else (call,)))
        ours, theirs = clone((given.args, given.kwargs)), clone((given.args, given.kwargs))
        state = (torch.get_rng_state(), random.getstate())
        expected = _run(eager, theirs, grad)
        torch.set_rng_state(state[0])
        random.setstate(state[1])
        found = _run(compiled, ours, grad)
        try:
            same_run(Same(rtol, atol), expected, found)
            same = Same(rtol, atol)
            same.values(theirs, ours, "arguments")
            same_state(same, eager, plain)
        except Difference as difference:
            raise AssertionError(f"call {number} {given!r:.80}: {difference}") from None


def _refuse(grad: Any, tolerances: Mapping[str, Any]) -> None:
    __tracebackhide__ = True
    if type(grad) is not bool:
        raise TypeError(f"dynacheck.check(): grad takes True or False, not {grad!r}")
    for name, value in tolerances.items():
        if value is not None and (not isinstance(value, int | float) or value < 0):
            raise TypeError(f"dynacheck.check(): {name} takes a number from 0 on, not {value!r}")
    if None in tolerances.values() and set(tolerances.values()) != {None}:
        raise TypeError("dynacheck.check() takes both rtol and atol, or neither")


def _run(fn: Any, given: Any, grad: bool) -> Outcome:
    args, kwargs = given
    try:
        result = fn(*args, **kwargs)
        if grad:
            total = sum(t.float().sum() for t in tensors(result) if t.requires_grad)
            if not isinstance(total, int):
                total.backward()
    except Exception as error:
        return None, error
    return result, None


def same_run(same: Same, expected: Outcome, found: Outcome) -> None:
    """Compare what two calls returned or raised.

    Raises:
        Difference: they differ.
    """
    (result, error), (other, other_error) = expected, found
    if (type(error), str(error)) != (type(other_error), str(other_error)):
        raise Difference(f"eager {outcome(error)}, compiled {outcome(other_error)}")
    same.values(result, other, "result")
