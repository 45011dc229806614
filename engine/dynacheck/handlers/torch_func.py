"""`torch.func`: the function given to a transform becomes a graph, and the transform of it one operation.

While the function is interpreted its arguments are stand-ins as it sees them: one example of a batch, a leaf that
requires a gradient. What the operation returns is asked of torch's own transform.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import torch
from torch._functorch import apis, eager_transforms, vmap

from dynacheck import reasons
from dynacheck.graph import functional
from dynacheck.graph.facts import TensorRef
from dynacheck.graph.subgraphs import union
from dynacheck.handlers import structures
from dynacheck.handlers.higher_order import GraphFunction, lifted_values
from dynacheck.handlers.registry import handles, replaces
from dynacheck.variables import abstract
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.families import string_items
from dynacheck.variables.functions import CallableVariable
from dynacheck.variables.results import python_value
from dynacheck.variables.sequences import TupleVariable
from dynacheck.variables.tensor import TensorVariable

Arg = VariableTracker
Values = Sequence[VariableTracker]
StandIn = Callable[[int, TensorVariable], TensorRef | None]
Returns = Callable[[Tracer, Values], VariableTracker]


def _refuse(tx: Tracer, transform: str, why: str) -> NoReturn:
    tx.break_(reasons.FUNCTION_FORM, operator=f"torch.func.{transform}", why=why)


class Transformed:
    """A function that a transform takes, as a graph.

    Args:
        name: the transform's.
        args: the function's positional arguments.
        stand_in: gives what the function sees of a leaf of the arguments, by its place: None for the leaf itself.

    Attributes:
        given: the leaves that have stand-ins: the graph's arguments.
        shape: the shape of what the function returns.
        leaves: its leaves.
    """

    def __init__(self, tx: Tracer, name: str, args: Values, stand_in: StandIn) -> None:
        self.name = name
        self.leaves: list[VariableTracker] = []
        self.shape: structures.Shape = None
        self.given: list[VariableTracker] = []
        self._stand_in = stand_in
        self._args = structures.flatten(tx, TupleVariable(list(args)))

    def trace(self, tx: Tracer, fn: Arg, kwargs: dict[str, VariableTracker], grad: bool = False) -> None:
        """Interpret the function.

        Args:
            tx: the translator.
            fn: the function.
            kwargs: its keyword arguments.
            grad: with gradients enabled.
        """
        leaves, shape = self._args
        before = torch.is_grad_enabled()
        with tx.function_graph(pure=False) as recorder:
            seen = []
            for place, leaf in enumerate(leaves):
                ref = self._stand_in(place, leaf) if isinstance(leaf, TensorVariable) else None
                if ref is None:
                    seen.append(leaf)
                else:
                    self.given.append(leaf)
                    seen.append(tx.wrap_result(recorder.argument("arg"), ref))
            args = abstract.iterate(tx, structures.unflatten(tx, shape, seen))
            torch._C._set_grad_enabled(grad or before)  # only metadata: the graph keeps the mode it has
            try:
                result = tx.call(fn, args, kwargs)
            finally:
                torch._C._set_grad_enabled(before)
            self.leaves, self.shape = structures.flatten(tx, result)
            recorder.close(tuple(leaf.as_proxy(tx) for leaf in self.tensors()))
        if recorder.has_own_symbols:
            _refuse(tx, self.name, "its function makes numbers of tensors")
        self.lifted = union([recorder])
        made = recorder.module(self.lifted, "functional_body")
        self.function = GraphFunction(made, tx.graph.add_module("functional_body", made, recorder))
        self.captured = TupleVariable(lifted_values(tx, self.lifted))

    def tensors(self) -> list[VariableTracker]:
        """The tensors among the leaves of what the function returns."""
        return [leaf for leaf in self.leaves if isinstance(leaf, TensorVariable)]

    def rebuild(
        self, tx: Tracer, tensors: Iterator[VariableTracker], shape: structures.Shape = None
    ) -> VariableTracker:
        """What the function returns, or a part with that shape of it, with other tensors in it."""
        leaves = [next(tensors) if isinstance(leaf, TensorVariable) else leaf for leaf in self.leaves]
        return structures.unflatten(tx, self.shape if shape is None else shape, leaves)

    def differentiated(self, tx: Tracer, has_aux: bool) -> int:
        """How many of the tensors are results, the others being auxiliary; a break where the transform raises."""
        shape = self.shape
        if has_aux:
            if shape == structures.LEAF or shape[0] is not tuple or len(shape[2]) != 2:
                _refuse(tx, self.name, "its function returns no pair of output and auxiliary values")
            shape = shape[2][0]
        number = structures.count(shape)
        if not number or len(self.tensors()) != len(self.leaves):
            _refuse(tx, self.name, "its function returns something else than tensors")
        return number


if hasattr(apis, "_wraps_without_dynamo_attrs"):

    @replaces(apis._wraps_without_dynamo_attrs)
    def wraps_without_dynamo_attrs(func: Any) -> Any:
        return functools.wraps(func)


def _plain(ref: TensorRef, **changes: Any) -> TensorRef:
    """A tensor over the same storage that has no history."""
    return TensorRef(ref.facts.replace(view=None, is_leaf=True, **changes), ref.storage)


def _argnums(tx: Tracer, argnums: Arg, args: Values, name: str) -> list[int]:
    """The places of the arguments that are differentiated."""
    found = argnums.as_constant(tx)
    numbers = [found] if isinstance(found, int) else list(found)
    places = [n + len(args) if n < 0 else n for n in numbers]
    if not places or not all(0 <= n < len(args) for n in places) or len(set(places)) != len(places):
        _refuse(tx, name, f"argnums is {found}")
    return places


def _leaf_owner(tx: Tracer, args: Values) -> list[int]:
    """Of which argument each leaf is."""
    return [n for n, arg in enumerate(args) for _ in structures.flatten(tx, arg)[0]]


def _chosen(tx: Tracer, args: Values, places: Sequence[int], name: str) -> list[structures.Shape]:
    """The shapes of the arguments that are differentiated; a break if they hold something else than tensors."""
    shapes = []
    for place in places:
        leaves, shape = structures.flatten(tx, args[place])
        if not leaves or not all(isinstance(leaf, TensorVariable) for leaf in leaves):
            _refuse(tx, name, "it is given something else than tensors")
        shapes.append(shape)
    return shapes


def _by_argument(
    tx: Tracer, places: Sequence[int], shapes: Sequence[structures.Shape], values: Iterator[VariableTracker]
) -> list[VariableTracker]:
    """One structure for each place, from values in the order of the arguments."""
    made: dict[int, VariableTracker] = {}
    for place, shape in sorted(zip(places, shapes), key=lambda pair: pair[0]):
        leaves = [next(values) for _ in range(structures.count(shape))]
        made[place] = structures.unflatten(tx, shape, leaves)
    return [made[place] for place in places]


@handles(eager_transforms.grad_and_value_impl)
def grad_and_value(
    tx: Tracer, func: Arg, argnums: Arg, has_aux: Arg, args: Arg, kwargs: Arg
) -> VariableTracker:
    given = abstract.iterate(tx, args)
    aux = abstract.is_true(tx, has_aux)
    places = _argnums(tx, argnums, given, "grad")
    shapes = _chosen(tx, given, places, "grad")
    owners = _leaf_owner(tx, given)
    body = Transformed(
        tx, "grad", given, lambda i, t: _plain(t.ref, requires_grad=True) if owners[i] in places else None
    )
    body.trace(tx, func, string_items(tx, kwargs), grad=True)
    loss = body.leaves[0] if body.differentiated(tx, aux) == 1 else None
    if (
        not isinstance(loss, TensorVariable)
        or loss.ref.facts.shape
        or (not aux and body.shape != structures.LEAF)
    ):
        _refuse(tx, "grad", "its function doesn't return a scalar tensor")
    results = tx.record(
        "call_function", functional.gradients, [body.function, TupleVariable(body.given), body.captured]
    )
    found = abstract.iterate(tx, results)
    number = len(body.given)
    grads = _by_argument(tx, places, shapes, iter(found[:number]))
    single = isinstance(argnums.as_constant(tx), int)
    value = body.rebuild(tx, iter(found[number:]))
    return tx.tuple_of([grads[0] if single else tx.tuple_of(grads), value])


def _dims(tx: Tracer, dims: Any, shape: structures.Shape, name: str) -> list[Any]:
    """Dimensions given for a structure or parts of it, one for each leaf."""
    if dims is None or isinstance(dims, int) or shape == structures.LEAF:
        return [dims] * structures.count(shape)
    _, keys, shapes = shape
    if isinstance(dims, dict) is not (keys is not None) or len(dims) != len(shapes):
        _refuse(tx, name, "its dimensions have another structure")
    parts = dims if keys is None else [dims[key] for key in keys]
    return [d for part, inner in zip(parts, shapes) for d in _dims(tx, part, inner, name)]


def _example(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    if tensor.shape[dim]:
        return tensor.select(dim, 0)
    sizes, strides = list(tensor.shape), list(tensor.stride())
    del sizes[dim], strides[dim]
    return tensor.new_empty_strided(sizes, strides)


@handles(vmap.vmap_impl)
def vmap_(
    tx: Tracer,
    func: Arg,
    in_dims: Arg,
    out_dims: Arg,
    randomness: Arg,
    chunk_size: Arg,
    *args: Arg,
    **kwargs: Arg,
) -> VariableTracker:
    _, shape = structures.flatten(tx, TupleVariable(list(args)))
    dims = _dims(tx, python_value(tx, in_dims), shape, "vmap")
    used: list[int] = []

    def example(place: int, tensor: TensorVariable) -> TensorRef | None:
        dim, ndim = dims[place], tensor.ref.facts.ndim
        if dim is None:
            return None
        if not isinstance(dim, int) or not -ndim <= dim < ndim:
            _refuse(tx, "vmap", f"in_dims is {dim} for a tensor of {ndim} dimensions")
        used.append(dim)
        found: TensorRef = tx.examine(_example, tensor.ref, dim)
        return found

    body = Transformed(tx, "vmap", args, example)
    body.trace(tx, func, kwargs)
    if len(used) != sum(d is not None for d in dims) or not used or len(body.tensors()) != len(body.leaves):
        _refuse(tx, "vmap", "it maps over something else than tensors")
    outs = _dims(tx, python_value(tx, out_dims), body.shape, "vmap")
    options = [tx.constant(tuple(used)), tx.constant(tuple(outs)), randomness, chunk_size]
    results = tx.record(
        "call_function",
        functional.vectorized,
        [body.function, TupleVariable(body.given), body.captured, *options],
    )
    return body.rebuild(tx, iter(abstract.iterate(tx, results)))


@handles(eager_transforms._jvp_with_argnums)
def jvp(
    tx: Tracer, func: Arg, primals: Arg, tangents: Arg, argnums: Arg, has_aux: Arg, strict: Arg | None = None
) -> VariableTracker:
    given = abstract.iterate(tx, primals)
    everything = abstract.is_none(tx, argnums)
    places = list(range(len(given))) if everything else _argnums(tx, argnums, given, "jvp")
    shapes = _chosen(tx, given, places, "jvp")
    flat, shape = structures.flatten(tx, tangents)
    if shape != (tuple, None, tuple(shapes)) or sorted(places) != places:
        _refuse(tx, "jvp", "its tangents have another structure")
    owners = _leaf_owner(tx, given)
    body = Transformed(tx, "jvp", given, lambda i, t: _plain(t.ref) if owners[i] in places else None)
    body.trace(tx, func, {})
    aux = abstract.is_true(tx, has_aux)
    number = body.differentiated(tx, aux)
    rest = [tx.constant(number), tx.constant(strict is not None and abstract.is_true(tx, strict))]
    arguments = [body.function, TupleVariable(body.given), TupleVariable(flat), body.captured, *rest]
    found = abstract.iterate(tx, tx.record("call_function", functional.pushed_forward, arguments))
    inner = body.shape[2][0] if aux else body.shape
    parts = [structures.unflatten(tx, inner, found[n : n + number]) for n in (0, number)]
    if aux:
        whole = body.rebuild(tx, iter([*found[:number], *found[2 * number :]]))
        parts.append(abstract.iterate(tx, whole)[1])
    return tx.tuple_of(parts)


class PullbackVariable(CallableVariable):
    """The function that `vjp` returns: a value of the graph.

    Args:
        proxy: its node.
        made_of: what `functional.with_pullback` was given.
        takes: the shape of its argument.
        returns: makes its result of the gradients.
    """

    __slots__ = ("made_of", "proxy", "returns", "takes")
    python_type = type(_refuse)

    def __init__(
        self,
        proxy: Any,
        made_of: TupleVariable,
        takes: structures.Shape,
        returns: Returns,
    ) -> None:
        super().__init__()
        self.proxy = proxy
        self.made_of = made_of
        self.takes = takes
        self.returns = returns

    def describe(self) -> str:
        return "the function that torch.func.vjp returned"

    def as_proxy(self, tx: Tracer) -> Any:
        return tx.graph_node(self.proxy, self)

    def as_meta(self, tx: Tracer) -> Any:
        return self.made_of.as_meta(tx)

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        flat, shape = structures.flatten(tx, args[0]) if len(args) == 1 and not kwargs else ([], None)
        if shape != self.takes:
            _refuse(tx, "vjp", "the function it returned is called with another structure")
        results = tx.record("call_function", functional.pulled_back, [self, TupleVariable(flat)])
        return self.returns(tx, abstract.iterate(tx, results))

    def children(self) -> Values:
        return (self.made_of,)


@handles(eager_transforms._vjp_with_argnums)
def vjp(
    tx: Tracer, func: Arg, *primals: Arg, argnums: Arg | None = None, has_aux: Arg | None = None
) -> VariableTracker:
    everything = argnums is None or abstract.is_none(tx, argnums)
    places = list(range(len(primals))) if everything else _argnums(tx, argnums, primals, "vjp")  # type: ignore[arg-type]
    shapes = _chosen(tx, primals, places, "vjp")
    owners = _leaf_owner(tx, primals)
    body = Transformed(
        tx, "vjp", primals, lambda i, t: _plain(t.ref, requires_grad=True) if owners[i] in places else None
    )
    body.trace(tx, func, {}, grad=True)
    aux = has_aux is not None and abstract.is_true(tx, has_aux)
    number = body.differentiated(tx, aux)
    made_of = TupleVariable([body.function, TupleVariable(body.given), body.captured, tx.constant(number)])
    refs = tx.examine(functional.without_pullback, *made_of.as_meta(tx))
    node = tx.graph_call(functional.with_pullback, made_of.as_proxy(tx))
    parts = [tx.graph_call(operator.getitem, [node, i]) for i in range(len(refs) + 1)]
    results = body.rebuild(tx, iter([tx.wrap_result(part, ref) for part, ref in zip(parts, refs)]))
    single = not everything and isinstance(argnums.as_constant(tx), int)  # type: ignore[union-attr]

    def returns(tx: Tracer, grads: Values) -> VariableTracker:
        found = _by_argument(tx, places, shapes, iter(grads))
        return found[0] if single else tx.tuple_of(found)

    takes = body.shape[2][0] if aux else body.shape
    pullback = PullbackVariable(parts[-1], made_of, takes, returns)
    if not aux:
        return tx.tuple_of([results, pullback])
    output, others = abstract.iterate(tx, results)
    return tx.tuple_of([output, pullback, others])
