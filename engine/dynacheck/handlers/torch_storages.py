"""`Tensor.untyped_storage`: how large a storage is; anything else asked of it is a break."""

from __future__ import annotations

from typing import ClassVar

import torch

from dynacheck.handlers.torch_tensors import special
from dynacheck.variables.base import Rebuilder, Tracer, VariableTracker
from dynacheck.variables.methods import BuiltinObject
from dynacheck.variables.tensor import TensorVariable


class StorageVariable(BuiltinObject):
    """The storage of a tensor."""

    __slots__ = ("tensor",)
    python_type: ClassVar[type] = torch.UntypedStorage

    def __init__(self, tensor: TensorVariable) -> None:
        super().__init__()
        self.tensor = tensor

    def m_size(self, tx: Tracer) -> VariableTracker:
        facts = self.tensor.ref.facts
        if not facts.has_symbols:
            return tx.constant(facts.nbytes)
        if self.tensor.node is not None or self.tensor.ref.base is not None:
            self.unmodelled(tx, method="'size'")
        return tx.wrap_result(None, tx.oracle_attribute(self.tensor.ref, "nbytes"))

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.tensor,)

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(torch.Tensor.untyped_storage, lambda: to.load(self.tensor))
        to.remember(self)


@special("untyped_storage")
def untyped_storage(
    tx: Tracer, tensor: TensorVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    return StorageVariable(tensor)
