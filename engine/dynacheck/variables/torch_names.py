"""Names of what torch puts into graphs as it is: compared and formatted they are text, looked into they break."""

from __future__ import annotations

from typing import Final, NoReturn

import torch

from dynacheck.reasons import UNKNOWN_OPERATION
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.constant import ConstantVariable

NAMES: Final = frozenset({"__name__", "__qualname__", "__module__"})
PUT_IN_GRAPHS: Final = (torch.nn.Parameter, torch.nn.Buffer)
"""Classes of torch's that are operations to it."""


class TorchNameVariable(ConstantVariable):
    """`torch.nn.Parameter.__module__`: its methods break and what else looks into it ends the frame, as with torch."""

    __slots__ = ()

    def call_method(
        self, tx: Tracer, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name[:2] != "__":
            self.unmodelled(tx, method=repr(name))
        return super().call_method(tx, name, args, kwargs)

    def _given_up(self, tx: Tracer, *_: VariableTracker) -> NoReturn:
        tx.give_up(UNKNOWN_OPERATION, operation="looking into the text", what=self.describe())

    sq_length = sq_contains = tp_iter = _given_up  # type: ignore[assignment]
