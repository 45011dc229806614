"""The engine's own backends: `eager` and `inspect`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
import torch.fx


def eager(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    """Run the graph as it was captured."""
    return gm.forward


class Inspection:
    """One graph as `inspect` saw it.

    Attributes:
        nodes: number of nodes, placeholders and output included.
        inputs: shapes of tensors, other inputs as they are.
        ops: how often each function is called, most frequent first.
        code: the graph's Python source.
    """

    def __init__(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> None:
        self.nodes = len(gm.graph.nodes)
        self.inputs = [tuple(t.shape) if isinstance(t, torch.Tensor) else t for t in example_inputs]
        calls = (n for n in gm.graph.nodes if n.op in ("call_function", "call_method"))
        self.ops = Counter(n._pretty_print_target(n.target) for n in calls).most_common()
        self.code = gm.code


class Inspector:
    """The backend `inspect`: records and prints what was captured, and runs it as it is.

    Attributes:
        captured: what it saw since the last reset.
    """

    def __init__(self) -> None:
        self.captured: list[Inspection] = []

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        seen = Inspection(gm, example_inputs)
        self.captured.append(seen)
        shown = ", ".join(map(str, seen.inputs))
        print(f"graph of {seen.nodes} nodes; inputs: {shown}; calls: {dict(seen.ops)}\n{seen.code.strip()}")
        return gm.forward


inspect = Inspector()
