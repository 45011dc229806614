"""Tensors used as indices and numbers: one integer that came into the frame, by value or as a symbol, as in torch."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, Final

import torch

from dynacheck.accessors import Converted
from dynacheck.guards import ItemIs
from dynacheck.reasons import SCALAR_OUTPUT
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.sequences import ListVariable, TupleVariable
from dynacheck.variables.slices import SliceVariable
from dynacheck.variables.tensor import INPLACE, TensorVariable
from dynacheck.versions import torch_since

_INDEXING: Final = (
    operator.getitem, operator.setitem, *(() if torch_since(2, 14) else (torch.tensor_split, "tensor_split")),
)  # fmt: skip
"""What takes an index, or a number of parts, as its second argument."""
_NUMBERS: Final = frozenset({torch.int64, torch.float64})
_WRITERS: Final = frozenset(INPLACE.values())


def known_indices(tx: Tracer, target: Any, args: Sequence[VariableTracker]) -> Sequence[VariableTracker]:
    """An operator's arguments for metadata propagation: indices that are 0-d integer tensors from outside of the frame
    by value, which is guarded.

    Args:
        tx: the translator.
        target: the operator.
        args: its arguments.
    """
    if target not in _INDEXING or len(args) < 2 or not isinstance(args[0].realize(tx), TensorVariable):
        return args
    key = args[1].realize(tx)
    known = key
    if isinstance(key, TensorVariable):
        known = _known(tx, key)
    elif type(key) is TupleVariable:
        items = [i.realize(tx) for i in key.items(tx)]
        values = [_known(tx, i) if isinstance(i, TensorVariable) else i for i in items]
        if any(a is not b for a, b in zip(items, values, strict=True)):
            known = TupleVariable(values)
    return [args[0], known, *args[2:]]


def knows_numbers(tx: Tracer, args: Iterable[VariableTracker]) -> bool:
    """Whether an operator that failed for the lack of them can be tried again with numbers of tensors that came in.

    Where an operator takes a number, torch has a symbol for the one in such a tensor.

    Args:
        tx: the translator.
        args: of the operator.
    """
    found = False
    for arg in args:
        real = arg.realize(tx)
        if isinstance(real, (TupleVariable, ListVariable)):
            found |= knows_numbers(tx, real.items(tx))
        elif isinstance(real, TensorVariable) and real.node is not None and _holds_number(real):
            if tx.env is None:
                tx.need_symbols()
            found |= tx.env.gives_number(real.ref, real.node.child(Converted(number_in, "item")))
    return found


def number_in(tensor: Any) -> int | float | None:
    """The number in a tensor without dimensions."""
    return tensor.item() if isinstance(tensor, torch.Tensor) and not tensor.shape else None


def _holds_number(tensor: TensorVariable) -> bool:
    ref = tensor.ref
    plain = ref.facts.cls is torch.Tensor and ref.facts.device.type == "cpu"
    return plain and not ref.storage.written and ref.facts.shape == () and ref.facts.dtype in _NUMBERS


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


def new_slice(
    tx: Tracer, start: VariableTracker, stop: VariableTracker, step: VariableTracker | None = None
) -> VariableTracker:
    """The slice of three values. A tensor among them is read here, as with torch, not where the slice is used."""
    parts = [start, stop, tx.constant(None) if step is None else step]
    if any(isinstance(part.realize(tx), TensorVariable) for part in parts) and not tx.captures_scalars():
        tx.break_(SCALAR_OUTPUT, call="slice()")
    return SliceVariable(parts[0], parts[1], parts[2])
