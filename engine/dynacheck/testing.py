"""Backends for tests of programs: they count and record what was captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.fx

from dynacheck.backends import registry


class CompileCounter:
    """A backend that counts graphs and operations and runs graphs as they are.

    Attributes:
        frame_count: how many graphs it was given.
        op_count: how many operations they had.
        graphs: the graphs.

    Example:
        >>> import dynacheck, torch
        >>> counter = CompileCounter()
        >>> _ = dynacheck.compile(lambda x: x + 1, backend=counter)(torch.ones(2))
        >>> counter.frame_count, counter.op_count
        (1, 1)
    """

    def __init__(self) -> None:
        self.frame_count = 0
        self.op_count = 0
        self.graphs: list[torch.fx.GraphModule] = []

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += sum(node.op.startswith("call_") for node in gm.graph.nodes)
        self.graphs.append(gm)
        return gm.forward

    def clear(self) -> None:
        """Forget what was counted."""
        self.frame_count = self.op_count = 0
        self.graphs.clear()


class CompileCounterWithBackend(CompileCounter):
    """A CompileCounter that has another backend run the graphs.

    Args:
        backend: its name, or a callable.
    """

    def __init__(self, backend: str | Callable[..., Any]) -> None:
        super().__init__()
        self._inner = registry.compiler(backend)

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        super().__call__(gm, example_inputs)
        return self._inner(gm, example_inputs)
