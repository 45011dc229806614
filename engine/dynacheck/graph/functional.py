"""What a graph calls for `torch.func`: the transform of a function that is a graph itself, on what it is given.

A pullback (the second result of `vjp`) exists only while a graph runs; for metadata propagation it is the tuple of what
it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Body = Callable[..., tuple[torch.Tensor, ...]]
Tensors = Sequence[torch.Tensor]


def _closed(body: Body, captured: Sequence[Any]) -> Body:
    """The body as the function it was: what it captured isn't an argument, so transforms leave it alone."""
    return lambda *args: body(*args, *captured)


def gradients(body: Body, args: Tensors, captured: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    """`torch.func.grad` with regard to all arguments.

    Args:
        body: returns a scalar and other tensors.
        args: its arguments.
        captured: what it gets after them.

    Returns:
        The gradients, then what it returns.
    """
    run = _closed(body, captured)

    def loss(*given: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        out = run(*given)
        return out[0], tuple(out)

    grads, out = torch.func.grad(loss, argnums=tuple(range(len(args))), has_aux=True)(*args)
    return (*grads, *out)


def vectorized(
    body: Body,
    args: Tensors,
    captured: Sequence[Any],
    in_dims: tuple[int, ...],
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
) -> tuple[torch.Tensor, ...]:
    """`torch.func.vmap`.

    Args:
        body: returns tensors.
        args: its arguments.
        captured: what it gets after them, not vectorized.
        in_dims: over which dimension of each argument.
        out_dims: where the dimension goes in each result.
        randomness: as `vmap` takes it.
        chunk_size: as `vmap` takes it.

    Returns:
        The results.
    """
    run = torch.func.vmap(
        _closed(body, captured),
        in_dims=in_dims,
        out_dims=out_dims,
        randomness=randomness,
        chunk_size=chunk_size,
    )
    return tuple(run(*args))


def _alone(tensor: torch.Tensor) -> torch.Tensor:
    """A tangent; for metadata propagation one with a storage of its own: what compares storages takes no symbols."""
    return tensor.clone() if isinstance(tensor, torch._subclasses.FakeTensor) else tensor


def pushed_forward(
    body: Body, args: Tensors, tangents: Tensors, captured: Sequence[Any], number: int, strict: bool
) -> tuple[torch.Tensor, ...]:
    """`torch.func.jvp`.

    Args:
        body: returns tensors.
        args: its arguments.
        tangents: one for each.
        captured: what it gets after the arguments.
        number: how many of the results are differentiated; the others are returned as they are.
        strict: as `jvp` takes it.

    Returns:
        The results, then their tangents, then the other results.
    """
    run = _closed(body, captured)

    def split(*given: torch.Tensor) -> tuple[Any, Any]:
        out = run(*given)
        return tuple(out[:number]), tuple(out[number:])

    found: Any = torch.func.jvp(split, tuple(args), tuple(map(_alone, tangents)), strict=strict, has_aux=True)
    results, out, others = found
    return (*results, *out, *others)


def with_pullback(body: Body, args: Tensors, captured: Sequence[Any], number: int) -> tuple[Any, ...]:
    """`torch.func.vjp`.

    Args:
        body: returns tensors.
        args: its arguments.
        captured: what it gets after them.
        number: how many of the results are differentiated; the others are returned as they are.

    Returns:
        The results, then the pullback.
    """
    run = _closed(body, captured)

    def split(*given: torch.Tensor) -> tuple[Any, Any]:
        out = run(*given)
        return tuple(out[:number]), tuple(out[number:])

    found: Any = torch.func.vjp(split, *args, has_aux=True)
    results, pullback, others = found
    return (*results, *others, pullback)


def without_pullback(body: Body, args: Tensors, captured: Sequence[Any], number: int) -> tuple[Any, ...]:
    """The results of `with_pullback` alone."""
    return with_pullback(body, args, captured, number)[:-1]


def pulled_back(pullback: Any, cotangents: Tensors) -> tuple[torch.Tensor, ...]:
    """Call a pullback.

    Args:
        pullback: from `with_pullback`, or the tuple of that function's arguments.
        cotangents: one for each differentiated result.

    Returns:
        The gradients of the arguments.
    """
    found = with_pullback(*pullback)[-1] if isinstance(pullback, tuple) else pullback
    return tuple(found(tuple(cotangents)))


def item_at(tensor: torch.Tensor, *indices: torch.Tensor) -> torch.Tensor:
    """An item of a tensor, the indices being tensors whose values aren't asked for (in functions of `flex_attention`)."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    with TransformGetItemToIndex():
        return tensor[indices]
