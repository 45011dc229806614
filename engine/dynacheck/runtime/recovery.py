"""A graph raised while it ran: the frame is run again as it is, so that everything is as without the engine.

Rewritten code runs its graph before anything else, so when the graph raises, no side effect of the frame has happened:
run again, the frame raises where, with what and after which side effects plain Python does, or catches it. What the
graph has done itself until then, writes to its inputs and random numbers drawn, is not undone but kept from
happening twice: as the graph left it, it is what plain Python leaves too.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from types import FunctionType, TracebackType
from typing import Any

import torch
import torch.fx
from torch.fx.graph_module import _WrappedCall

from dynacheck import _C, errors, events, reasons
from dynacheck.backends.check import GraphMismatch
from dynacheck.events import observers
from dynacheck.graph.behaviour import call_draws
from dynacheck.graph.recorder import CapturedGraph
from dynacheck.graph.state import RandomStates
from dynacheck.runtime import calls
from dynacheck.runtime.codes import code_ref
from dynacheck.variables.contexts import leave_entered
from dynacheck.variables.functions import VARARGS, VARKEYWORDS

_CALL: Any = _WrappedCall.__call__

OWN_ERRORS = (errors.DynacheckError, GraphMismatch)
"""What is said about the graph, not by it."""


class Recovery:
    """What is to be done when a graph raises. Keeps nothing of the graph alive.

    Args:
        captured: the graph, before the backend has it.
    """

    def __init__(self, captured: CapturedGraph) -> None:
        self.module = weakref.ref(captured.gm)
        self.grad = torch.is_grad_enabled()
        self.caught = captured.caught
        self.writers = frozenset(node.name for node in captured.writers)
        self.raisers = bool(captured.raisers)
        self.draws = any(map(call_draws, _before_last(captured.graph.nodes, captured.raisers)))
        values = zip(captured.inputs, captured.values)
        written = {spec.node for spec, value in values if spec.what == "tensor" and value.storage.written}
        self.written = tuple(place for node, place in captured.places().items() if node in written)

    def __call__(self, fn: FunctionType, slots: tuple[Any, ...], inputs: tuple[Any, ...]) -> None:
        """Called while the exception is handled by the rewritten code.

        Args:
            fn: the function as the user wrote it.
            slots: the values of its argument slots.
            inputs: the graph's tensors, in the order of their places.

        Raises:
            Rerun: for the hook: the frame is to be run again.
        """
        error = sys.exc_info()[1]
        assert error is not None
        ran = self._ran(error.__traceback__)
        if ran is not None:
            leave_entered(ran[1])
        torch._C._set_grad_enabled(self.grad)
        if not isinstance(error, Exception) or isinstance(error, OWN_ERRORS):
            return
        if ran is None and not self.raisers:  # what the backend made raises, the graph doesn't
            return
        done = None if ran is None else ran[0]
        written = self._written(done, inputs) if ran is not None else ()
        drawn = self.draws if done is None else any(map(call_draws, done))
        if observers.active:
            reason = reasons.GRAPH_RAISED.id
            observers.emit(events.RanEagerly(code_ref(fn.__code__), "raised", reason, call=calls.number()))
        args, kwargs = arguments(fn, slots)
        after = _After(self.caught, error, written, RandomStates() if drawn else None)
        raise _C.Rerun(partial(fn, *args, **kwargs), after)

    def _ran(self, traceback: TracebackType | None) -> tuple[list[torch.fx.Node] | None, list[Any]] | None:
        """What of the graph ran, if a traceback shows that the graph itself was run and not what was made of it.

        Returns:
            The nodes before the one that raised (None: unknown), and the values alive at it; None if the graph itself did
            not run.
        """
        module: Any = self.module()
        while traceback is not None and module is not None:
            frame = traceback.tb_frame
            code, names = frame.f_code, frame.f_locals
            nodes = list(module.graph.nodes)
            if code is getattr(type(module).forward, "__code__", None):
                lines: dict[int, int | None] = getattr(module, "_lineno_map", None) or {}
                number = lines.get(traceback.tb_lineno - getattr(module, "_prologue_start", 0))
                return None if number is None else nodes[:number], list(names.values())
            if code is torch.fx.Interpreter.run.__code__ and names["self"].graph is module.graph:
                at = nodes.index(names["node"]) if "node" in names else 0
                return nodes[:at], list(names["self"].env.values())
            if code is _CALL.__code__ and names["obj"] is module and traceback.tb_next is None:
                return None, []  # it took what was raised in the graph's code, and its traceback off
            traceback = traceback.tb_next
        return None

    def _written(
        self, done: list[torch.fx.Node] | None, inputs: tuple[Any, ...]
    ) -> tuple[tuple[torch.Tensor, torch.Tensor, int], ...]:
        """The inputs that the graph has written to, with copies of what they hold and versions."""
        if done is not None and not any(node.name in self.writers for node in done):
            return ()
        found = [inputs[place] for place in self.written]
        with torch.enable_grad():
            return tuple(
                (
                    t,
                    t.clone() if _has_history(t) else t.detach().clone(),
                    0 if t.is_inference() else t._version,
                )
                for t in found
            )


class _After:
    """What follows when the frame has run again.

    Args:
        caught: the frame may have caught what the graph raised.
        error: what the graph raised.
        written: tensors with what they are to hold, and their versions.
        random: the random states as they are to be.
    """

    def __init__(
        self,
        caught: bool,
        error: Exception,
        written: tuple[tuple[torch.Tensor, torch.Tensor, int], ...],
        random: RandomStates | None,
    ) -> None:
        self.caught = caught
        self.error = error
        self.written = written
        self.random = random

    def __call__(self, returned: bool) -> BaseException | None:
        """Put right what happened twice.

        Args:
            returned: whether the frame returned this time.

        Returns:
            What the graph raised, if plain Python doesn't raise: an error of the backend.
        """
        if returned:
            return None if self.caught else self.error
        for tensor, held, version in self.written:
            # with its history copied too, gradients flow through what it holds, and not through the second write
            with torch.inference_mode(tensor.is_inference()), torch.set_grad_enabled(_has_history(held)):
                tensor.copy_(held)
            if not tensor.is_inference():
                torch._C._autograd._unsafe_set_version_counter((tensor,), (version,))
        if self.random is not None:
            self.random.restore_torch()
        return None


def _has_history(tensor: torch.Tensor) -> bool:
    """Whether gradients flow through a tensor to others."""
    return tensor.requires_grad and not tensor.is_leaf


def _before_last(nodes: Iterable[torch.fx.Node], those: Iterable[torch.fx.Node]) -> list[torch.fx.Node]:
    """The nodes before the last one of some."""
    ordered, wanted = list(nodes), set(those)
    last = max((i for i, node in enumerate(ordered) if node in wanted), default=0)
    return ordered[:last]


def arguments(fn: Callable[..., Any], slots: tuple[Any, ...]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call that fills a function's argument slots.

    Args:
        fn: a Python function.
        slots: the values of its slots, `*args` and `**kwargs` as the tuple and the dict.
    """
    code = fn.__code__
    positional, named = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    args = list(slots[:positional])
    kwargs = dict(zip(code.co_varnames[positional:named], slots[positional:named]))
    rest = iter(slots[named:])
    if code.co_flags & VARARGS:
        args += next(rest)
    if code.co_flags & VARKEYWORDS:
        kwargs.update(next(rest))
    return args, kwargs
