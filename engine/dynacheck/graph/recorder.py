"""Recording an FX graph while translating, and what a finished graph offers to a backend."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.fx
from torch.fx._lazy_graph_module import _LazyGraphModule

from dynacheck.graph.behaviour import call_draws
from dynacheck.graph.examples import ExampleValues
from dynacheck.graph.expressions import FOLDED, FX_TARGETS, constant, is_constant, parts
from dynacheck.graph.facts import TensorRef
from dynacheck.graph.nodemeta import Lines, NodeMeta, call_entries, stack_trace
from dynacheck.graph.scalars import CARRIED, scalar_tensor
from dynacheck.graph.symbolic import SymbolicEnv
from dynacheck.sources import Node

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


@dataclass(frozen=True, slots=True)
class GraphInput:
    """One input of a graph: where its value comes from when the rewritten code calls the graph.

    Args:
        node: the source of the tensor, or of the value that has the symbol.
        what: "tensor"; for a symbol "size", "stride", "offset" (of the tensor at `node`) or "int"; "float"
            for a symbolic float, "drawn" for a random number, which enter the graph as `scalar_tensor(value)`.
        index: which dimension, for sizes and strides.
        placeholder: name of the placeholder.
    """

    node: Node
    what: str
    index: int
    placeholder: str

    def value(self, of: Any) -> Any:
        """The input, given the value at the source node.

        Args:
            of: the value at `node`.

        Returns:
            The tensor or the int.
        """
        if self.what == "size":
            return of.size()[self.index]
        if self.what == "stride":
            return of.stride()[self.index]
        if self.what == "offset":
            return of.storage_offset()
        return scalar_tensor(of) if self.what in CARRIED else of


def placeholder_name(path: str) -> str:
    """How torch names the placeholder of a source: `L['x']` becomes `L_x_`.

    Args:
        path: the source as logs spell it.

    Returns:
        The placeholder's target; FX makes the node's name (`l_x_`) from it.
    """
    return re.sub(r"[^a-zA-Z0-9]+", "_", path).lstrip("_") or "arg"


class GraphRecorder:
    """The graph of one attempt.

    Args:
        env: the symbolic environment of the attempt, or None for static shapes.

    Attributes:
        graph: the FX graph so far.
        writers: its nodes that write to tensors.
        raisers: its nodes that may raise because of values.
        caught: whether it has an operator whose exception the frame may catch.
        asked: whether the frame asked for sizes that are symbols, or calculated with symbols.
        dispatched: whether `__torch_function__` of the classes of its tensors was asked already.
        undone: whether a call was taken back: see `undo`.
        modules: the functions that operators of the graph take, as graphs, by attribute.
    """

    def __init__(self, env: SymbolicEnv | None = None) -> None:
        self.env = env
        self.graph = torch.fx.Graph()
        self.writers: list[torch.fx.Node] = []
        self.raisers: list[torch.fx.Node] = []
        self.caught = self.asked = self.dispatched = self.undone = False
        self._inputs: dict[Node, torch.fx.Node | None] = {}  # in the order in which the frame looked at them
        self._symbols: dict[Any, torch.fx.Node] = {}  # by sympy expression
        self._sized: dict[Any, tuple[torch.fx.Node, int]] = {}  # results whose sizes symbols are
        self._order: list[tuple[torch.fx.Node, GraphInput, Any]] = []
        self._last_placeholder: torch.fx.Node | None = None
        self._removable: set[torch.fx.Node] = set()
        self._examples = ExampleValues()
        self.modules: dict[str, torch.fx.GraphModule] = {}

    @property
    def calls(self) -> int:
        """How many operations are recorded (arithmetic on sizes not counted)."""
        placeholders = len(self._order)
        return len(self.graph.nodes) - placeholders - len(self._removable)

    def meet(self, node: Node) -> None:
        """Say that the frame looks at a tensor or number: inputs have this order, as with torch, not that of their use.

        Args:
            node: where it comes from.
        """
        self._inputs.setdefault(node, None)

    def add_input(
        self, node: Node, value: TensorRef | torch.SymInt | torch.SymFloat, line: Lines = None
    ) -> torch.fx.Node:
        """The placeholder of a tensor, or of an int or float that is a symbol. One per source.

        Args:
            node: where the value comes from.
            value: the tensor's ref (its symbols get placeholders before it), or the symbol.
            line: the user's line, or stack of lines, that met it.

        Returns:
            The placeholder; for a float, the node that takes it out of its scalar tensor.
        """
        found = self._inputs.get(node)
        if found is not None:
            return found
        if isinstance(value, TensorRef):
            if value.facts.has_symbols:
                for size in (*value.facts.shape, *value.facts.stride, value.facts.storage_offset):
                    if isinstance(size, torch.SymInt):
                        self._bind(size, line)
            spec = GraphInput(node, "tensor", 0, "")
            placeholder = self._placeholder(placeholder_name(node.path), value.facts.cls, spec, value, line)
        else:
            placeholder = self._bind(value, line)
        self._inputs[node] = placeholder
        return placeholder

    def _bind(self, value: Any, line: Lines) -> torch.fx.Node:
        """Make inputs of an expression's symbols; the node of its last symbol (its own, if it is one)."""
        assert self.env is not None
        placeholder: Any = None
        for symbol, node, what, index in self.env.symbol_sources(value):
            placeholder = self._symbols.get(symbol)
            if placeholder is None:
                spec = GraphInput(node, what, index, "")
                value = self.env.value_of(symbol)
                if what in CARRIED:  # a scalar tensor, since backends take no symbolic floats
                    carrier = self._placeholder(placeholder_name(node.path), torch.Tensor, spec, value, line)
                    placeholder = self.call("call_method", "item", (carrier,), None, line, removable=True)
                else:
                    name = placeholder_name(node.path) if what == "int" else str(symbol)
                    placeholder = self._placeholder(name, torch.SymInt, spec, value, line)
                self._symbols[symbol] = placeholder
        return cast("torch.fx.Node", placeholder)

    def _placeholder(
        self, target: str, kind: type, spec: GraphInput, value: Any, line: Lines
    ) -> torch.fx.Node:
        anchor = self._last_placeholder
        with self.graph.inserting_after(self.graph._root if anchor is None else anchor):
            node = self.graph.create_node("placeholder", target, (), {}, type_expr=kind)
        self._last_placeholder = node
        self.meet(spec.node)
        node.meta = NodeMeta(lambda: _placeholder_entries(line, spec), lambda: self._examples.of(node))
        self._order.append((node, GraphInput(spec.node, spec.what, spec.index, node.name), value))
        return node

    def call(
        self,
        op: str,
        target: Any,
        args: Sequence[Any],
        kwargs: dict[str, Any] | None = None,
        line: Lines = None,
        *,
        module_stack: Callable[[], dict[str, Any]] | None = None,
        function: Any = None,
        removable: bool = False,
    ) -> torch.fx.Node:
        """Record an operation.

        Args:
            op: "call_function" or "call_method".
            target: what FX is to record: the callable, or the method's name.
            args: graph nodes and constants; symbols become nodes of their expression.
            kwargs: the same, by name.
            line: the user's line, or the stack of lines, outermost first.
            module_stack: makes torch's `nn_module_stack` entry.
            function: what `source_fn_stack` names when it is not the target (an nn.Module class).
            removable: whether the node is to go if nothing uses it (arithmetic on sizes).

        Returns:
            The node.
        """
        if self.env is not None:
            args = self._with_symbols(args, line)
            kwargs = self._with_symbols(kwargs, line) if kwargs else kwargs
        if target is operator.pow and isinstance(args[0], (int, float)) and args[0] <= 0:
            target = pow  # FX would print `-2 ** x`, which Python reads as `-(2 ** x)`
        node = self.graph.create_node(op, target)
        node.args, node.kwargs = tuple(args), kwargs or {}  # given at once, they are searched for symbols
        node.meta = NodeMeta(
            lambda: call_entries(node, line, module_stack, target if function is None else function),
            lambda: self._examples.of(node),
        )
        if removable:
            self._removable.add(node)
        return node

    def own(self, node: torch.fx.Node, value: Any = None) -> torch.fx.Node:
        """A node as this graph has it.

        Args:
            node: a node of this graph, or of one around it.
            value: what it stands for.

        Returns:
            A node of this graph.

        Raises:
            Escaped: the node belongs to neither.
        """
        if node.graph is not self.graph:
            raise Escaped(node.name)
        return node

    def add_module(self, name: str, module: torch.fx.GraphModule, recorded: GraphRecorder) -> torch.fx.Node:
        """Make a function, as a graph, an attribute of the graph's module.

        Args:
            name: what it is called, before a number.
            module: the function.
            recorded: its graph.

        Returns:
            The node that takes it.
        """
        number = 0
        while f"{name}_{number}" in self.modules:
            number += 1
        self.modules[f"{name}_{number}"] = module
        node = self.graph.create_node("get_attr", f"{name}_{number}", (), {})
        self.caught |= recorded.caught
        self.dispatched |= recorded.dispatched
        if recorded.writers:
            self.writers.append(node)
        if recorded.raisers:
            self.raisers.append(node)
        return node

    def position(self) -> torch.fx.Node:
        """The last node so far, for `forget`."""
        return self.graph._root.prev

    def forget(self, position: torch.fx.Node) -> None:
        """Take back the operations recorded since `position`; inputs stay."""
        gone = set()
        for node in reversed(self.graph.nodes):
            if node is position:
                break
            if node.op != "placeholder":
                gone.add(node)
                self.graph.erase_node(node)
        self._removable -= gone
        self.writers = [node for node in self.writers if node not in gone]
        self.raisers = [node for node in self.raisers if node not in gone]
        self._symbols = {expr: node for expr, node in self._symbols.items() if node not in gone}

    def changes_state(self) -> bool:
        """Whether running the operations so far leaves more than results: what was there written to, numbers drawn."""
        given = (value.storage for _, _, value in self._order if isinstance(value, TensorRef))
        return any(storage.written for storage in given) or any(map(call_draws, self.graph.nodes))

    def undo(self, target: Any, args: tuple[Any, ...]) -> bool:
        """Take the last operation back if it is this call, whose effect is undone at once.

        Args:
            target: what was called.
            args: its arguments.

        Returns:
            Whether it was.
        """
        last = self.graph._root.prev
        if last.target is not target or last.args != args:
            return False
        self.graph.erase_node(last)
        self.undone = True
        return True

    def _with_symbols(self, value: Any, line: Lines) -> Any:
        """A structure of arguments with nodes in place of symbols."""
        if isinstance(value, _SYMBOLS):
            return self.symbolic(value, line)
        if isinstance(value, (tuple, list)):
            items = [self._with_symbols(v, line) for v in value]
            return tuple(items) if isinstance(value, tuple) else items
        if isinstance(value, dict):
            return {k: self._with_symbols(v, line) for k, v in value.items()}
        if isinstance(value, slice):
            return slice(*(self._with_symbols(v, line) for v in (value.start, value.stop, value.step)))
        return value

    def symbolic(self, value: Any, line: Lines = None) -> torch.fx.Node | int | float | bool:
        """The node that computes a symbolic value from the graph's inputs, one per expression.

        Args:
            value: a SymInt, SymFloat or SymBool.
            line: the user's line.

        Returns:
            The node, or the constant if the value is one by now.
        """
        assert self.env is not None
        expr = self.env.expression(value)
        if not is_constant(expr):
            return self._emit(expr, line)
        found = constant(expr)
        return float(found) if isinstance(value, torch.SymFloat) else found

    def _emit(self, expr: Any, line: Lines) -> torch.fx.Node:
        found = self._symbols.get(expr)
        if found is not None:
            return found
        if expr.is_Symbol:
            bound = self._bind(expr, line)
            if bound is None:
                if expr not in self._sized:
                    raise KeyError(f"the graph has no node for {expr}")
                bound = self.call("call_method", "size", self._sized[expr], None, line, removable=True)
                self._symbols[expr] = bound
            return bound
        op, operands = parts(expr)
        args = [constant(o) if is_constant(o) else self._emit(o, line) for o in operands]
        target = FX_TARGETS[op]
        node: Any = None
        if op in FOLDED and len(args) > 1:
            node = args[0]
            for arg in args[1:]:
                node = self.call("call_function", target, (node, arg), None, line, removable=True)
        else:
            node = self.call("call_function", target, args, None, line, removable=True)
        self._symbols[expr] = node
        return cast("torch.fx.Node", node)

    def define(self, value: Any, node: torch.fx.Node) -> None:
        """Say which node holds a symbol that no input has (an unbacked symbol), or an expression already
        recorded.

        Args:
            value: the symbolic value.
            node: the node whose result it is.
        """
        assert self.env is not None
        self._symbols.setdefault(self.env.expression(value), node)

    def sized(self, sizes: Sequence[Any], node: torch.fx.Node) -> None:
        """Say which node's result has sizes: symbols that no input has are read from there when the graph uses them.

        Args:
            sizes: the sizes.
            node: the node.
        """
        for dim, size in enumerate(sizes):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                self._sized.setdefault(size.node.expr, (node, dim))

    def rename(self, node: torch.fx.Node, name: str) -> None:
        """Name a node after the variable it was stored to, as torch does.

        Args:
            node: the node.
            name: the name wanted; made unique.
        """
        node._rename(name)

    def finish(self, outputs: Sequence[torch.fx.Node]) -> CapturedGraph:
        """End the graph.

        Args:
            outputs: the nodes it returns, as a tuple.

        Returns:
            The captured graph: unused inputs, items and arithmetic on sizes are gone.
        """
        graph = self.graph
        graph.create_node("output", "output", (tuple(outputs),), {})
        for node in reversed(graph.nodes):
            if not node.users and (node.target is operator.getitem or node in self._removable):
                graph.erase_node(node)
        inputs = self._as_met(self._drop_unused())
        captured = CapturedGraph(graph, inputs, self.env, self._examples, self.modules)
        captured.writers, captured.raisers = _callers(self.writers), _callers(self.raisers)
        captured.caught, captured.asked, captured.dispatched = self.caught, self.asked, self.dispatched
        return captured

    def _drop_unused(self) -> list[tuple[torch.fx.Node, GraphInput, Any]]:
        """Erase placeholders without users; a symbol stays while a tensor that stays has it."""
        left, needed = self._symbols_of_inputs()
        kept = []
        for node, spec, value in self._order:
            if node.users or node in needed:
                kept.append((node, spec, value))
            elif spec.what != "tensor" and isinstance(value, torch.SymInt) and value.node.expr in left:
                left.remove(value.node.expr)  # one binds it
                kept.append((node, spec, value))
            else:
                self.graph.erase_node(node)
        return kept

    def _as_met(
        self, inputs: list[tuple[torch.fx.Node, GraphInput, Any]]
    ) -> list[tuple[torch.fx.Node, GraphInput, Any]]:
        """Inputs in the order in which the frame looked at them, a tensor's symbols before it."""
        met = {node: i for i, node in enumerate(self._inputs)}
        ordered = sorted(inputs, key=lambda of: (met[of[1].node], of[1].what == "tensor"))
        if ordered != inputs:
            anchor = self.graph._root
            for node, _, _ in ordered:
                anchor.append(node)
                anchor = node
        return ordered

    def _symbols_of_inputs(self) -> tuple[set[Any], set[torch.fx.Node]]:
        """The symbols that sizes of used tensors are still made of (one that became a number is none), and placeholders
        to keep where such a symbol has none of its own."""
        left: set[Any] = set()
        needed: set[torch.fx.Node] = set()
        for node, spec, value in self._order:
            if spec.what != "tensor" or not node.users or not value.facts.has_symbols:
                continue
            assert self.env is not None
            for size in (*value.facts.shape, *value.facts.stride, value.facts.storage_offset):
                if isinstance(size, torch.SymInt):
                    symbols: set[Any] = size.node.expr.free_symbols
                    left |= symbols
                    if not symbols <= self._symbols.keys():
                        needed.update(self._symbols[symbol] for symbol, *_ in self.env.symbol_sources(size))
        return left, needed


def _callers(nodes: Iterable[torch.fx.Node]) -> tuple[torch.fx.Node, ...]:
    """Nodes, and for functions the operators that call them."""
    return tuple(n for node in nodes for n in (node.users if node.op == "get_attr" else (node,)))


class Escaped(Exception):
    """A value made in a function that an operator takes is used outside of it."""


def graph_module(graph: torch.fx.Graph, modules: dict[str, torch.fx.GraphModule], name: str) -> Any:
    """A graph as a module. Its Python code is generated when it is first called or read.

    Args:
        graph: the graph.
        modules: what its `get_attr` nodes take.
        name: the class's name.

    Returns:
        The GraphModule.
    """
    root = torch.nn.Module()
    for attribute, module in modules.items():
        root.add_module(attribute, module)
    return _LazyGraphModule(root, graph, name)


def _placeholder_entries(line: Lines, spec: GraphInput) -> dict[str, Any]:
    kind = _address_of(spec) if spec.what == "tensor" and spec.node.root.frame is not None else None
    known = {} if kind is None else {"_dynamo_static_input_type": kind}
    return {"stack_trace": stack_trace(line), "tensor_dict": known}


def _address_of(spec: GraphInput) -> str | None:
    """Whether a tensor stays where it is in memory, in torch's words: what modules hold does, and what is marked so."""
    marked: str | None = getattr(spec.node.peek(), "_dynamo_static_input_type", None)
    node = spec.node.parent
    while marked is None and node is not None:
        marked = "unguarded" if isinstance(node.peek(), torch.nn.Module) else None
        node = node.parent
    return marked


class CapturedGraph:
    """A finished graph, with what a backend may ask for. The GraphModule and fake values are made when asked
    for.

    Attributes:
        graph: the FX graph; returns a tuple.
        inputs: where each placeholder's value comes from, in placeholder order.
        env: the symbolic environment, or None.
        writers: its nodes that write to tensors.
        raisers: its nodes that may raise because of values.
        caught: whether it has an operator whose exception the frame may catch.
        asked: whether the frame asked for sizes that are symbols, or calculated with symbols.
        dispatched: whether `__torch_function__` of the classes of its tensors was asked already.
        modules: what the graph's `get_attr` nodes take.
        made: shapes of the tensors that the frame gets from it, as far as they are numbers.
    """

    def __init__(
        self,
        graph: torch.fx.Graph,
        inputs: Sequence[tuple[torch.fx.Node, GraphInput, Any]],
        env: SymbolicEnv | None,
        examples: ExampleValues,
        modules: dict[str, torch.fx.GraphModule],
    ) -> None:
        self.graph = graph
        self.env = env
        self.writers: tuple[torch.fx.Node, ...] = ()
        self.raisers: tuple[torch.fx.Node, ...] = ()
        self.caught = False
        self.asked = False
        self.dispatched = False
        self.made: frozenset[tuple[int, ...]] = frozenset()
        self.placeholders = [node for node, _, _ in inputs]
        self.inputs: list[GraphInput] = [spec for _, spec, _ in inputs]
        self.values: list[Any] = [value for _, _, value in inputs]
        self.meta: dict[str, Any] = {}
        self._gm: torch.fx.GraphModule | None = None
        self._examples = examples
        self.modules = modules
        examples.bind(self)

    @property
    def gm(self) -> torch.fx.GraphModule:
        """The GraphModule. Its Python code is generated when it is first called or read."""
        if self._gm is None:
            gm = graph_module(self.graph, self.modules, "GraphModule")
            gm.meta.update(self.meta)
            self._gm = gm
        return self._gm

    @property
    def is_empty(self) -> bool:
        """Whether the graph computes nothing, not even for a moment: sizes asked for are operations to torch."""
        (output,) = self.graph.find_nodes(op="output")
        works = any(n.op in ("call_function", "call_method", "call_module") for n in self.graph.nodes)
        return not (works or output.args[0] or self.asked)

    def places(self) -> dict[Node, int]:
        """Where the values at the inputs' nodes are in what the hook hands over: its length is that of the tuple."""
        found: dict[Node, int] = {}
        for spec in self.inputs:
            if spec.what not in ("int", *CARRIED):
                found.setdefault(spec.node, len(found))
        return found

    @property
    def op_count(self) -> int:
        """How many operations are in the graph."""
        return sum(n.op in ("call_function", "call_method", "call_module") for n in self.graph.nodes)

    def example_inputs(self) -> list[Any]:
        """The inputs of this attempt: real tensors, and the symbols themselves for symbols.

        Returns:
            One value per placeholder.
        """
        out: list[Any] = []
        for spec, value in zip(self.inputs, self.values):
            if spec.what == "tensor":
                out.append(spec.node.peek())
            elif spec.what in CARRIED and self.env is not None:
                out.append(self.env.scalars[spec.node][0])
            else:
                out.append(value)
        return out

    @property
    def fake_mode(self) -> Any:
        """The fake mode of the example values, made on first use in an attempt without symbols."""
        return self._examples.fake_mode

    def fake_inputs(self) -> list[Any]:
        """The fake tensors and symbols that stand for the inputs.

        Returns:
            One value per placeholder.
        """
        return self._examples.inputs()

    def code(self) -> str:
        """The graph as Python code."""
        return self.gm.code

    def __call__(self, *args: Any) -> Any:
        """Run the graph (slow path: the rewritten code calls the backend's callable)."""
        return self.gm(*args)
