"""Running an operator on stand-in tensors: no user modes, side effects or noise; telling failures apart."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any, cast

import torch

from dynacheck.graph.facts import TensorRef, UnsupportedTensor
from dynacheck.graph.outcomes import DataDependent, OperatorRaised, UnsupportedOperator
from dynacheck.graph.state import RandomStates
from dynacheck.graph.symbolic import SymbolicEnv
from dynacheck.graph.throwaway import as_no_grad, without_function_modes

NUMBERS = (int, float, bool, complex)
NAMES = (str, bytes, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)
CONSTANTS = (*NUMBERS, *NAMES)
SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def is_once(target: Any) -> bool:
    """Whether an operator's metadata is not kept: it takes functions, which are made anew by each translation."""
    return isinstance(target, torch._ops.HigherOrderOperator)


def holds_symbols(value: Any) -> bool:
    """Whether an operator's argument has a symbolic number in it.

    Args:
        value: the argument, with TensorRefs for tensors.
    """
    if isinstance(value, (tuple, list)):
        return any(map(holds_symbols, value))
    return isinstance(value, SYMBOLS)


def is_users(target: Any) -> bool:
    """Whether a function is a user's (`allow_in_graph`): it may read more than its arguments, real tensors too."""
    return isinstance(target, FunctionType) and not target.__module__.startswith("torch")


def is_own_class(target: Any) -> bool:
    """Whether a target is a class of tensors that a user wrote."""
    return isinstance(target, type) and target.__module__ != "torch"


def rebuild(kind: type, items: list[Any]) -> Any:
    """A sequence of the same kind as the operator's: tuple, list, Size, namedtuple or torch.return_types."""
    if kind is tuple:
        return tuple(items)
    if kind is list:
        return items
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def map_structure(value: Any, tensor: Callable[[Any], Any], leaf: type) -> Any:
    """Copy a structure of tuples, lists, dicts and slices, with a function applied to its leaves of one type.

    Args:
        value: the structure.
        tensor: applied to every leaf that is an instance of `leaf`.
        leaf: the type of the leaves to map.

    Returns:
        The copy; structures without such leaves are returned as they are.

    Raises:
        UnsupportedOperator: for a leaf of a kind that operators' results don't have.
    """
    if isinstance(value, leaf):
        return tensor(value)
    if isinstance(value, CONSTANTS):
        return value
    if isinstance(value, (tuple, list)):
        return rebuild(type(value), [map_structure(v, tensor, leaf) for v in value])
    if isinstance(value, dict):
        return {k: map_structure(v, tensor, leaf) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(map_structure(v, tensor, leaf) for v in (value.start, value.stop, value.step)))
    return value


_IGNORED = ("ignore", None, Warning, None, 0)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """What an operator warns of is told when the graph runs. torch would tell some of it only once in a process.

    `catch_warnings` would make void what Python remembers of warnings that are told once per place.
    """
    always, filters = torch.is_warn_always_enabled(), cast("list[Any]", warnings.filters)
    torch.set_warn_always(True)
    filters.insert(0, _IGNORED)
    try:
        yield
    finally:
        filters.remove(_IGNORED)
        torch.set_warn_always(always)


@contextmanager
def running(mode: Any) -> Iterator[None]:
    """Run operators on fake tensors: no user modes, no autocast cache, random state of the CPU kept."""
    rng = RandomStates(())
    cached = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    log = logging.getLogger(
        "torch._subclasses.fake_tensor"
    )  # it prints a traceback for an operator that raises
    silent = log.disabled
    log.disabled = True
    traced = torch._C._autograd._saved_tensors_hooks_set_tracing(True)  # no hook of the program's is called
    try:
        with _without_warnings(), without_function_modes(), mode:
            yield
    finally:
        torch._C._autograd._saved_tensors_hooks_set_tracing(traced)
        log.disabled = silent
        torch.set_autocast_cache_enabled(cached)
        rng.restore()


def invoke(op: str, target: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if op == "call_method":
        return getattr(args[0], target)(*args[1:], **kwargs)
    return target(*args, **kwargs)


def classified(error: Exception) -> Exception:
    """The outcome that an exception from a fake run means.

    Args:
        error: the exception.

    Returns:
        OperatorRaised, DataDependent or UnsupportedOperator.
    """
    from torch._subclasses import fake_tensor
    from torch.fx.experimental import symbolic_shapes

    if isinstance(error, (OperatorRaised, DataDependent, UnsupportedOperator)):
        return error
    if isinstance(
        error,
        (
            fake_tensor.DynamicOutputShapeException,
            fake_tensor.DataDependentOutputException,
            symbolic_shapes.GuardOnDataDependentSymNode,
        ),
    ):
        return DataDependent(str(error), isinstance(error, fake_tensor.DynamicOutputShapeException))
    if isinstance(
        error,
        (
            fake_tensor.UnsupportedFakeTensorException,
            fake_tensor.UnsupportedOperatorException,
            UnsupportedTensor,
        ),
    ):
        return UnsupportedOperator(str(error))
    if "tensor with symbolic sizes/strides" in str(error):  # a C++ kernel without a form for symbols
        return UnsupportedOperator(str(error).partition("\n")[0])
    if "data is not allocated yet" in str(error):  # an operator reads its argument's numbers
        return DataDependent(str(error).partition("\n")[0], size=False)
    if isinstance(error, NotImplementedError):
        return UnsupportedOperator(f"{type(error).__name__}: {error}")
    if type(error) in (TypeError, ValueError, RuntimeError) and "FakeTensor" in str(error):
        error.args = tuple(a.replace("FakeTensor", "Tensor") if isinstance(a, str) else a for a in error.args)
    return OperatorRaised(error)


def check_leaves(value: Any, known: tuple[type, ...]) -> None:
    """Refuse results that hold something which is no tensor and no constant."""
    if isinstance(value, (tuple, list)):
        for item in value:
            check_leaves(item, known)
    elif isinstance(value, dict):
        for item in value.values():
            check_leaves(item, known)
    elif not isinstance(value, (*CONSTANTS, *SYMBOLS, *known, torch.Generator, type)):
        raise UnsupportedOperator(f"a result of type {type(value).__name__}")


@contextmanager
def _undispatched() -> Iterator[None]:
    """Run a block with the Python dispatcher, and without asking subclasses of tensors: they were interpreted."""
    with torch._C._EnablePythonDispatcher(), torch._C.DisableTorchFunctionSubclass():
        yield


def run_symbolic(op: str, target: Any, args: Sequence[Any], kwargs: dict[str, Any], env: SymbolicEnv) -> Any:
    """Run an operator on the fake tensors of an attempt with symbols.

    Args:
        op: "call_function", "call_method" or "attribute".
        target: the callable or method name.
        args: arguments with TensorRefs.
        kwargs: keyword arguments with TensorRefs.
        env: the attempt's environment.

    Returns:
        The result, with TensorRefs whose facts may be symbolic.

    Raises:
        OperatorRaised: the operator raises.
        DataDependent: the result depends on the tensors' data.
        UnsupportedOperator: metadata propagation can't tell.
    """
    inference = torch.is_inference_mode_enabled()
    # The Python dispatcher runs C++ kernels that ask for sizes as numbers through decompositions that keep symbols.
    with running(env.fake_mode), as_no_grad(), _undispatched():
        fake_args = [map_structure(a, env.fake, TensorRef) for a in args]
        fake_kwargs = {k: map_structure(a, env.fake, TensorRef) for k, a in kwargs.items()}
        try:
            result = invoke(op, target, fake_args, fake_kwargs)
        except Exception as error:
            env.reread()
            raise classified(error) from None
        try:
            out = map_structure(result, lambda t: env.ref(t, inference=inference), torch.Tensor)
            check_leaves(out, (TensorRef,))
        except UnsupportedTensor as error:
            raise UnsupportedOperator(str(error)) from None
        finally:
            env.reread()
        return out
