"""Compiled against eager over several calls: results, exceptions, mutations, state, gradients."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pytest_dynacheck._public import Args


class Difference(Exception):
    """Where two values differ, in words."""


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
        TypeError: something that isn't a function, or isn't several calls.
    """
    __tracebackhide__ = True
    import torch

    if not callable(fn):
        raise TypeError(f"dynacheck.check takes a function or a module, not {type(fn).__name__}")
    if isinstance(calls, torch.Tensor | Args | Mapping | str) or not isinstance(calls, Iterable):
        raise TypeError(f"dynacheck.check takes a list of calls, not {type(calls).__name__}")
    eager, plain = _fresh(fn), _fresh(fn)
    compiled = compile(plain)
    tolerance = {"rtol": rtol, "atol": atol}
    for number, call in enumerate(calls, 1):
        given = call if isinstance(call, Args) else Args(*(call if isinstance(call, tuple) else (call,)))
        ours, theirs = _clone((given.args, given.kwargs)), _clone((given.args, given.kwargs))
        state = (torch.get_rng_state(), random.getstate())
        expected = _run(eager, theirs, grad)
        torch.set_rng_state(state[0])
        random.setstate(state[1])
        found = _run(compiled, ours, grad)
        try:
            _same_outcome(expected, found, tolerance)
            _same(theirs, ours, "arguments", tolerance)
            if isinstance(fn, torch.nn.Module):
                _same_module(eager, plain, tolerance, grad)
        except Difference as difference:
            raise AssertionError(f"call {number} {given!r:.80}: {difference}") from None


def _fresh(fn: Any) -> Any:
    """A copy of a module (or callable object); functions have no state of their own to copy."""
    return fn if type(fn).__name__ in ("function", "builtin_function_or_method") else copy.deepcopy(fn)


def _clone(value: Any) -> Any:
    """A deep copy in which tensors keep requires_grad, strides and sharing."""
    import torch

    memo: dict[int, Any] = {}
    for tensor in _tensors(value):
        if id(tensor) not in memo:
            twin = torch.empty_strided(
                tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
            )
            memo[id(tensor)] = twin.copy_(tensor.detach()).requires_grad_(tensor.requires_grad)
    return copy.deepcopy(value, memo)


def _tensors(value: Any) -> Iterator[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided and type(value) is torch.Tensor:
            yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


def _run(fn: Any, given: Any, grad: bool) -> tuple[Any, Exception | None]:
    args, kwargs = given
    try:
        result = fn(*args, **kwargs)
        if grad:
            total = sum(t.float().sum() for t in _tensors(result) if t.requires_grad)
            if not isinstance(total, int):
                total.backward()
    except Exception as error:
        return None, error
    return result, None


def _same_outcome(
    expected: tuple[Any, Exception | None], found: tuple[Any, Exception | None], tolerance: dict[str, Any]
) -> None:
    (result, error), (other, other_error) = expected, found
    if (type(error), str(error)) != (type(other_error), str(other_error)):
        raise Difference(f"eager {_outcome(error)}, compiled {_outcome(other_error)}")
    _same(result, other, "result", tolerance)


def _outcome(error: Exception | None) -> str:
    return "returns" if error is None else f"raises {type(error).__name__}: {error}"


def _same(eager: Any, compiled: Any, where: str, tolerance: dict[str, Any]) -> None:
    import torch

    if isinstance(eager, torch.Tensor) and isinstance(compiled, torch.Tensor):
        _same_tensor(eager, compiled, where, tolerance)
    elif type(eager) is not type(compiled):
        raise Difference(f"{where}: {type(eager).__name__} in eager, {type(compiled).__name__} compiled")
    elif isinstance(eager, Mapping):
        if list(eager) != list(compiled):
            raise Difference(f"{where}: keys {list(eager)} in eager, {list(compiled)} compiled")
        for key in eager:
            _same(eager[key], compiled[key], f"{where}[{key!r}]", tolerance)
    elif isinstance(eager, list | tuple):
        if len(eager) != len(compiled):
            raise Difference(f"{where}: length {len(eager)} in eager, {len(compiled)} compiled")
        for i, (a, b) in enumerate(zip(eager, compiled, strict=True)):
            _same(a, b, f"{where}[{i}]", tolerance)
    elif isinstance(eager, bool | int | float | complex | str | bytes | None):
        if eager != compiled and not (eager != eager and compiled != compiled):
            raise Difference(f"{where}: {eager!r} in eager, {compiled!r} compiled")
    elif hasattr(eager, "__dict__") and not callable(eager):
        _same(vars(eager), vars(compiled), where, tolerance)


def _same_tensor(eager: Any, compiled: Any, where: str, tolerance: dict[str, Any]) -> None:
    import torch

    for name in ("dtype", "shape", "device", "requires_grad"):
        a, b = getattr(eager, name), getattr(compiled, name)
        if a != b:
            raise Difference(f"{where}: {name} {a} in eager, {b} compiled")
    if eager.layout is torch.strided and eager.stride() != compiled.stride():
        raise Difference(f"{where}: stride {eager.stride()} in eager, {compiled.stride()} compiled")
    try:
        torch.testing.assert_close(compiled, eager, equal_nan=True, **tolerance)
    except AssertionError as error:
        first = " ".join(line for line in str(error).splitlines() if line)
        raise Difference(f"{where}: {first:.300}") from None
    if eager.is_leaf and eager.grad is not None and compiled.grad is not None:
        _same_tensor(eager.grad, compiled.grad, f"gradient of {where}", tolerance)
    elif eager.is_leaf and (eager.grad is None) != (compiled.grad is None):
        raise Difference(f"gradient of {where}: {'none' if eager.grad is None else 'one'} in eager only")


def _same_module(eager: Any, compiled: Any, tolerance: dict[str, Any], grad: bool) -> None:
    for (name, a), (_, b) in zip(eager.named_parameters(), compiled.named_parameters(), strict=True):
        _same(a, b, f"parameter {name}", tolerance)
    for (name, a), (_, b) in zip(eager.named_buffers(), compiled.named_buffers(), strict=True):
        _same(a, b, f"buffer {name}", tolerance)
    for (name, a), (_, b) in zip(eager.named_modules(), compiled.named_modules(), strict=True):
        ours = {k: v for k, v in vars(a).items() if _plain(v) and not k.startswith("_compiled")}
        for key, value in ours.items():
            _same(value, vars(b).get(key), f"attribute {name + '.' if name else ''}{key}", tolerance)


def _plain(value: Any) -> bool:
    return isinstance(value, bool | int | float | str | None | list | tuple) and not isinstance(value, Args)
