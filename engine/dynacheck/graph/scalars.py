"""Numbers as tensors."""

from typing import Final

import torch

CARRIED: Final = ("float", "drawn")
"""Kinds of graph inputs that are numbers and come to the graph in scalar tensors."""


def scalar_tensor(value: float) -> torch.Tensor:
    """The graph input that stands for a symbolic float, or for a number that is drawn.

    Args:
        value: the number.

    Returns:
        A 0-d tensor on the CPU, of float64 or int64.
    """
    return torch.tensor(value, dtype=torch.int64 if type(value) is int else torch.float64, device="cpu")
