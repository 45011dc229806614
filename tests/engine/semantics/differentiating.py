"""What a differentiable call gives, to hold a compiled one against a plain one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree


def results_and_gradients(
    fn: Callable[..., Any], x: torch.Tensor, leaves: Sequence[torch.Tensor]
) -> list[Any]:
    """The results of a call, flat, and the gradients of its argument and of the leaves it may depend on."""
    x = x.clone().requires_grad_()
    results, _ = _pytree.tree_flatten(fn(x))
    loss = sum(r.sum() for r in results if isinstance(r, torch.Tensor) and r.requires_grad)
    grads = torch.autograd.grad(loss, [x, *leaves], allow_unused=True)
    return [*results, *(torch.zeros(()) if g is None else g for g in grads)]
