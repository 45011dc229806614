"""What a graph calls for a `torch.autograd.Function`: its forward and backward as graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd.function import Function, once_differentiable

Body = Callable[..., tuple[Any, ...]]


class _Custom(Function):
    """A function of tensors made of two graphs.

    `forward` gives the results and, after them, what the backward pass takes before the gradients of the results.
    """

    @staticmethod
    def forward(
        ctx: Any, forward: Body, backward: Body, number: int, constant: Sequence[int], *args: Any
    ) -> Any:
        found = forward(*args)
        results, saved = found[:number], found[number:]
        ctx.graph = backward
        ctx.arguments = len(args)
        ctx.others = [value if not isinstance(value, torch.Tensor) else None for value in saved]
        ctx.save_for_backward(*(value if isinstance(value, torch.Tensor) else None for value in saved))
        ctx.mark_non_differentiable(*(results[i] for i in constant))
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = [t if other is None else other for t, other in zip(ctx.saved_tensors, ctx.others)]
        found = ctx.graph(*grads, *saved)
        return (None, None, None, None, *found, *[None] * (ctx.arguments - len(found)))


class _CustomOnce(_Custom):
    """The same, with a backward pass that can't be differentiated."""

    backward: Any = staticmethod(once_differentiable(_Custom.backward))


def custom_function(
    forward: Body,
    backward: Body,
    args: Sequence[torch.Tensor],
    captured: Sequence[Any],
    number: int,
    constant: Sequence[int],
    once: bool,
) -> tuple[torch.Tensor, ...]:
    """Call a differentiable function.

    Args:
        forward: takes the arguments and what is captured; returns the results, then what `backward` takes.
        backward: takes the gradients of the results, then what `forward` returned for it; returns those of the arguments.
        args: the tensors that it is differentiated by.
        captured: what `forward` gets after them.
        number: how many results there are.
        constant: which of them have no gradient.
        once: whether the backward pass can't be differentiated.

    Returns:
        The results.
    """
    run: Any = _CustomOnce if once else _Custom
    results: tuple[torch.Tensor, ...] = run.apply(forward, backward, number, constant, *args, *captured)
    return results


def register_hook(tensor: torch.Tensor, body: Callable[..., Any], *captured: Any) -> torch.Tensor:
    """Register a hook whose body is a graph on a tensor that another graph makes.

    Args:
        tensor: the tensor.
        body: takes the gradient and what is captured; returns what replaces the gradient, or None.
        *captured: what `body` gets after the gradient.

    Returns:
        The tensor.
    """
    tensor.register_hook(lambda grad: body(grad, *captured))  # type: ignore[no-untyped-call]
    return tensor


ONCE = once_differentiable(lambda ctx: None).__code__
"""The code of what `once_differentiable` returns."""
