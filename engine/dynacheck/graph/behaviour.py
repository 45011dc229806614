"""What operators may do besides returning a result: raise because of values, draw random numbers, write unseen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from inspect import signature
from types import FunctionType
from typing import Any, Final

import torch

from dynacheck.graph.arrays import OnTensors
from dynacheck.graph.facts import Storage, TensorRef

_DRAWS: Final = torch.Tag.nondeterministic_seeded

# Functions of torch written in Python or without the tag, that draw all the same.
_DRAWING: Final = frozenset({
    "gumbel_softmax", "multi_head_attention_forward", "fractional_max_pool2d", "fractional_max_pool3d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d_with_indices", "dropout1d", "dropout2d", "dropout3d",
    "feature_alpha_dropout", "svd_lowrank", "pca_lowrank", "kaiming_uniform", "kaiming_normal", "xavier_uniform",
    "xavier_normal", "trunc_normal", "orthogonal", "sparse",
})  # fmt: skip

_TRAINING: Final = frozenset({"training", "train", "dropout_p"})

# An argument of an operator's schema of such a name is looked up in another tensor.
_INDEXES: Final = frozenset({"index", "indices", "offsets", "lengths"})
_INDEXING: Final = frozenset({"getitem", "setitem", "__getitem__", "__setitem__", "take_along_dim"})

# Operators that look at other values before they go on: classes, probabilities, divisors, matrices to solve.
_CHECKING: Final = frozenset({
    "cross_entropy", "nll_loss", "multi_margin_loss", "multilabel_margin_loss", "ctc_loss", "adaptive_log_softmax",
    "binary_cross_entropy", "one_hot", "bincount", "histc", "multinomial", "bernoulli", "poisson", "binomial", "normal",
    "repeat_interleave", "masked_scatter", "floor_divide", "floordiv", "remainder", "mod", "fmod", "div", "divide",
    "true_divide", "divmod", "inverse", "cholesky", "cholesky_solve", "cholesky_inverse", "logdet", "pinverse", "qr",
    "svd", "lu", "lu_solve", "lu_unpack", "matrix_power", "geqrf", "ormqr", "lobpcg", "triangular_solve", "embedding",
    "embedding_bag", "pack_padded_sequence", "unique_consecutive", "tensor_split", "_assert", "_assert_async",
    "_assert_scalar", "_assert_tensor_metadata", "linspace", "logspace", "quantile", "nanquantile",
})  # fmt: skip
_DIVIDING: Final = frozenset(
    {"floor_divide", "floordiv", "remainder", "mod", "fmod", "div", "divide", "divmod"}
)

_NORMALISING: Final = frozenset({"batch_norm", "instance_norm"})


def _name(target: Any) -> str:
    """The bare name of an operator: that of `add_`, `iadd` and `torch.add` is `add`."""
    name = str(target if isinstance(target, str) else getattr(target, "__name__", target)).partition(".")[0]
    name = name.removeprefix("wrapped_")  # an operation of numpy
    return name if name.startswith("__") else name.rstrip("_")


def is_torchs(target: Any) -> bool:
    """Whether it is known what an operator does: those of users, and functions that are arguments, may do anything."""
    if isinstance(target, (str, OnTensors)):
        return True
    if isinstance(target, torch._ops.HigherOrderOperator):
        return False
    if isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return str(target).startswith(("aten.", "prims."))
    module = getattr(target, "__module__", None) or "torch"
    return module.partition(".")[0] in ("torch", "_operator", "builtins")


def _overloads(name: str) -> list[Any]:
    packet = getattr(torch.ops.aten, name, None)
    return [] if packet is None else [getattr(packet, overload) for overload in packet.overloads()]


@cache
def draws(target: Any) -> bool:
    """Whether an operator may take random numbers.

    Args:
        target: what the graph calls.
    """
    name = _name(target)
    found = name in _DRAWING or not is_torchs(target)
    return found or any(_DRAWS in op.tags for n in (name, f"{name}_") for op in _overloads(n))


def call_draws(node: torch.fx.Node) -> bool:
    """Whether a node of a graph may take random numbers: dropout doesn't where it is told that nothing is trained.

    Args:
        node: any node.
    """
    if node.op not in ("call_function", "call_method") or not draws(node.target):
        return False
    for name, place, default in _switches(node.target):
        value = node.kwargs.get(name, node.args[place] if len(node.args) > place else default)
        if isinstance(value, (bool, int, float)) and not value:
            return False
    return True


@cache
def _switches(target: Any) -> tuple[tuple[str, int, Any], ...]:
    """The arguments that an operator draws nothing without: name, place, default."""
    if isinstance(target, FunctionType):
        known = [(p.name, p.default) for p in signature(target).parameters.values()]
    else:
        overloads = _overloads(_name(target))[:1]
        known = [(a.name, a.default_value) for op in overloads for a in op._schema.arguments]
    switches = _TRAINING | {"p"} if "dropout" in _name(target) else _TRAINING
    return tuple((name, i, default) for i, (name, default) in enumerate(known) if name in switches)


@cache
def _checks(target: Any) -> bool:
    name = _name(target)
    if name in _CHECKING or name.startswith("linalg_") or not is_torchs(target):
        return True
    if getattr(target, "__module__", None) == "torch.linalg" or "linalg" in str(
        getattr(target, "__self__", "")
    ):
        return True
    return any(
        argument.name in _INDEXES and argument.alias_info is None
        for op in _overloads(name)
        for argument in op._schema.arguments
    )


def may_raise(target: Any, metas: Sequence[Any]) -> bool:
    """Whether an operator that metadata allow may raise because of its tensors' values.

    Args:
        target: what the graph calls.
        metas: its positional arguments, with TensorRefs for tensors.
    """
    name = _name(target)
    if name in _INDEXING:
        return len(metas) > 1 and any(_tensors(metas[1]))
    if name in _DIVIDING:  # floats divide by zero
        return all(not ref.facts.dtype.is_floating_point for m in metas for ref in _tensors(m))
    return _checks(target)


def divides_integers(target: Any, metas: Sequence[Any]) -> bool:
    """Whether an operator may divide an integer by zero.

    Args:
        target: what the graph calls.
        metas: its positional arguments, with TensorRefs for tensors.
    """
    return _name(target) in _DIVIDING and may_raise(target, metas)


def _tensors(value: Any) -> list[TensorRef]:
    if isinstance(value, TensorRef):
        return [value]
    if isinstance(value, (tuple, list)):
        return [ref for item in value for ref in _tensors(item)]
    return []


def note_hidden_writes(target: Any, metas: Sequence[Any]) -> None:
    """Mark the storages that an operator writes to behind autograd's back: running statistics.

    Args:
        target: what the graph calls.
        metas: its positional arguments, with TensorRefs for tensors.
    """
    if _name(target) in _NORMALISING:
        for ref in metas[1:3]:
            if isinstance(ref, TensorRef):
                ref.storage.wrote()


def writes_so_far() -> int:
    """A number that grows whenever an operator of a trace writes to a tensor."""
    return Storage.writes
