"""The training loop: the model is compiled, the optimizer is not."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn


def train(
    model: nn.Module,
    batches: Iterable[dict[str, Tensor]],
    compile: Callable[..., Any] = torch.compile,
    rate: float = 1e-3,
) -> list[float]:
    """One pass over the batches.

    Returns:
        The loss of each batch.
    """
    compiled = compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    for batch in batches:
        loss, _ = compiled(**batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses
