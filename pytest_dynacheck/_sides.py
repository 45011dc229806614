"""Two runs of the same code on separate copies: how copies are made, and where two values differ."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from types import CellType, FunctionType, MethodType
from typing import Any


class Difference(Exception):
    """Where two values differ, in words."""


def clone(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """A deep copy in which tensors keep requires_grad, strides and sharing.

    Args:
        value: what to copy.
        memo: gets the copy of each part, by the part's id.

    Raises:
        Exception: what a part of it that can't be copied raises.
    """
    import torch

    memo = {} if memo is None else memo
    for tensor in tensors(value):
        if id(tensor) not in memo:
            twin = torch.empty_strided(
                tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
            )
            memo[id(tensor)] = twin.copy_(tensor.detach()).requires_grad_(tensor.requires_grad)
    return copy.deepcopy(value, memo)


def tensors(value: Any) -> Iterator[Any]:
    """The plain tensors in a structure of containers."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided and type(value) is torch.Tensor:
            yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors(item)


def outcome(error: BaseException | None) -> str:
    return "returns" if error is None else f"raises {type(error).__name__}: {error}"


class Same:
    """Compares what eager left with what compiled left.

    Args:
        rtol: relative tolerance; torch.testing's by default.
        atol: absolute tolerance.
        gradients: compare those of leaves too. (Copies of parameters have none.)
    """

    def __init__(
        self, rtol: float | None = None, atol: float | None = None, *, gradients: bool = True
    ) -> None:
        self._rtol, self._atol = rtol, atol
        self._gradients = gradients
        self._seen: set[tuple[int, int]] = set()

    def values(self, eager: Any, compiled: Any, where: str) -> None:
        """Compare two values of any kind; what has no contents that can be told is left out.

        Raises:
            Difference: they differ.
        """
        import torch

        if isinstance(eager, torch.Tensor) and isinstance(compiled, torch.Tensor):
            self._tensors(eager, compiled, where)
        elif type(eager) is not type(compiled):
            raise Difference(f"{where}: {type(eager).__name__} in eager, {type(compiled).__name__} compiled")
        elif isinstance(eager, bool | int | float | complex | str | bytes | None):
            if eager != compiled and not (eager != eager and compiled != compiled):
                raise Difference(f"{where}: {eager!r} in eager, {compiled!r} compiled")
        elif (id(eager), id(compiled)) not in self._seen:
            self._seen.add((id(eager), id(compiled)))
            self._contents(eager, compiled, where)

    def _contents(self, eager: Any, compiled: Any, where: str) -> None:
        import torch

        if isinstance(eager, Mapping):
            named = all(isinstance(key, bool | int | float | str | bytes | tuple | None) for key in eager)
            if list(eager) != list(compiled) if named else len(eager) != len(compiled):
                raise Difference(f"{where}: keys {list(eager)} in eager, {list(compiled)} compiled")
            for i, (key, a, b) in enumerate(zip(eager, eager.values(), compiled.values(), strict=True)):
                self.values(a, b, f"{where}[{repr(key) if named else i}]")
        elif isinstance(eager, list | tuple):
            if len(eager) != len(compiled):
                raise Difference(f"{where}: length {len(eager)} in eager, {len(compiled)} compiled")
            for i, (a, b) in enumerate(zip(eager, compiled, strict=True)):
                self.values(a, b, f"{where}[{i}]")
        elif isinstance(eager, torch.nn.Module):
            self.modules(eager, compiled)
        elif isinstance(eager, torch.optim.Optimizer | torch.optim.lr_scheduler.LRScheduler):
            self.values(eager.state_dict(), compiled.state_dict(), where)
        elif hasattr(eager, "__dict__") and not callable(eager):
            self.values(vars(eager), vars(compiled), where)

    def _tensors(self, eager: Any, compiled: Any, where: str) -> None:
        import torch

        for name in ("dtype", "shape", "device", "requires_grad"):
            a, b = getattr(eager, name), getattr(compiled, name)
            if a != b:
                raise Difference(f"{where}: {name} {a} in eager, {b} compiled")
        if eager.layout is torch.strided and eager.stride() != compiled.stride():
            raise Difference(f"{where}: stride {eager.stride()} in eager, {compiled.stride()} compiled")
        try:
            torch.testing.assert_close(compiled, eager, equal_nan=True, rtol=self._rtol, atol=self._atol)
        except AssertionError as error:
            first = " ".join(line for line in str(error).splitlines() if line)
            raise Difference(f"{where}: {first:.300}") from None
        if not (self._gradients and eager.is_leaf and compiled.is_leaf):
            return
        if eager.grad is not None and compiled.grad is not None:
            self._tensors(eager.grad, compiled.grad, f"gradient of {where}")
        elif (eager.grad is None) != (compiled.grad is None):
            raise Difference(f"gradient of {where}: {'none' if eager.grad is None else 'one'} in eager only")

    def modules(self, eager: Any, compiled: Any) -> None:
        """Compare parameters, buffers and plain attributes of two modules.

        Raises:
            Difference: they differ.
        """
        for (name, a), (_, b) in zip(eager.named_parameters(), compiled.named_parameters(), strict=True):
            self.values(a, b, f"parameter {name}")
        for (name, a), (_, b) in zip(eager.named_buffers(), compiled.named_buffers(), strict=True):
            self.values(a, b, f"buffer {name}")
        for (name, a), (_, b) in zip(eager.named_modules(), compiled.named_modules(), strict=True):
            ours = {k: v for k, v in vars(a).items() if _plain(v) and not k.startswith("_compiled")}
            for key, value in ours.items():
                self.values(value, vars(b).get(key), f"attribute {name + '.' if name else ''}{key}")


def _plain(value: Any) -> bool:
    return isinstance(value, bool | int | float | str | None | list | tuple)


def state_of(fn: Any) -> dict[str, Any]:
    """What a call of a function starts from beside its arguments: an owner, closure variables, globals it names."""
    if isinstance(fn, MethodType):
        return {"owner": fn.__self__}
    if not isinstance(fn, FunctionType):
        return {"owner": fn}
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    found = {"closure": {name: cell.cell_contents for name, cell in cells.items() if _filled(cell)}}
    found["globals"] = {
        name: fn.__globals__[name]
        for name in fn.__code__.co_names
        if name in fn.__globals__ and _owned(fn.__globals__[name])
    }
    return found


def _filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _owned(value: Any) -> bool:
    """True for values of globals that a call may change: tensors, modules, what trains them, containers, numbers."""
    import torch

    trains = torch.optim.Optimizer | torch.optim.lr_scheduler.LRScheduler
    return isinstance(
        value, torch.Tensor | torch.nn.Module | trains | list | dict | set | bool | int | float | str | None
    )


def with_state(fn: Any, own: dict[str, Any]) -> Any:
    """The function on another state.

    Args:
        fn: the function, method or module.
        own: what `state_of` gives, or a copy of it.
    """
    if isinstance(fn, MethodType):
        return MethodType(fn.__func__, own["owner"])
    if not isinstance(fn, FunctionType):
        return own["owner"]
    closure = tuple(
        CellType(own["closure"][name]) if name in own["closure"] else CellType()
        for name in fn.__code__.co_freevars
    )
    names = {**fn.__globals__, **own["globals"]}
    twin = FunctionType(fn.__code__, names, fn.__name__, fn.__defaults__, closure)
    twin.__kwdefaults__ = fn.__kwdefaults__
    return twin


def _pairs(state: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for kind, value in state.items():
        if kind == "owner":
            yield "self", value
        else:
            yield from ((f"{'variable' if kind == 'closure' else 'global'} {n}", v) for n, v in value.items())


def same_state(same: Same, eager: Any, compiled: Any) -> None:
    """Compare the states of a function on both sides.

    Raises:
        Difference: they differ.
    """
    for (where, a), (_, b) in zip(_pairs(state_of(eager)), _pairs(state_of(compiled)), strict=True):
        same.values(a, b, where)


def fresh(fn: Any) -> Any:
    """The function on a state of its own; what can't be copied is shared."""
    state = state_of(fn)
    try:
        return with_state(fn, clone(state))
    except Exception:
        return fn
