"""`torch.autograd.Function`: `forward` and `backward` become graphs, and the graph calls a function made of the two.

Where that can't be said (in functions that operators take, or where the context is told more than the engine models), the
graph calls the function as a whole, after both were interpreted to see that they can be.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import torch
from torch.autograd.function import Function, FunctionCtx
from torch.utils.hooks import BackwardHook

from dynacheck import reasons
from dynacheck.graph.custom import ONCE, custom_function
from dynacheck.graph.facts import TensorRef
from dynacheck.graph.subgraphs import INNER, SubgraphRecorder, union
from dynacheck.graph.throwaway import on_its_own
from dynacheck.handlers import structures
from dynacheck.handlers.higher_order import GraphFunction, lifted_values
from dynacheck.handlers.registry import handles
from dynacheck.sources import type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.base import ObservedException, Tracer, VariableTracker
from dynacheck.variables.functions import ObjectVariable
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.sequences import TupleVariable
from dynacheck.variables.tensor import TensorVariable

_PLAIN_SETUP: Final[Any] = type_lookup(Function, "setup_context")
_APPLY: Final[Any] = type_lookup(Function, "apply")  # a class method written in Python, since torch 2.14 in C


class _AsAWhole(Exception):
    """The function has to be called as it is."""


@handles(torch.autograd.grad)
def differentiates(tx: Tracer, /, *args: VariableTracker, **kwargs: VariableTracker) -> NoReturn:
    """`torch.autograd.grad`, which torch traces only where a setting of its own asks for it."""
    tx.break_(reasons.BACKWARD_CALL, call="torch.autograd.grad()")


@handles(getattr(_APPLY, "__func__", _APPLY))
def apply(
    tx: Tracer, cls: VariableTracker, *args: VariableTracker, **kwargs: VariableTracker
) -> VariableTracker:
    """`apply`. Without gradients it is what `forward` does; with them an operation of the graph, as `forward` promises no
    more than its outputs."""
    if not isinstance(cls, ObjectVariable) or kwargs:
        tx.break_(reasons.UNKNOWN_CALL, what=f"{cls.describe()}.apply with keyword arguments")
    call = _Application(tx, cls, list(args))
    if not call.differentiable:
        return call.forward(list(args))
    if not isinstance(tx.graph, SubgraphRecorder):
        try:
            return call.as_graphs()
        except _AsAWhole:
            pass
    return call.as_a_whole()


class _Application:
    """One call of `apply`."""

    def __init__(self, tx: Tracer, cls: ObjectVariable, args: list[VariableTracker]) -> None:
        self.tx = tx
        self.cls = cls
        self.args = args
        needed = [isinstance(a, TensorVariable) and a.ref.facts.requires_grad for a in args]
        self.differentiable = torch.is_grad_enabled() and any(needed)
        self.needed = tx.tuple_of([tx.constant(n and self.differentiable) for n in needed])
        self.context = self._new_context()

    def _new_context(self) -> UserObjectVariable:
        context = UserObjectVariable(FunctionCtx)
        context.attrs["needs_input_grad"] = self.needed
        return context

    def forward(self, args: list[VariableTracker]) -> VariableTracker:
        """What `forward` returns."""
        tx = self.tx
        forward = abstract.getattr_(tx, self.cls, "forward")
        previous = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)  # only metadata: the graph keeps the mode it has
        try:
            if type_lookup(self.cls.value, "setup_context") is _PLAIN_SETUP:
                return tx.call(forward, [self.context, *args])
            result = tx.call(forward, args)
            setup = abstract.getattr_(tx, self.cls, "setup_context")
            tx.call(setup, [self.context, tx.tuple_of(args), result])
            return result
        finally:
            torch._C._set_grad_enabled(previous)

    def _told(self, name: str) -> VariableTracker | None:
        """What the context was told."""
        found = self.context.attrs.get(name)
        return None if found is None else found.realize(self.tx)

    def as_graphs(self) -> VariableTracker:
        """Record it as its two graphs."""
        tx = self.tx
        tensors = list(dict.fromkeys(a for a in self.args if isinstance(a, TensorVariable)))
        with tx.function_graph(pure=False) as recorder:
            stand_ins = {id(t): self._stand_in(recorder, t) for t in tensors}
            result = self.forward([stand_ins.get(id(a), a) for a in self.args])
            leaves, shape = structures.flatten(tx, result)
            outs = [leaf for leaf in leaves if isinstance(leaf, TensorVariable)]
            if self._told("dirty_tensors") is not None or self._told("materialize_grads") is not None:
                raise _AsAWhole
            if shape != structures.LEAF and (
                shape[0] is not tuple or structures.count(shape) != len(shape[2])
            ):
                raise _AsAWhole
            constant = self._constant(outs)
            nodes = [out.as_proxy(tx) for out in outs]
            backward = self.backward(leaves, tensors)
            recorder.close((*nodes, *backward.lifted))
        name = self.cls.value.__name__
        lifted = union([recorder])
        pair = []
        for recorded, which, uses in (
            (recorder, "forward", lifted),
            (backward, "backward", union([backward])),
        ):
            module = recorded.module(uses, f"{name}_{which}")
            module.meta[INNER] = True
            pair.append(GraphFunction(module, tx.graph.add_module(f"{name}_{which}", module, recorded)))
        given = TupleVariable(tensors)
        options = [tx.constant(len(outs)), tx.constant(constant), tx.constant(self._is_once())]
        arguments = [*pair, given, TupleVariable(lifted_values(tx, lifted)), *options]
        found = iter(abstract.iterate(tx, tx.record("call_function", custom_function, arguments)))
        values = [next(found) if isinstance(leaf, TensorVariable) else leaf for leaf in leaves]
        return structures.unflatten(tx, shape, values)

    def _stand_in(self, recorder: SubgraphRecorder, tensor: TensorVariable) -> VariableTracker:
        ref = tensor.ref
        return self.tx.wrap_result(recorder.argument("arg"), TensorRef(ref.facts, ref.storage, ref.base))

    def _constant(self, outs: Sequence[TensorVariable]) -> tuple[int, ...]:
        """Which results were marked as having no gradient."""
        marked = self._told("non_differentiable")
        if marked is None:
            return ()
        found = [value.realize(self.tx) for value in abstract.iterate(self.tx, marked)]
        return tuple(i for i, out in enumerate(outs) if any(out is value for value in found))

    def _is_once(self) -> bool:
        raw: Any = type_lookup(self.cls.value, "backward")
        return getattr(getattr(raw, "__func__", raw), "__code__", None) is ONCE

    def backward(
        self, leaves: Sequence[VariableTracker], tensors: Sequence[TensorVariable]
    ) -> SubgraphRecorder:
        """Interpret `backward` inside of `forward`'s graph, of which it takes what it needs."""
        tx = self.tx
        context = self._new_context()
        context.attrs.update(self.context.attrs)
        context.attrs["saved_tensors"] = self._told("to_save") or tx.tuple_of([])
        backward = abstract.getattr_(tx, self.cls, "backward")
        previous = torch.is_grad_enabled()
        recorder: SubgraphRecorder
        with tx.function_graph(*(v for v in self.context.attrs.values() if v is not None)) as recorder:
            grads: list[VariableTracker] = []
            for leaf in leaves:
                if isinstance(leaf, TensorVariable):
                    ref = on_its_own(leaf.ref.facts.replace(requires_grad=False))
                    grads.append(tx.wrap_result(recorder.argument("grad"), ref))
                else:
                    grads.append(tx.constant(None))
            torch._C._set_grad_enabled(False)
            try:
                result = tx.call(backward, [context, *grads])
            except ObservedException:
                raise _AsAWhole from None  # when it runs, if it does
            finally:
                torch._C._set_grad_enabled(previous)
            recorder.close(tuple(self._gradients(result, tensors)))
        if recorder.has_own_symbols:
            raise _AsAWhole
        return recorder

    def _gradients(self, result: VariableTracker, tensors: Sequence[TensorVariable]) -> list[Any]:
        """The nodes of the gradients that `backward` returns, one for each tensor among the arguments."""
        tx = self.tx
        real = result.realize(tx)
        found = [v.realize(tx) for v in abstract.iterate(tx, real)] if real.get_type() is tuple else [real]
        extra = found[len(self.args) :]
        if len(found) < len(self.args) or not all(abstract.is_none(tx, value) for value in extra):
            raise _AsAWhole
        by_tensor: dict[int, Any] = {}
        for arg, grad in zip(self.args, found):
            if isinstance(grad, TensorVariable) and isinstance(arg, TensorVariable):
                if by_tensor.setdefault(id(arg), grad) is not grad:
                    raise _AsAWhole  # one tensor twice: its gradients are added
            elif not abstract.is_none(tx, grad):
                raise _AsAWhole
        return [by_tensor[id(t)].as_proxy(tx) if id(t) in by_tensor else None for t in tensors]

    def as_a_whole(self) -> VariableTracker:
        """Record a call of the function as it is, after interpreting it: side effects are a break."""
        tx = self.tx
        self.context = self._new_context()
        with tx.function_graph(*self.args):
            self.forward(self.args)
        if self._told("dirty_tensors") is not None:
            self._refuse("it writes to its arguments")
        return tx.record("call_function", _target(self.cls.value), self.args)

    def _refuse(self, why: str) -> NoReturn:
        self.tx.break_(reasons.FUNCTION_FORM, operator=self.cls.describe(), why=why)


_targets: Final[weakref.WeakKeyDictionary[type, Callable[..., Any]]] = weakref.WeakKeyDictionary()


def _target(cls: type[Function]) -> Callable[..., Any]:
    """What the graph calls: a function under a name that generated code can have, one for a class."""
    found = _targets.get(cls)
    if found is None:
        held = weakref.ref(cls)  # the entry's guards hold for as long as the class is there

        def run(*args: Any) -> Any:
            known: Any = held()
            return known.apply(*args)

        run.__name__ = run.__qualname__ = f"{cls.__name__}_apply"
        run.__module__ = cls.__module__
        found = _targets[cls] = run
    return found


@handles(BackwardHook)
def backward_hook(tx: Tracer, module: VariableTracker, *hooks: VariableTracker) -> VariableTracker:
    return tx.break_(reasons.BACKWARD_HOOKS, what=module.realize(tx).describe())
