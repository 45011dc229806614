"""Which sizes and numbers of a frame become symbols: their history, the user's marks, `dynamic=`."""

from __future__ import annotations

from typing import Any

import torch

from dynacheck.graph.facts import TensorRef, facts_of
from dynacheck.guards import MarksAre, NoMarks, TensorMatch
from dynacheck.guards.tensors import MARKS
from dynacheck.sources import Node, instance_dict


class History:
    """What earlier translations saw, by (file, first line, name, isolation) of the code and source of the value."""

    def __init__(self) -> None:
        self._seen: dict[Any, Any] = {}

    def clear(self) -> None:
        self._seen.clear()


def _marks_guard(tensor: torch.Tensor) -> MarksAre:
    have = instance_dict(tensor)
    return MarksAre.of(tensor) if have and any(name in have for name in MARKS) else NoMarks()


class ShapePolicy:
    """Decides for the frames of one compile."""

    def __init__(self, history: History, dynamic: bool | None, isolation: int | None) -> None:
        self.history = history
        self.dynamic = dynamic
        self.isolation = isolation

    def wrap_tensor(self, tx: Any, node: Node, tensor: torch.Tensor) -> TensorRef:
        """The ref of an input tensor, guards installed.

        Args:
            tx: the translator.
            node: where the tensor comes from.
            tensor: the tensor.
        """
        ref = TensorRef(facts_of(tensor))
        tx.guard(node, TensorMatch.of(tensor))
        tx.guard(node, _marks_guard(tensor))
        return ref

    def number(self, tx: Any, node: Node, value: int | float) -> Any:
        """The symbol of an int or float of the frame, or None where it is a constant."""
        return None
