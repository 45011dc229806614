"""Functions of numpy, and the way between tensors and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dynacheck import reasons
from dynacheck.graph import arrays
from dynacheck.graph.arrays import SCALARS, numpy
from dynacheck.handlers.registry import handles
from dynacheck.handlers.torch_tensors import holds_unread, special
from dynacheck.variables import abstract
from dynacheck.variables.arrays import ArrayVariable, of_tensor, record
from dynacheck.variables.base import Rebuilder, Tracer, VariableTracker
from dynacheck.variables.functions import ObjectVariable
from dynacheck.variables.tensor import TensorVariable


def call(
    tx: Tracer, value: Any, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker | None:
    """Call a function of numpy that torch's numpy has; None for what is none.

    Args:
        tx: the translator.
        value: what is called.
        args: positional arguments.
        kwargs: keyword arguments.

    Returns:
        The result's tracker.
    """
    module = getattr(value, "__module__", None) or type(value).__module__
    if module.partition(".")[0] != "numpy":
        return None
    target = arrays.function_of(value)
    if target is None or (isinstance(value, numpy.ufunc) and len(args) > value.nin):  # results by position
        return None
    first = args[0].realize(tx) if args else None
    if isinstance(first, TensorVariable) and value is numpy.asarray:
        args = [to_numpy(tx, first, [], {}), *args[1:]]
    found = record(tx, target, args, kwargs)
    if isinstance(value, numpy.ufunc):
        _check_dtypes(tx, value, args, found)
    return found


def _check_dtypes(tx: Tracer, value: Any, args: Sequence[VariableTracker], found: VariableTracker) -> None:
    """Break where torch's numpy promotes integers in another way than numpy, which is asked about ones."""
    given = [arg.realize(tx) for arg in args[: value.nin]]
    if not all(isinstance(arg, ArrayVariable) or arg.is_constant() for arg in given):
        return
    wanted = value(*[_one(arg) if isinstance(arg, ArrayVariable) else arg.as_constant(tx) for arg in given])
    results = [found] if isinstance(found, ArrayVariable) else abstract.iterate(tx, found)
    for theirs, ours in zip(wanted if isinstance(wanted, tuple) else (wanted,), results, strict=True):
        if not isinstance(ours, ArrayVariable) or theirs.dtype.name != _name(ours.tensor.ref.facts.dtype):
            tx.break_(reasons.OPERATOR_FAILED, call=f"numpy.{value.__name__}", why="torch promotes otherwise")


def _one(array: ArrayVariable) -> Any:
    facts = array.tensor.ref.facts
    ones = numpy.ones((1,) * len(facts.shape), _name(facts.dtype))
    return ones[()] if array.scalar else ones


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@special("numpy")
def to_numpy(
    tx: Tracer, tensor: TensorVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    forced = bool(kwargs["force"].realize(tx).as_constant(tx)) if "force" in kwargs else False
    if args or numpy is None:
        tx.break_(reasons.UNKNOWN_CALL, what="Tensor.numpy with these arguments")
    facts = tensor.ref.facts
    if forced:
        detached = tensor.call_method(tx, "detach", [], {})
        found = tx.record("call_method", "cpu", [detached])
        assert isinstance(found, TensorVariable)
        return ArrayVariable(found, False)
    if facts.requires_grad:
        text = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        tx.raise_(RuntimeError, text)
    if facts.device.type != "cpu" or facts.is_conj or facts.is_neg or not _has_array(facts.dtype):
        tx.break_(reasons.SCALAR_OUTPUT, call="Tensor.numpy()")
    return of_tensor(tx, tensor)


def _has_array(dtype: torch.dtype) -> bool:
    return _name(dtype) in {numpy.dtype(cls).name for cls in SCALARS}


@handles(torch.from_numpy)
def from_numpy(tx: Tracer, ndarray: VariableTracker, /) -> VariableTracker:
    if not isinstance(ndarray, ArrayVariable) or ndarray.scalar:
        name = ndarray.get_type().__name__
        tx.raise_(TypeError, f"expected np.ndarray (got {name})")
    return tx.record("call_function", torch.detach, [ndarray.tensor])


@handles(torch.tensor)
def tensor(tx: Tracer, data: VariableTracker, **kwargs: VariableTracker) -> VariableTracker | None:
    """A copy of an array; numbers that are tensors are put together in the graph; other data as torch takes it."""
    if not isinstance(data, TensorVariable) and holds_unread(tx, data):
        return tx.record("call_function", torch._refs.tensor, [data], kwargs)
    if not isinstance(data, ArrayVariable) or set(kwargs) - {"dtype", "device"}:
        return None
    cloned = tx.record("call_method", "clone", [data.tensor])
    assert isinstance(cloned, TensorVariable)
    return cloned.call_method(tx, "to", [], kwargs) if kwargs else cloned


class InfoVariable(ObjectVariable):
    """What `finfo` or `iinfo` of numpy tells of a dtype."""

    __slots__ = ()

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        found = getattr(self.value, name)
        if type(found) in SCALARS:
            return call(tx, type(found), [tx.constant(found.item())], {}) or tx.constant(found)
        return tx.constant(found)

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(type(self.value), lambda: to.load_const(self.value.dtype.name))


def _info(tx: Tracer, function: Any, dtype: VariableTracker) -> VariableTracker:
    of = dtype.value if isinstance(dtype, ObjectVariable) else dtype.as_constant(tx)
    return InfoVariable(function(of))


if numpy is not None:
    for _function in (numpy.finfo, numpy.iinfo):
        handles(_function)(lambda tx, dtype, _function=_function: _info(tx, _function, dtype))
