"""`torch.distributions`: arguments are checked only where the program asks for it, as in torch's compiled code."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributions.distribution import Distribution
from torch.distributions.utils import _lazy_property_and_property

from dynacheck.handlers.registry import handles
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.objects import UserObjectVariable


@handles(Distribution.__init__)
def init(
    tx: Tracer,
    self: VariableTracker,
    batch_shape: VariableTracker | None = None,
    event_shape: VariableTracker | None = None,
    validate_args: VariableTracker | None = None,
) -> VariableTracker | None:
    """`__init__` without the checks, which need values of tensors, unless `validate_args` is true."""
    if validate_args is not None and validate_args.is_constant() and validate_args.as_constant(tx):
        return None
    empty = tx.constant(torch.Size())
    return tx.call_python(_unchecked, self, batch_shape or empty, event_shape or empty)


def _unchecked(self: Any, batch_shape: torch.Size, event_shape: torch.Size) -> None:
    self._batch_shape = batch_shape
    self._event_shape = event_shape
    self._validate_args = False


@handles(_lazy_property_and_property)
def lazy_property_of_class(tx: Tracer, wrapped: VariableTracker) -> VariableTracker:
    """What a lazy property is on its class, which is only asked for its type."""
    return UserObjectVariable(_lazy_property_and_property)
