"""Context managers of torch that change ambient state: entered and left in the trace and in the graph."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from dynacheck.graph.state import enter_inference_mode, exit_inference_mode
from dynacheck.reasons import SKIPPED_CALL
from dynacheck.sources import Node
from dynacheck.variables.base import CantRebuild, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.functions import CallableVariable
from dynacheck.versions import torch_since

_enter_inference_mode: Final[Callable[..., Any]] = torch.autograd.grad_mode._enter_inference_mode
_exit_inference_mode: Final[Callable[..., Any]] = torch.autograd.grad_mode._exit_inference_mode
_enter_autocast: Final[Callable[..., Any]] = torch.amp.autocast_mode._enter_autocast
_exit_autocast: Final[Callable[..., Any]] = torch.amp.autocast_mode._exit_autocast


class ContextVariable(VariableTracker):
    """A context manager that the engine models.

    Entering it changes the ambient state for real while translating (operators' metadata depend on it) and records the
    change in the graph. `restorable` ones can be left and entered again around a graph break.
    """

    __slots__ = ("cls",)
    restorable = True

    def __init__(self, cls: type, node: Node | None = None) -> None:
        super().__init__(node)
        self.cls = cls

    def get_type(self) -> type:
        return self.cls

    def enter(self, tx: Tracer) -> VariableTracker:
        """Enter; returns what `as` binds."""
        raise NotImplementedError

    def leave(self, tx: Tracer) -> None:
        """Leave."""
        raise NotImplementedError

    def enter_call(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """A function and constant arguments that make a fresh equal manager, for rewritten code."""
        raise NotImplementedError

    def clone(self) -> ContextVariable:
        """A fresh manager like this one."""
        raise NotImplementedError

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name == "__exit__":
            return ExitVariable(self)
        if name in ("__enter__", "clone", "__call__"):
            return ContextMethodVariable(self, name)
        return super().tp_getattro(tx, name)

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.decorate_with_context(self, args)

    def nb_bool(self, tx: Tracer) -> bool:
        return True

    def reconstruct_fresh(self, to: Rebuilder) -> None:
        """Push a new equal manager."""
        fn, args = self.enter_call()
        to.call_helper(fn, *[lambda a=a: to.load_const(a) for a in args])

    def reconstruct(self, to: Rebuilder) -> None:
        self.reconstruct_fresh(to)
        to.remember(self)


class ContextMethodVariable(CallableVariable):
    """`__enter__`, `__exit__` or `clone` of a modelled context manager."""

    __slots__ = ("context", "name")

    def __init__(self, context: ContextVariable, name: str, node: Node | None = None) -> None:
        super().__init__(node)
        self.context = context
        self.name = name

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if self.name == "__enter__":
            return self.context.enter(tx)
        if self.name == "clone":
            if self.context.cls is torch.set_grad_enabled:  # as a decorator: torch traces the others' alone
                tx.break_(SKIPPED_CALL, call="set_grad_enabled.clone", why="it is internal to torch")
            return self.context.clone()
        return self.context.tp_call(tx, args, kwargs)

    def children(self) -> Sequence[VariableTracker]:
        return (self.context,)

    def reconstruct(self, to: Rebuilder) -> None:
        to.load(self.context)
        to.load_attr(self.name)
        to.remember(self)


class ExitVariable(CallableVariable):
    """What BEFORE_WITH leaves on the stack: the bound `__exit__` of a modelled manager."""

    __slots__ = ("context",)

    def __init__(self, context: ContextVariable, node: Node | None = None) -> None:
        super().__init__(node)
        self.context = context

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        self.context.leave(tx)
        return tx.constant(None)

    def children(self) -> Sequence[VariableTracker]:
        return (self.context,)

    def reconstruct(self, to: Rebuilder) -> None:
        to.load(self.context)
        to.load_attr("__exit__")
        to.remember(self)


class GradModeVariable(ContextVariable):
    """`no_grad`, `enable_grad`, `set_grad_enabled`.

    `prev` is the object's attribute: what leaving restores. `set_grad_enabled` sets it when made, the others whenever
    they are entered. None where there is none yet, or the frame was given the object and hasn't entered it.
    """

    __slots__ = ("mode", "prev")

    def __init__(self, cls: type, mode: bool, prev: bool | None, node: Node | None = None) -> None:
        super().__init__(cls, node)
        self.mode = mode
        self.prev = prev

    def enter(self, tx: Tracer) -> VariableTracker:
        if self.cls is not torch.set_grad_enabled:
            self.prev = torch.is_grad_enabled()
        set_grad_mode(tx, self.mode)
        return tx.constant(None)

    def leave(self, tx: Tracer) -> None:
        if self.prev is None:
            self.unmodelled(tx, "leaving it where it wasn't entered")
        set_grad_mode(tx, self.prev)

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if self.cls is not torch.set_grad_enabled:
            return super().tp_call(tx, args, kwargs)
        if self.prev is None:
            self.unmodelled(tx, "decorating with it where it wasn't made")
        set_grad_mode(
            tx, self.prev
        )  # as a decorator it takes effect in calls alone, whatever the mode is there
        entered_anew = torch.enable_grad if self.mode else torch.no_grad
        return tx.decorate_with_context(GradModeVariable(entered_anew, self.mode, None), args)

    def enter_call(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _grad_manager, (self.cls.__name__, self.mode, self.prev)

    def clone(self) -> ContextVariable:
        return GradModeVariable(self.cls, self.mode, self.prev)


def _grad_manager(name: str, mode: bool, prev: bool | None) -> Any:
    """A grad-mode manager in the state of one that the frame made (used by rewritten code)."""
    cls = getattr(torch, name)
    manager = cls.__new__(cls)
    if prev is not None:
        manager.prev = prev
    if cls is torch.set_grad_enabled:
        manager.mode = mode
    return manager


def set_grad_mode(tx: Tracer, mode: bool) -> None:
    """Set grad mode in the trace and, if it changes, in the graph; a change with nothing before it is undone."""
    if mode is torch.is_grad_enabled():
        return
    torch._C._set_grad_enabled(mode)
    if not tx.graph.undo(torch._C._set_grad_enabled, (not mode,)):
        tx.graph_call(torch._C._set_grad_enabled, [mode])


class InferenceModeVariable(ContextVariable):
    """`inference_mode`."""

    __slots__ = ("guards", "mode")

    def __init__(self, cls: type, mode: bool, node: Node | None = None) -> None:
        super().__init__(cls, node)
        self.mode = mode
        self.guards: list[Any] = []

    def enter(self, tx: Tracer) -> VariableTracker:
        context = enter_inference_mode(self.mode)
        proxy = tx.graph_call(_enter_inference_mode, [self.mode])
        self.guards.append((context, proxy))
        return tx.constant(None)

    def leave(self, tx: Tracer) -> None:
        context, proxy = self.guards.pop()
        exit_inference_mode(context)
        tx.graph_call(_exit_inference_mode, [proxy])

    def enter_call(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return torch.inference_mode, (self.mode,)

    def clone(self) -> ContextVariable:
        return InferenceModeVariable(self.cls, self.mode)


class AutocastVariable(ContextVariable):
    """`torch.autocast` and its per-device forms."""

    __slots__ = ("arguments", "entered")

    def __init__(self, cls: type, arguments: tuple[Any, ...], node: Node | None = None) -> None:
        super().__init__(cls, node)
        self.arguments = arguments  # device_type, dtype, enabled, cache_enabled
        self.entered: list[Any] = []

    def enter(self, tx: Tracer) -> VariableTracker:
        manager = _enter_autocast(*self.arguments)
        proxy = tx.graph_call(_enter_autocast, list(self.arguments))
        self.entered.append((manager, proxy))
        return self

    def leave(self, tx: Tracer) -> None:
        manager, proxy = self.entered.pop()
        _exit_autocast(manager)
        tx.graph_call(_exit_autocast, [proxy])

    def enter_call(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        device, dtype, enabled, cache = self.arguments
        return torch.autocast, (device, dtype, enabled, cache)

    def clone(self) -> ContextVariable:
        return AutocastVariable(self.cls, self.arguments)


class AttentionKernels:
    """`sdpa_kernel` as graphs and rewritten code enter it.

    Args:
        kernels: numbers of the kernels to choose from.
        set_priority: whether their order counts.
    """

    def __init__(self, kernels: tuple[int, ...], set_priority: bool) -> None:
        self.kernels = kernels
        self.set_priority = set_priority
        self.previous: list[Any] = []

    def __enter__(self) -> dict[str, Any]:
        attention: Any = torch.nn.attention
        self.previous.append(attention._cur_sdpa_kernel_backends(with_priority=self.set_priority))
        attention._sdpa_kernel([attention.SDPBackend(k) for k in self.kernels], self.set_priority)
        return {}

    def __exit__(self, *exception: object) -> None:
        attention: Any = torch.nn.attention
        attention._sdpa_kernel(self.previous.pop(), self.set_priority)


def _enter_kernels(kernels: tuple[int, ...], set_priority: bool) -> AttentionKernels:
    entered = AttentionKernels(kernels, set_priority)
    entered.__enter__()
    return entered


def _leave_kernels(entered: AttentionKernels) -> None:
    entered.__exit__()


class AttentionKernelsVariable(ContextVariable):
    """`sdpa_kernel`."""

    __slots__ = ("entered", "kernels", "set_priority")

    def __init__(self, kernels: tuple[int, ...], set_priority: bool, node: Node | None = None) -> None:
        super().__init__(AttentionKernels, node)
        self.kernels = kernels
        self.set_priority = set_priority
        self.entered: list[Any] = []

    def enter(self, tx: Tracer) -> VariableTracker:
        arguments = (self.kernels, self.set_priority)
        self.entered.append((_enter_kernels(*arguments), tx.graph_call(_enter_kernels, list(arguments))))
        return tx.constant({})

    def leave(self, tx: Tracer) -> None:
        entered, proxy = self.entered.pop()
        _leave_kernels(entered)
        tx.graph_call(_leave_kernels, [proxy])

    def enter_call(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return AttentionKernels, (self.kernels, self.set_priority)

    def clone(self) -> ContextVariable:
        return AttentionKernelsVariable(self.kernels, self.set_priority)


def leave_entered(values: Sequence[Any]) -> None:
    """Leave what a graph that raised had entered and not left.

    Args:
        values: what was alive in it, in program order.
    """
    for value in reversed(values):
        if isinstance(value, torch.amp.autocast_mode.autocast):
            _exit_autocast(value)
        elif isinstance(value, torch._C._InferenceMode):
            _exit_inference_mode(value)
        elif isinstance(value, AttentionKernels) and value.previous:
            _leave_kernels(value)


class NullContextVariable(ContextVariable):
    """A manager without effect on the trace: `nullcontext`, profiler scopes (which `as` binds)."""

    __slots__ = ("scope", "value")

    def __init__(
        self, cls: type, value: VariableTracker | None = None, node: Node | None = None, scope: bool = False
    ) -> None:
        super().__init__(cls, node)
        self.value = value
        self.scope = scope

    def enter(self, tx: Tracer) -> VariableTracker:
        if self.scope:
            return self
        return tx.constant(None) if self.value is None else self.value

    def leave(self, tx: Tracer) -> None:
        return None

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name == "enter_result" and not self.scope:
            return self.enter(tx)
        if name == "_recreate_cm":
            return ContextMethodVariable(self, "clone")
        return super().tp_getattro(tx, name)

    def children(self) -> Sequence[VariableTracker]:
        return () if self.value is None else (self.value,)

    def enter_call(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.cls, ()

    def reconstruct(self, to: Rebuilder) -> None:
        if self.scope:
            raise CantRebuild("a profiler that is entered in the frame")
        value = self.value
        to.call_helper(self.cls, *([] if value is None else [lambda: to.load(value)]))
        to.remember(self)

    def clone(self) -> ContextVariable:
        return NullContextVariable(self.cls, self.value, None, self.scope)


def filters_restored() -> None:
    """Have Python tell warnings anew that it tells once, as entering `catch_warnings` does (used by rewritten code)."""
    with warnings.catch_warnings():
        pass


class CatchWarningsVariable(ContextVariable):
    """`warnings.catch_warnings()` without arguments: changing filters inside of it breaks, which gives the frame up."""

    __slots__ = ("entered",)
    restorable = False

    def enter(self, tx: Tracer) -> VariableTracker:
        if getattr(self, "entered", False):
            tx.raise_(RuntimeError, "Cannot enter catch_warnings() twice")
        self.entered = True
        tx.effects.defer(filters_restored)
        return tx.constant(None)

    def leave(self, tx: Tracer) -> None:
        tx.effects.defer(filters_restored)

    def clone(self) -> ContextVariable:
        return CatchWarningsVariable(self.cls)

    def reconstruct(self, to: Rebuilder) -> None:
        raise CantRebuild("warnings.catch_warnings() that is entered in the frame")


def entered_from_outside(manager: VariableTracker) -> bool:
    """Whether torch enters a manager that was made before the frame: of its own autocast, profiler scopes and modes."""
    kind = manager.get_type()
    if issubclass(kind, (torch.amp.autocast_mode.autocast, torch.overrides.TorchFunctionMode)):
        return True
    if issubclass(kind, torch.profiler.record_function):
        return torch_since(2, 12)
    if isinstance(manager, ContextVariable) or issubclass(
        kind, torch.utils._contextlib._DecoratorContextManager
    ):
        return False
    if kind is contextlib.nullcontext and manager.node is not None:
        return torch_since(2, 14) or manager.node.peek().enter_result is None
    return torch_since(2, 14)
