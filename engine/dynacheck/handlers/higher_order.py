"""Operators that take functions (`torch.cond`, `while_loop`, `scan`, checkpoints): each function becomes a graph of its
own, an attribute of the graph around it, and gets what it uses of that graph as arguments.

What can't be captured is an error for most of them, as with torch, since running them eagerly captures them too.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import torch
from torch._higher_order_ops.associative_scan import associative_scan_op
from torch._higher_order_ops.cond import cond_op
from torch._higher_order_ops.flex_attention import flex_attention as flex_attention_op
from torch._higher_order_ops.map import map_impl
from torch._higher_order_ops.scan import scan_op
from torch._higher_order_ops.while_loop import while_loop_op
from torch._higher_order_ops.wrap import tag_activation_checkpoint
from torch.nn.attention import flex_attention as flex
from torch.nn.attention.flex_attention import noop_mask
from torch.utils import checkpoint

from dynacheck import errors, reasons
from dynacheck.graph.facts import TensorRef
from dynacheck.graph.subgraphs import SubgraphRecorder, effects, union
from dynacheck.graph.throwaway import on_its_own
from dynacheck.handlers import structures
from dynacheck.handlers.registry import handles
from dynacheck.variables import abstract
from dynacheck.variables.base import GraphBreak, ObservedException, Tracer, VariableTracker
from dynacheck.variables.callables import PartialVariable
from dynacheck.variables.functions import CallableVariable
from dynacheck.variables.sequences import ListVariable, TupleVariable
from dynacheck.variables.subclasses import SubclassTensorVariable
from dynacheck.variables.symbolic import SymNumberVariable
from dynacheck.variables.tensor import INDEXED_BY_TENSORS, TensorVariable
from dynacheck.variables.walk import reachable

Arg = VariableTracker


class GraphFunction(CallableVariable):
    """A function as a graph: an attribute of the graph that is being recorded."""

    __slots__ = ("module", "proxy")
    python_type = torch.fx.GraphModule

    def __init__(self, module: torch.fx.GraphModule, proxy: Any) -> None:
        super().__init__()
        self.module = module
        self.proxy = proxy

    def as_proxy(self, tx: Tracer) -> Any:
        return self.proxy

    def as_meta(self, tx: Tracer) -> Any:
        return self.module


class Body:
    """A traced function: its graph, what it returns, and the stand-ins of its arguments.

    Args:
        operator: the operator that takes it, for messages.
        name: what it is called in the graph around it.
    """

    def __init__(self, operator: str, name: str) -> None:
        self.operator = operator
        self.name = name
        self.recorder: SubgraphRecorder
        self.shape: structures.Shape = None
        self.leaves: list[VariableTracker] = []
        self.metas: list[Any] = []

    def trace(
        self,
        tx: Tracer,
        fn: VariableTracker,
        args: Sequence[VariableTracker],
        fresh: Sequence[TensorRef | torch.SymInt] = (),
        single: bool = False,
        numbers: type | None = None,
    ) -> None:
        """Interpret the function; it has to return tensors, in a structure.

        Args:
            tx: the translator.
            fn: the function.
            args: its last arguments, of the graph around it.
            fresh: its first arguments, made by the operator.
            single: it has to return one tensor.
            numbers: what it may return beside tensors.

        Raises:
            UncapturedHigherOrderOpError: it can't be captured.
        """
        try:
            self._trace(tx, fn, args, fresh, single, numbers)
        except GraphBreak as broke:
            text = f"{self.operator} has to be captured as a whole: {_text(broke)}"
            raise errors.make(errors.UncapturedHigherOrderOpError, text) from None

    def _trace(
        self,
        tx: Tracer,
        fn: VariableTracker,
        args: Sequence[VariableTracker],
        fresh: Sequence[TensorRef | torch.SymInt],
        single: bool,
        numbers: type | None,
    ) -> None:
        with tx.function_graph(fn, *args) as recorder:
            self.recorder = recorder
            given = [*(_parameter(tx, recorder, ref) for ref in fresh), *args]
            try:
                result = tx.call(fn, given)
            except ObservedException as observed:
                self.refuse(tx, f"a function raises {observed.exception.get_type().__name__}")
            self.leaves, self.shape = structures.flatten(tx, result)
            if not all(isinstance(v, TensorVariable) or v.get_type() is numbers for v in self.leaves):
                self.refuse(tx, "a function returns something else than tensors")
            if recorder.has_own_symbols:
                self.refuse(tx, "a function makes numbers of tensors")
            if single and self.shape != structures.LEAF:
                self.refuse(tx, "a function returns something else than one tensor")
            self.metas = list(fresh)
            nodes = tuple(leaf.as_proxy(tx) for leaf in self.leaves)
            recorder.close(nodes[0] if single else nodes)

    def module(self, tx: Tracer, lifted: dict[Any, Any], may_alias: bool = False) -> GraphFunction:
        """The function as a graph, made an attribute of the graph around it; a break if it has effects.

        Args:
            tx: the translator.
            lifted: the values of the graph around it that it gets after its arguments.
            may_alias: it may return what it is given.
        """
        made = self.recorder.module(lifted, self.name)
        metas = [lifted[node] for node in lifted]
        why = "" if may_alias else tx.examine(effects, made, *self.metas, *metas)
        if why:
            self.refuse(tx, f"of a function, {why}")
        return GraphFunction(made, tx.graph.add_module(self.name, made, self.recorder))

    def refuse(self, tx: Tracer, why: str) -> NoReturn:
        """The operator can't take the function."""
        refuse(tx, self.operator, why)


_CHECKPOINT_OPTIONS: Final = frozenset(
    {"use_reentrant", "determinism_check", "debug", "early_stop", "preserve_rng_state"}
)


@handles(checkpoint.checkpoint)
def checkpoint_(tx: Tracer, function: Arg, *args: Arg, **kwargs: Arg) -> VariableTracker:
    """What the function returns, tensors being those of one operator that keeps nothing for the backward pass."""
    context = kwargs.pop("context_fn", None)
    contexts = None if context is None else _real_function(tx, context)
    options = {name: kwargs.pop(name) for name in list(kwargs) if name in _CHECKPOINT_OPTIONS}
    with tx.function_graph(function, *args, *kwargs.values()) as recorder:
        result = tx.call(function, args, kwargs)
        made = [
            v for v in reachable([result]) if isinstance(v, TensorVariable) and v.is_made_in(recorder.graph)
        ]
        if recorder.has_own_symbols:
            tx.break_(
                reasons.FUNCTION_FORM, operator="checkpoint", why="the function makes numbers of tensors"
            )
        recorder.close(tuple(value.as_proxy(tx) for value in made))
    lifted = union([recorder])
    body = recorder.module(lifted, "wrap_body")
    if contexts not in (None, checkpoint.noop_context_fn):
        body.meta["_checkpoint_context_fn"] = contexts  # where torch's operator looks for it
    module = tx.graph.add_module("wrap_body", body, recorder)
    named = {name: value.as_constant(tx) for name, value in options.items()}
    node = tx.graph_call(tag_activation_checkpoint, [module, *lifted], named)
    for index, value in enumerate(made):
        value.move(tx.graph_call(operator.getitem, [node, index]))
    return result


def _real_function(tx: Tracer, value: VariableTracker) -> Any:
    """The function, or partial of functions, that a tracker stands for: it is called when the graph runs."""
    real = value.realize(tx)
    if isinstance(real, PartialVariable):
        args = [_real_function(tx, arg) for arg in abstract.iterate(tx, real.args)]
        named = {key: _real_function(tx, arg) for key, arg in tx.string_items(real.keywords).items()}
        return functools.partial(_real_function(tx, real.function), *args, **named)
    if real.is_constant():
        return real.as_constant(tx)
    known = getattr(real, "value", None)
    if known is None or getattr(known, "__closure__", None):
        tx.break_(reasons.FUNCTION_FORM, operator="checkpoint", why="context_fn is made in the frame")
    return known


def _text(broke: GraphBreak) -> str:
    return reasons.break_text(broke.reason, broke.message, broke.stack)


def refuse(tx: Tracer, operator: str, why: str) -> NoReturn:
    """An operator that has to be captured can't be.

    Args:
        tx: the translator.
        operator: its name.
        why: the sentence that says so.

    Raises:
        UncapturedHigherOrderOpError: always.
    """
    try:
        tx.break_(reasons.FUNCTION_FORM, operator=operator, why=why)
    except GraphBreak as broke:
        raise errors.make(errors.UncapturedHigherOrderOpError, _text(broke)) from None


def _parameter(tx: Tracer, recorder: SubgraphRecorder, ref: TensorRef | torch.SymInt) -> VariableTracker:
    return tx.wrap_result(recorder.argument("arg"), ref)


def lifted_values(tx: Tracer, lifted: dict[Any, Any]) -> list[VariableTracker]:
    """Trackers of lifted values."""
    found = (v if isinstance(v, VariableTracker) else tx.wrap_result(node, v) for node, v in lifted.items())
    return [value.plain if isinstance(value, SubclassTensorVariable) else value for value in found]


def _record(
    tx: Tracer, operator: Any, body: Body, args: Sequence[VariableTracker], kwargs: Any = None
) -> list[VariableTracker]:
    """Record the operator's call; the tensors it returns."""
    try:
        found = tx.record("call_function", operator, args, kwargs)
    except ObservedException as observed:
        body.refuse(tx, f"it raises {observed.exception.get_type().__name__}")
    return abstract.iterate(tx, found)


def _tensors(tx: Tracer, values: VariableTracker, body: Body) -> list[TensorVariable]:
    """The tensors of a sequence; a break if there is anything else."""
    found = [value.realize(tx) for value in abstract.iterate(tx, values)]
    tensors = [value for value in found if isinstance(value, TensorVariable)]
    if len(tensors) != len(found):
        why = "it is given something else than tensors"  # which torch's own may take
        tx.break_(reasons.FUNCTION_FORM, operator=body.operator, why=why)
    return tensors


@handles(cond_op)
def cond(tx: Tracer, pred: Arg, true_fn: Arg, false_fn: Arg, operands: Arg | None = None) -> VariableTracker:
    args = [] if operands is None else abstract.iterate(tx, operands)
    if not isinstance(pred, (TensorVariable, SymNumberVariable)):
        return tx.call(true_fn if abstract.is_true(tx, pred) else false_fn, args)
    one, other = Body("torch.cond", "cond_true"), Body("torch.cond", "cond_false")
    for body, fn in ((one, true_fn), (other, false_fn)):
        body.trace(tx, fn, args)
    if one.shape != other.shape:
        one.refuse(tx, "its functions return different structures")
    lifted = union([one.recorder, other.recorder])
    modules = [body.module(tx, lifted) for body in (one, other)]
    results = _record(tx, cond_op, one, [pred, *modules, TupleVariable(lifted_values(tx, lifted))])
    return structures.unflatten(tx, one.shape, results)


def _carried(tx: Tracer, value: VariableTracker, body: Body) -> TensorRef | torch.SymInt:
    """What stands for a value that each round of a loop makes anew: of a number, nothing is known."""
    if isinstance(value, TensorVariable):
        return on_its_own(value.ref.facts)
    if value.get_type() is not int:
        tx.break_(
            reasons.FUNCTION_FORM,
            operator=body.operator,
            why="it carries something else than tensors and ints",
        )
    if tx.env is None:
        tx.need_symbols()
    found: torch.SymInt = tx.env.unknown()
    return found


@handles(while_loop_op)
def while_loop(tx: Tracer, cond_fn: Arg, body_fn: Arg, carried: Arg, additional: Arg) -> VariableTracker:
    test, step = Body("while_loop", "cond_fn"), Body("while_loop", "body_fn")
    inputs = [value.realize(tx) for value in abstract.iterate(tx, carried)]
    test.trace(tx, cond_fn, [], [_carried(tx, value, test) for value in inputs], single=True, numbers=bool)
    step.trace(tx, body_fn, [], [_carried(tx, value, step) for value in inputs], numbers=int)
    if test.leaves[0].is_constant() and test.leaves[0].as_constant(tx):
        test.refuse(tx, "the condition is always true")
    lifted = union([test.recorder, step.recorder])
    modules = [body.module(tx, lifted) for body in (test, step)]
    extra = TupleVariable(lifted_values(tx, lifted))
    results = _record(tx, while_loop_op, step, [*modules, TupleVariable(inputs), extra])
    return structures.unflatten(tx, step.shape, results)


def _slices(tx: Tracer, tensors: Sequence[TensorVariable]) -> list[TensorRef]:
    """The first item of each tensor, as tensors of their own."""
    return [on_its_own(tx.examine(_first, tensor.ref).facts) for tensor in tensors]


def _first(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.select(0, 0)


def _over_items(
    tx: Tracer,
    operator: Any,
    body: Body,
    fn: Arg,
    fresh: list[TensorRef],
    given: Sequence[Sequence[VariableTracker]],
    more: Sequence[VariableTracker] = (),
) -> VariableTracker:
    """Trace the function of an operator that runs it for each item, and record the call."""
    body.trace(tx, fn, more, fresh)
    lifted = union([body.recorder])
    module = body.module(tx, lifted)
    parts: list[VariableTracker] = [ListVariable(list(part)) for part in given]
    parts.append(TupleVariable(lifted_values(tx, lifted)))
    return structures.unflatten(tx, body.shape, _record(tx, operator, body, [module, *parts]))


@handles(scan_op)
def scan(tx: Tracer, combine_fn: Arg, init: Arg, xs: Arg, additional_inputs: Arg) -> VariableTracker:
    body = Body("scan", "scan_combine_fn")
    starts, items = _tensors(tx, init, body), _tensors(tx, xs, body)
    fresh = [*(on_its_own(value.ref.facts) for value in starts), *_slices(tx, items)]
    return _over_items(tx, scan_op, body, combine_fn, fresh, [starts, items])


@handles(associative_scan_op)
def associative_scan(tx: Tracer, combine_fn: Arg, xs: Arg, additional_inputs: Arg) -> VariableTracker:
    body = Body("associative_scan", "associative_scan_combine_fn")
    items = _tensors(tx, xs, body)
    fresh = [*_slices(tx, items), *_slices(tx, items)]
    return _over_items(tx, associative_scan_op, body, combine_fn, fresh, [items])


@handles(map_impl)
def map_(tx: Tracer, f: Arg, xs: Arg, pos_args: Arg) -> VariableTracker:
    body = Body("map", "map_body")
    items, others = _tensors(tx, xs, body), abstract.iterate(tx, pos_args)
    return _over_items(tx, map_impl, body, f, _slices(tx, items), [items], others)


@handles(flex_attention_op)
def flex_attention(
    tx: Tracer,
    query: Arg,
    key: Arg,
    value: Arg,
    score_mod: Arg,
    block_mask: Arg,
    scale: Arg,
    kernel_options: Arg,
) -> VariableTracker:
    """Both functions get numbers as 0-d tensors: the score, then batch, head and positions."""
    *blocks, mask_mod = [item.realize(tx) for item in abstract.iterate(tx, block_mask)]
    if abstract.is_none(tx, mask_mod):
        mask_mod = tx.object(noop_mask)
    given = query.as_meta(tx)
    score, index = (on_its_own(tx.examine(make, given).facts) for make in (_score, _index))
    parts = []
    for name, fn, first in (("score_mod", score_mod, [score]), ("mask_fn", mask_mod, [])):
        body = Body("flex_attention", name)
        tx.state[INDEXED_BY_TENSORS] = True
        try:
            body.trace(tx, fn, [], [*first, *(on_its_own(index.facts) for _ in range(4))], single=True)
        finally:
            del tx.state[INDEXED_BY_TENSORS]
        lifted = union([body.recorder])
        parts.append((body.module(tx, lifted, True), TupleVariable(lifted_values(tx, lifted))))
    (score_graph, score_uses), (mask_graph, mask_uses) = parts
    blocks.append(mask_graph)
    arguments = [
        query,
        key,
        value,
        score_graph,
        TupleVariable(blocks),
        scale,
        kernel_options,
        score_uses,
        mask_uses,
    ]
    return tx.record("call_function", flex_attention_op, arguments)


def _score(query: torch.Tensor) -> torch.Tensor:
    return query.new_empty([], requires_grad=query.requires_grad)


def _index(query: torch.Tensor) -> torch.Tensor:
    return query.new_empty([], dtype=torch.int32)


def _has_unbacked(tx: Tracer, value: VariableTracker) -> bool:
    """Whether only the graph knows a number, or a size of a tensor, in a structure."""
    real = value.realize(tx)
    if isinstance(real, TensorVariable):
        facts = real.ref.facts
        sizes = (*facts.shape, *facts.stride, facts.storage_offset)
        return any(isinstance(size, torch.SymInt) and tx.env.hint(size) is None for size in sizes)
    if isinstance(real, SymNumberVariable):
        return real.is_unbacked()
    return real.get_type() in (tuple, list) and any(_has_unbacked(tx, v) for v in abstract.iterate(tx, real))


if hasattr(flex, "has_free_unbacked_symbols"):  # since torch 2.14

    @handles(flex.has_free_unbacked_symbols)
    def has_free_unbacked_symbols(tx: Tracer, x: Arg) -> VariableTracker:
        return tx.constant(_has_unbacked(tx, x))
