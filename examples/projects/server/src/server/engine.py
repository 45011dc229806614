"""Answers requests: pads prompts to buckets, fills the cache, decodes token by token."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from server.cache import StaticCache
from server.model import Decoder

BUCKETS = (8, 16)
LENGTH = 64


@dataclass
class Request:
    prompt: list[int]
    tokens: int = 8
    temperature: float = 1.0


def bucket(length: int) -> int:
    """The smallest prompt size that holds it.

    Raises:
        ValueError: none does.
    """
    for size in BUCKETS:
        if length <= size:
            return size
    raise ValueError(f"prompts of {length} tokens are too long; at most {BUCKETS[-1]}")


def scaled(logits: Tensor, temperature: Tensor) -> Tensor:
    return torch.log_softmax(logits / temperature, dim=-1)


class Engine:
    def __init__(self, model: Decoder, compile: Callable[..., Any] = torch.compile) -> None:
        self.model = model.eval()
        self.step = compile(self._step, dynamic=False)

    def _step(self, ids: Tensor, caches: list[StaticCache], position: Tensor, temperature: Tensor) -> Tensor:
        return scaled(self.model(ids, caches, position), temperature).argmax(-1, keepdim=True)

    @torch.no_grad()
    def answer(self, request: Request) -> list[int]:
        size = bucket(len(request.prompt))
        caches = [StaticCache(1, LENGTH, self.model.width) for _ in self.model.layers]
        padded = [0] * (size - len(request.prompt)) + request.prompt
        ids, position = torch.tensor([padded]), torch.arange(size)
        temperature = torch.tensor(request.temperature)
        out = []
        for _ in range(request.tokens):
            ids = self.step(ids, caches, position, temperature)
            out.append(int(ids))
            position = position[-1:] + 1
        return out

    def warm_up(self) -> None:
        """Compile what serving needs: a prompt of each bucket, and decoding."""
        for size in BUCKETS:
            self.answer(Request([1] * size, tokens=2))
