"""Graphs of functions that operators take (`torch.cond`, checkpoints, `torch.func`): what they use of the graph around
them becomes their inputs."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, Final

import torch
import torch.fx

from dynacheck.graph.facts import TensorRef
from dynacheck.graph.nodemeta import Lines, NodeMeta, stack_trace
from dynacheck.graph.recorder import GraphInput, GraphRecorder, graph_module
from dynacheck.sources import Node


class SubgraphRecorder(GraphRecorder):
    """The graph of a function, recorded while the graph around it waits.

    Args:
        parent: the graph around it.

    Attributes:
        parent: the graph around it.
        lifted: what the function uses of that graph, by its node there: the input's node here, and the tensor or symbol.
        has_own_symbols: whether something in it gives a number that only running it tells.
    """

    def __init__(self, parent: GraphRecorder) -> None:
        super().__init__(parent.env)
        self.parent = parent
        self.lifted: dict[torch.fx.Node, tuple[torch.fx.Node, Any]] = {}
        self._arguments: list[torch.fx.Node] = []
        self.has_own_symbols = False

    def argument(self, name: str) -> torch.fx.Node:
        """A parameter of the function, which whoever calls it gives a value.

        Args:
            name: what the placeholder is called.

        Returns:
            The placeholder.
        """
        node = self._new_input(name)
        self._arguments.append(node)
        return node

    def meet(self, node: Node) -> None:
        self.parent.meet(node)

    def add_input(self, node: Node, value: Any, line: Lines = None) -> torch.fx.Node:
        """The placeholder that the outermost graph has for a source; `own` makes it an input here."""
        return self.parent.add_input(node, value, line)

    def own(self, node: torch.fx.Node, value: Any = None) -> torch.fx.Node:
        """A node of this graph, or the input that stands for a node of a graph around it."""
        if node.graph is self.graph:
            return node
        outer = self.parent.own(node, value)
        known = self.lifted.get(outer)
        if known is None:
            if isinstance(value, TensorRef) and value.facts.has_symbols:
                self._lift_sizes(value)
            known = self.lifted[outer] = (self._new_input(outer.name), value)
        return known[0]

    def _lift_sizes(self, value: TensorRef) -> None:
        """Symbols of a lifted tensor's sizes are inputs too, as backends want it."""
        facts = value.facts
        for size in (*facts.shape, *facts.stride, facts.storage_offset):
            if isinstance(size, torch.SymInt) and self.env is not None:
                for symbol in sorted(self.env.expression(size).free_symbols, key=str):
                    self._emit(symbol, None)

    def _emit(self, expr: Any, line: Lines) -> torch.fx.Node:
        made_here = expr in self._sized and self.env is not None and not any(self.env.symbol_sources(expr))
        if expr.is_Symbol and expr not in self._symbols and not made_here:
            outer = self.parent._emit(expr, line)
            if outer not in self.lifted:
                assert self.env is not None
                self.lifted[outer] = (self._new_input(str(expr)), self.env.value_of(expr))
            self._symbols[expr] = self.lifted[outer][0]
        return super()._emit(expr, line)

    def define(self, value: Any, node: torch.fx.Node) -> None:
        """Note a symbol that no input has."""
        super().define(value, node)
        assert self.env is not None
        free = self.env.expression(value).free_symbols
        given = node.op == "placeholder"
        self.has_own_symbols |= not given and len(free) > len(list(self.env.symbol_sources(value)))

    def changes_state(self) -> bool:
        """Whether running the operations so far, those around it included, leaves more behind than results."""
        return super().changes_state() or self.parent.changes_state()

    def _placeholder(
        self, target: str, kind: type, spec: GraphInput, value: Any, line: Lines
    ) -> torch.fx.Node:
        raise AssertionError("inputs of a function's graph come from the graph around it")

    def _new_input(self, name: str) -> torch.fx.Node:
        anchor = self._last_placeholder
        with self.graph.inserting_after(self.graph._root if anchor is None else anchor):
            node = self.graph.create_node("placeholder", name, (), {})
        node.target = node.name  # which is unique
        node.meta = NodeMeta(lambda: {"stack_trace": stack_trace(())}, None)
        self._last_placeholder = node
        return node

    def close(self, results: Any) -> None:
        """Say what the function returns.

        Args:
            results: nodes, symbols and constants, in tuples or lists, or one node.
        """
        if self.env is not None:
            results = self._with_symbols(results, None)
        self.graph.create_node("output", "output", (results,), {})
        for node in reversed(self.graph.nodes):
            if not node.users and (node.target is operator.getitem or node in self._removable):
                self.graph.erase_node(node)

    def module(self, lifted: Iterable[torch.fx.Node], name: str) -> torch.fx.GraphModule:
        """The closed graph as a module.

        Args:
            lifted: the nodes of the graph around it that are handed over after the arguments: at least those used.
            name: the class's name.

        Returns:
            The module; it takes the arguments and the lifted values, in order.
        """
        for outer in lifted:
            if outer not in self.lifted:
                self.lifted[outer] = (self._new_input(outer.name), None)
        order = [*self._arguments, *(self.lifted[outer][0] for outer in lifted)]
        for node in reversed(order):
            self.graph._root.append(node)
        module: torch.fx.GraphModule = graph_module(self.graph, self.modules, name)
        return module


INNER: Final = "dynacheck_inner"
"""Marks a graph that autograd may call while frames are looked at, which is none of the program's functions."""


def union(recorders: Sequence[SubgraphRecorder]) -> dict[torch.fx.Node, Any]:
    """What functions that get the same arguments use together of the graph around them.

    Args:
        recorders: their graphs.

    Returns:
        The nodes of the graph around, in order of first use, with the tensors or symbols they stand for.
    """
    return {outer: value for recorder in recorders for outer, (_, value) in recorder.lifted.items()}


def effects(module: torch.fx.GraphModule, *args: Any) -> str:
    """What running a function's graph does to its arguments that operators which take functions don't allow.

    Args:
        module: the graph.
        *args: its arguments.

    Returns:
        A phrase, or "" if it only computes new tensors.
    """
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    versions = [0 if t.is_inference() else t._version for t in tensors]
    found = module(*args)
    if any(t._version != v for t, v in zip(tensors, versions) if not t.is_inference()):
        return "it writes to a tensor that was made outside of it"
    storages = [t.untyped_storage()._cdata for t in _tensors(found)]
    if {t.untyped_storage()._cdata for t in tensors} & set(storages):
        return "it returns a tensor that was made outside of it, or a view of one"
    if len(set(storages)) != len(storages):
        return "it returns one tensor twice"
    return ""


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in value for t in _tensors(v)] if isinstance(value, (tuple, list)) else []
