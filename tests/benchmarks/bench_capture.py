"""First call against torch.compile, with a no-op backend: `python tests/benchmarks/bench_capture.py
[--write]`.

Every measurement is a first call after a reset, in a process that has compiled before.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

import dynacheck
import page
import torch
from torch import nn


def nothing(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    return gm.forward


class Block(nn.Module):
    """Two convolutions around a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)
        self.two = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.two(torch.relu(self.norm(self.one(x)))))


class ResNet(nn.Module):
    def __init__(self, blocks: int = 8) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.blocks = nn.ModuleList(Block(8) for _ in range(blocks))
        self.head = nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


class Recurrent(nn.Module):
    """A gated cell over a sequence, unrolled by the Python loop."""

    def __init__(self, size: int = 16) -> None:
        super().__init__()
        self.gate = nn.Linear(2 * size, size)
        self.new = nn.Linear(2 * size, size)

    def forward(self, xs: torch.Tensor) -> torch.Tensor:
        state = torch.zeros_like(xs[:, 0])
        for i in range(xs.shape[1]):
            both = torch.cat((xs[:, i], state), -1)
            gate = torch.sigmoid(self.gate(both))
            state = gate * state + (1 - gate) * torch.tanh(self.new(both))
        return state


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)


def hugging_face(kind: str) -> nn.Module:
    """A small model of the family with random weights."""
    from transformers import AutoConfig, AutoModel

    sizes = {
        "bert": {
            "hidden_size": 32,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "intermediate_size": 64,
        },
        "gpt2": {"n_embd": 32, "n_layer": 4, "n_head": 4},
        "llama": {
            "hidden_size": 32,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "intermediate_size": 64,
        },
    }
    config = AutoConfig.for_model(kind, vocab_size=100, use_cache=False, **sizes[kind])
    model: nn.Module = AutoModel.from_config(config)
    return model


def programs() -> list[tuple[str, nn.Module, tuple[Any, ...]]]:
    tokens = torch.randint(0, 100, (2, 8))
    found: list[tuple[str, nn.Module, tuple[Any, ...]]] = [
        ("residual network, 8 blocks", ResNet(), (torch.randn(2, 3, 16, 16),)),
        ("gated recurrent cell, 16 steps", Recurrent(), (torch.randn(2, 16, 16),)),
        ("`nn.TransformerEncoder`, 4 layers", encoder(), (torch.randn(2, 8, 32),)),
    ]
    try:
        found += [
            (f"Hugging Face {k}, 4 layers", hugging_face(k), (tokens,)) for k in ("bert", "gpt2", "llama")
        ]
    except ImportError:
        print("transformers isn't installed: without Hugging Face models")
    return [(name, model.eval(), args) for name, model, args in found]


def first_call(
    compile: Callable[..., Any], reset: Callable[[], None], model: nn.Module, args: tuple[Any, ...]
) -> Callable[[], float]:
    """A function that measures the milliseconds of a first call."""

    def measure() -> float:
        reset()
        compiled = compile(model, backend=nothing)
        start = time.perf_counter()
        compiled(*args)
        return (time.perf_counter() - start) * 1e3

    return measure


def main() -> None:
    torch.set_num_threads(1)
    lines, ratios = [], []
    with torch.no_grad():
        for name, model, args in programs():
            sides = [
                first_call(torch.compile, torch._dynamo.reset, model, args),
                first_call(dynacheck.compile, dynacheck.reset, model, args),
            ]
            for side in sides:
                side()
            theirs, ours = page.interleaved(sides, 5)
            ratios.append(theirs / ours)
            lines.append((name, f"{theirs:.0f}", f"{ours:.0f}", f"1/{theirs / ours:.1f}"))
            print(*lines[-1], flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    lines.append(("geometric mean", "", "", f"1/{mean:.1f}"))
    text = page.table(("", "torch.compile, ms", "dynacheck, ms", "ratio"), lines)
    print(text)
    if "--write" in sys.argv[1:]:
        what = "The first call of a model, with a backend that compiles nothing: what capturing it takes."
        page.write("A first call", "tests/benchmarks/bench_capture.py --write", what, text)


if __name__ == "__main__":
    main()
