"""Tensors used as indices: one integer that came into the frame is part of what it compiled for, as in torch to 2.13."""

from __future__ import annotations

import operator
from typing import Final

import torch

from dynacheck.guards import ItemIs
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.sequences import TupleVariable
from dynacheck.variables.tensor import INPLACE, TensorVariable
from dynacheck.versions import torch_since

INDEXING: Final = (
    operator.getitem, operator.setitem, *(() if torch_since(2, 14) else (torch.tensor_split, "tensor_split")),
)  # fmt: skip
"""What takes an index, or a number of parts, as its second argument."""
_WRITERS: Final = frozenset(INPLACE.values())


def known_index(tx: Tracer, key: VariableTracker) -> VariableTracker:
    """An index for metadata propagation: 0-d integer tensors from outside of the frame by value, which is guarded.

    Args:
        tx: the translator.
        key: what a tensor is indexed with.
    """
    key = key.realize(tx)
    if isinstance(key, TensorVariable):
        return _known(tx, key)
    if type(key) is TupleVariable:
        items = [i.realize(tx) for i in key.items(tx)]
        known = [_known(tx, i) if isinstance(i, TensorVariable) else i for i in items]
        if any(a is not b for a, b in zip(items, known, strict=True)):
            return TupleVariable(known)
    return key


def _known(tx: Tracer, tensor: TensorVariable) -> VariableTracker:
    facts = tensor.ref.facts
    if tensor.node is None or facts.shape != () or facts.dtype is not torch.int64:
        return tensor
    if facts.device.type != "cpu" or _written_to(tensor):
        return tensor
    value = int(tensor.node.peek().item())
    if not torch_since(2, 14):  # which looks at its metadata without the value
        tx.guard(tensor.node, ItemIs(value))
    return tx.constant(value)


def _written_to(tensor: TensorVariable) -> bool:
    """Whether the graph may have changed the value."""
    users = () if tensor._proxy is None else tuple(tensor._proxy.users)
    return any(
        user.target in _WRITERS if callable(user.target) else user.target.endswith("_") for user in users
    )
