"""Fake example values of a finished graph's nodes, made by one run when the first is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
import torch.fx
from torch.fx import traceback

from dynacheck.graph.runs import is_users, running
from dynacheck.graph.scalars import CARRIED
from dynacheck.graph.state import preserved
from dynacheck.graph.symbolic import SymbolicEnv
from dynacheck.graph.throwaway import World


class Captured(Protocol):
    """What is needed of a finished graph."""

    graph: torch.fx.Graph
    env: SymbolicEnv | None
    placeholders: list[torch.fx.Node]
    inputs: list[Any]
    values: list[Any]
    modules: dict[str, torch.fx.GraphModule]


@contextmanager
def _outside_of_any_trace() -> Iterator[None]:
    """Run a block as if no graph was being traced: an example may be asked for in the middle of one."""
    meta, preserving = traceback.current_meta, traceback.should_preserve_node_meta
    traceback.current_meta, traceback.should_preserve_node_meta = {}, False
    try:
        yield
    finally:
        traceback.current_meta, traceback.should_preserve_node_meta = meta, preserving


class ExampleValues:
    """The example values of one graph."""

    def __init__(self) -> None:
        self._captured: Captured | None = None
        self._values: dict[torch.fx.Node, Any] | None = None
        self._mode: Any = None
        self._inputs: list[Any] | None = None

    def bind(self, captured: Captured) -> None:
        """Say which graph this is about.

        Args:
            captured: the finished graph.
        """
        self._captured = captured

    @property
    def fake_mode(self) -> Any:
        """The attempt's fake mode, or one with an empty ShapeEnv made for this graph."""
        assert self._captured is not None
        if self._mode is None:
            env = self._captured.env
            users = any(is_users(node.target) for node in self._captured.graph.nodes)
            if env is not None:
                self._mode = env.fake_mode
                self._mode.allow_non_fake_inputs |= users
            else:
                from torch._subclasses.fake_tensor import FakeTensorMode
                from torch.fx.experimental.symbolic_shapes import ShapeEnv

                self._mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=users)
        return self._mode

    def inputs(self) -> list[Any]:
        """Fake tensors and symbols for the inputs, in placeholder order."""
        captured = self._captured
        assert captured is not None
        if self._inputs is None:
            out = []
            for spec, value in zip(captured.inputs, captured.values):
                known = None if captured.env is None else captured.env.input_fake(spec.node)
                if spec.what in CARRIED and captured.env is not None:
                    out.append(captured.env.scalars[spec.node][1])
                elif spec.what != "tensor":
                    out.append(value)
                elif known is not None:
                    out.append(known)
                elif spec.node.root.frame is None:  # asked after the compile, whose values are let go
                    with self.fake_mode:
                        out += World([value]).tensors
                else:
                    out.append(self.fake_mode.from_tensor(spec.node.peek(), static_shapes=True))
            self._inputs = out
        return self._inputs

    def of(self, node: torch.fx.Node) -> Any:
        """The example value of a node.

        Args:
            node: a node of the graph.

        Returns:
            A fake tensor, a structure of them, a symbol or a constant; None before the graph is finished.
        """
        if self._captured is None:
            return None
        if self._values is None:
            self._values = self._run()
        return self._values.get(node)

    def _run(self) -> dict[torch.fx.Node, Any]:
        captured = self._captured
        assert captured is not None
        values: dict[torch.fx.Node, Any] = dict(zip(captured.placeholders, self.inputs()))
        # the Python dispatcher as in `run_symbolic`: a second run must decide nothing that the first one left open
        dispatcher = torch._C._EnablePythonDispatcher()
        with preserved(), _outside_of_any_trace(), running(self.fake_mode), dispatcher:
            for node in captured.graph.nodes:
                if node.op == "get_attr":
                    values[node] = captured.modules[node.target]
                if node.op not in ("call_function", "call_method"):
                    continue
                args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
                try:
                    if node.op == "call_method":
                        values[node] = getattr(args[0], node.target)(*args[1:], **kwargs)
                    else:
                        values[node] = node.target(*args, **kwargs)
                except (
                    Exception
                ):  # data-dependent here, though the graph itself runs: the rest has no examples
                    break
        return values
