"""Optimizers of torch: their state is made before it is read, and groups count as capturable, as torch.compile does."""

from __future__ import annotations

from typing import Any

import torch

from dynacheck import reasons
from dynacheck.sources import DictAttr, Node
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.functions import CallableVariable
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.sequences import ListVariable

_ON_DEVICE = ("cuda", "xpu")


class OptimizerVariable(UserObjectVariable):
    """A `torch.optim.Optimizer`.

    Steps are counted in tensors, whose values a graph can't read: what `capturable` asks for. In a graph every group
    therefore has it, whatever the object says.
    """

    __slots__ = ()

    def instance_attribute(self, tx: Tracer, name: str) -> VariableTracker | None:
        found = super().instance_attribute(tx, name)
        if name == "param_groups" and found is not None and self.node is not None:
            groups = self.node.child(DictAttr(name))
            for index in range(len(self.value.param_groups)):
                groups.item(index).key("capturable").tracker = tx.constant(True)
        return found

    def bind(self, tx: Tracer, name: str, raw: object, node: Node) -> VariableTracker:
        if name != "_init_group" or self.node is None:
            return super().bind(tx, name, raw, node)
        if "_torchdynamo_orig_callable" in getattr(
            raw, "__dict__", {}
        ):  # torch disabled it for its own compiler
            node = node.child(DictAttr("_torchdynamo_orig_callable"))
        return InitGroupVariable(self, tx.wrap(node))


class InitGroupVariable(CallableVariable):
    """`optimizer._init_group`: collects what a step works on, and makes what isn't there yet.

    The missing state is made while translating, by the optimizer itself; the method is interpreted after that. So the
    first step is what all steps are.
    """

    __slots__ = ("function", "owner")

    def __init__(self, owner: OptimizerVariable, function: VariableTracker) -> None:
        super().__init__()
        self.owner = owner
        self.function = function

    def describe(self) -> str:
        return f"{self.owner.describe()}._init_group"

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        lists = [a.realize(tx) for a in args[1:]]
        fresh = all(isinstance(a, ListVariable) and a.node is None for a in lists)
        if fresh and not kwargs and not tx.effects:
            function = self.function.node.peek() if self.function.node is not None else None
            try:
                made = make_state(self.owner.value, function, len(lists))
            except Exception as error:  # the program raises it where the call runs
                tx.break_(reasons.OPERATOR_FAILED, call=self.describe(), why=f"it raises {error!r}")
            if made:
                tx.restart("an optimizer made its state")
        return tx.call(self.function, [self.owner, *args], kwargs)


def make_state(optimizer: torch.optim.Optimizer, init_group: Any, lists: int) -> bool:
    """Make the state that an optimizer lacks.

    Args:
        optimizer: the user's.
        init_group: its `_init_group`, unbound.
        lists: how many lists that takes beside the group.

    Returns:
        Whether anything was made.
    """
    state: Any = optimizer.state
    before = _size(state)
    for group in optimizer.param_groups:
        on_device = all(p.device.type in _ON_DEVICE for p in group["params"])
        if on_device and "capturable" in group and not any(p in state for p in group["params"]):
            group["capturable"] = True  # its counters are made where the parameters are
        init_group(optimizer, group, *([] for _ in range(lists)))
    return _size(state) != before


def _size(state: Any) -> int:
    return len(state) + sum(len(of) for of in state.values())
