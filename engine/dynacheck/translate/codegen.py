"""The rewritten code: call the graph, replay side effects, rebuild values."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

import torch

from dynacheck.bytecode.assemble import assemble, continues
from dynacheck.bytecode.build import Builder
from dynacheck.bytecode.ops import Label
from dynacheck.graph.recorder import CapturedGraph, GraphInput, GraphRecorder
from dynacheck.graph.scalars import CARRIED, scalar_tensor
from dynacheck.sources import Node
from dynacheck.translate.effects import SideEffects
from dynacheck.translate.frame import Frame
from dynacheck.variables.base import CantRebuild, GraphBreak, LazyVariable, VariableTracker
from dynacheck.variables.functions import VARARGS, VARKEYWORDS
from dynacheck.variables.randoms import DRAWN, DRAWS, Draws, put_back
from dynacheck.variables.tensor import TensorVariable
from dynacheck.variables.walk import reachable

CAPTURED = "___captured"
OUTPUTS = "___outputs"


class WeakCell:
    """A weakly held user object, as a constant of rewritten code."""

    __slots__ = ("ref",)

    def __init__(self, ref: Any) -> None:
        self.ref = ref

    def get(self) -> Any:
        """The object (the entry is dropped when it dies, so it is alive while the entry runs)."""
        return self.ref()


def from_weak_cell(cell: WeakCell) -> Any:
    """The object of a weak cell (used by rewritten code)."""
    return cell.get()


def _asked(tensor: Any, method: Callable[..., Any], *args: int) -> int:
    """What a tensor's method says; a subclass isn't told that it was asked."""
    if type(tensor) in (torch.Tensor, torch.nn.Parameter):
        return int(method(tensor, *args))
    with torch._C.DisableTorchFunctionSubclass():
        return int(method(tensor, *args))


def size_of(tensor: Any, index: int) -> int:
    """A size of a tensor (used by rewritten code)."""
    return _asked(tensor, torch.Tensor.size, index)


def stride_of(tensor: Any, index: int) -> int:
    """A stride of a tensor (used by rewritten code)."""
    return _asked(tensor, torch.Tensor.stride, index)


def offset_of(tensor: Any, index: int) -> int:
    """The storage offset of a tensor (used by rewritten code)."""
    return _asked(tensor, torch.Tensor.storage_offset)


def recover(
    graph: Any,
    original: WeakCell,
    closure: tuple[CellType, ...],
    slots: tuple[Any, ...],
    inputs: tuple[Any, ...],
) -> None:
    """A graph raised (used by rewritten code, while that is handled): have the frame run again, or let it pass.

    Args:
        graph: what ran the graph.
        original: the frame's code as the user wrote it.
        closure: the cells it closes over.
        slots: the values of its argument slots.
        inputs: the tensors that the hook handed over.

    Raises:
        Rerun: for the hook: the frame is to be run again.
    """
    recovery, code = getattr(graph, "recovery", None), original.get()
    if recovery is not None and code is not None:
        globals_ = sys._getframe(1).f_globals
        recovery(FunctionType(code, globals_, code.co_name, None, closure), slots, inputs)


_SYMBOL_LOADS: dict[str, Callable[[Any, int], int]] = {
    "size": size_of,
    "stride": stride_of,
    "offset": offset_of,
}


class Codegen:
    """Builds the code that replaces a frame's. Implements `variables.base.Rebuilder`.

    The body is built first, since it decides which values the graph returns; the call of the graph is put before it.

    Args:
        template: the frame's code.
        recorder: the attempt's graph.
        tx: the frame.
    """

    def __init__(self, template: CodeType, recorder: GraphRecorder, tx: Frame) -> None:
        self.template = template
        self.recorder = recorder
        self.tx = tx
        self.build = Builder(template)
        self.outputs: list[Any] = []
        self.made: set[tuple[Any, ...]] = set()
        self._output_index: dict[Any, int] = {}
        self._temps: dict[VariableTracker, str] = {}
        self._fresh = 0
        self._pending: dict[Any, None] = {}  # side effects that are still to be written
        self._own_cells: dict[Any, str] = {}  # cells of the frame itself, which the rewritten code makes

    # -- Emitter
    def own_cells(self, cells: dict[str, Any]) -> None:
        """Say which trackers are the frame's own cells."""
        own = set(self.template.co_cellvars)
        if continues(self.template):
            own -= set(self.template.co_freevars)
        self._own_cells = {cell: name for name, cell in cells.items() if name in own}

    def load_local(self, name: str) -> None:
        if name in self.template.co_cellvars:
            self.build.load_deref(name)
        else:
            self.build.load_fast(name)

    def load_free(self, name: str) -> None:
        self.build.load_deref(name)

    def load_cell(self, name: str) -> None:
        self.build.load_closure(name)

    def load_global(self, name: str) -> None:
        self.build.load_global(name)

    def load_const(self, value: object) -> None:
        self.build.load_const(value)

    def load_weak(self, ref: Callable[[], object]) -> None:
        self.call_helper(from_weak_cell, lambda: self.build.load_const(WeakCell(ref)))

    def load_attr(self, name: str) -> None:
        self.build.load_attr(name)

    def load_item(self, key: object) -> None:
        self.build.load_const(key)
        self.build.binary_subscr()

    def call_helper(self, helper: Callable[..., object], *loads: Callable[[], None]) -> None:
        self.build.null_first()
        self.build.load_const(helper)
        self.build.null_last()
        for load in loads:
            load()
        self.build.call(len(loads))

    # -- Rebuilder
    def load(self, value: VariableTracker) -> None:
        if isinstance(value, LazyVariable) and value.real is not None:
            value = value.real
        temp = self._temps.get(value)
        if temp is not None:
            self.build.load_bound(temp)
        elif value in self._own_cells:
            self.build.load_closure(self._own_cells[value])
        elif value.node is not None:
            value.node.emit(self)
        else:
            value.reconstruct(self)

    def settle(self, value: VariableTracker) -> None:
        """Write an object's changes back now, if they still have to be: what is made from it next looks at it."""
        if isinstance(value, LazyVariable) and value.real is not None:
            value = value.real
        if value in self._pending:
            del self._pending[value]
            value.write_back(self)

    def pin(self, value: VariableTracker) -> None:
        """Evaluate a value now, so that later loads aren't changed by what is written in between."""
        if isinstance(value, LazyVariable) and value.real is not None:
            value = value.real
        if value in self._temps or (value.is_constant() and value.node is None):
            return
        self.load(value)
        if value in self._temps:
            self.build.pop()
        else:
            self._temps[value] = name = self.fresh("v")
            self.build.store_fast(name)

    def fresh(self, prefix: str) -> str:
        """A new local of the rewritten code."""
        self._fresh += 1
        return f"___{prefix}{self._fresh}"

    def build_tuple(self, n: int) -> None:
        self.build.build_tuple(n)

    def build_list(self, n: int) -> None:
        self.build.build_list(n)

    def build_set(self, n: int) -> None:
        self.build.build_set(n)

    def build_map(self, n: int) -> None:
        self.build.build_map(n)

    def build_slice(self, n: int) -> None:
        self.build.build_slice(n)

    def push_callable(self, load: Callable[[], None]) -> None:
        self.build.null_first()
        load()
        self.build.null_last()

    def call(self, n: int, kwnames: tuple[str, ...] = ()) -> None:
        self.build.call(n, kwnames)

    def load_method(self, name: str) -> None:
        self.build.load_method(name)

    def load_globals(self, globals_: dict[str, Any]) -> None:
        self.tx.load_globals_of(self, globals_)

    def load_class(self, cls: type) -> None:
        """Push a class of the user's."""
        self.tx.class_node(cls).emit(self)

    def load_const_type(self, cls: type) -> None:
        """Push a builtin class."""
        self.build.load_const(cls)

    def load_module(self, name: str) -> None:
        self.tx.root.module(name).emit(self)

    def pop(self) -> None:
        self.build.pop()

    def dup(self) -> None:
        self.build.copy()

    def store_attr(self, name: str) -> None:
        self.build.store_attr(name)

    def remember(self, value: VariableTracker) -> None:
        name = self._temps.get(value)
        if name is None:
            name = self._temps[value] = self.fresh("v")
        self.build.copy()
        self.build.store_fast(name)

    def graph_output(self, value: VariableTracker) -> None:
        try:
            node = value.as_proxy(self.tx)
        except GraphBreak as escaped:
            raise CantRebuild(f"a tensor made in a function that an operator takes ({escaped})") from None
        if not hasattr(node, "op"):  # a symbolic number
            node = self.recorder.symbolic(node)
            if not hasattr(node, "op"):
                self.build.load_const(node)
                return
        index = self._output_index.get(node)
        if index is None:
            index = self._output_index[node] = len(self.outputs)
            self.outputs.append(node)
            if isinstance(value, TensorVariable) and all(type(size) is int for size in value.ref.facts.shape):
                self.made.add(tuple(value.ref.facts.shape))
        self.build.load_bound(OUTPUTS)
        self.build.load_const(index)
        self.build.binary_subscr()

    # -- whole frames
    def replay(
        self, effects: SideEffects, results: Sequence[VariableTracker], cells: dict[str, Any] | None = None
    ) -> None:
        """Write side effects back. Values of the frame's results and of the writes are evaluated before any write.

        Args:
            effects: the attempt's.
            results: what is loaded afterwards.
            cells: the frame's own cells by name, if the frame goes on behind a break; otherwise only those that escape
                are filled.
        """
        items = effects.items()
        # What is written to counts too: the way to it may lead through another object that is written to.
        written = [item for item in items if isinstance(item, VariableTracker) and item.node is not None]
        roots = [*results, *written, *(c for item in items for c in item.children())]
        own = self._own_cells if cells is not None else self._escaping_cells(roots)
        if not items and not own:
            return
        seen: set[int] = set()
        for value in (*roots, *own):
            self._pin_deep(value, seen)
        self._pending = dict.fromkeys(items)
        for cell, name in own.items():
            contents = cell.contents
            if contents is not None:
                self.load(contents)
                self.build.store_deref(name)
            elif name in self.tx.decoded.argument_names:  # an argument that was deleted
                self.build.delete_deref(name)
        for item in items:
            self.settle(item)

    def _escaping_cells(self, roots: Sequence[VariableTracker]) -> dict[Any, str]:
        """The frame's own cells that what leaves the frame holds."""
        if not self._own_cells:
            return {}
        return {value: self._own_cells[value] for value in reachable(roots) if value in self._own_cells}

    def _pin_deep(self, value: VariableTracker, seen: set[int]) -> None:
        """Evaluate a value; for one that is built later, what it holds."""
        if isinstance(value, LazyVariable) and value.real is not None:
            value = value.real
        if id(value) in seen:
            return
        seen.add(id(value))
        if value.node is not None:
            self.pin(value)
            return
        for child in value.children():
            self._pin_deep(child, seen)

    def finish(
        self, compile_graph: Callable[[CapturedGraph], object]
    ) -> tuple[CodeType, CapturedGraph, list[Node]]:
        """Put the graph's call before the body and assemble.

        Args:
            compile_graph: hands the graph to the backend; gives the constant that runs it. Not called for a graph that
                computes nothing.

        Returns:
            The code, the finished graph, the nodes whose values the hook hands over.
        """
        captured_graph = self.recorder.finish(self.outputs)
        captured_graph.made = frozenset(self.made)
        body = self.build
        front = Builder(self.template)
        front._names, front._consts, front._const_index = body._names, body._consts, body._const_index
        self.build = front
        capture: list[Node] = []
        graph_callable: object = None
        raised = front.label()
        draws: Draws | None = self.tx.state.get(DRAWS)
        if draws is not None and draws.calls:
            draws.emit(self)
            front.store_fast(DRAWN)
        if not captured_graph.is_empty:
            graph_callable = compile_graph(captured_graph)
            capture = self._call_graph(captured_graph, graph_callable, raised)
        elif self.outputs:
            capture = self._inputs_as_outputs(captured_graph)
        self.build = body
        shift = len(front.ops)
        for label in {id(label): label for label in _labels(body.ops)}.values():
            if label.position is not None:
                label.position += shift
        body.ops[:0] = front.ops
        for name in front.locals:
            body._locals.setdefault(name)
        if graph_callable is not None:
            self._graph_raised(raised, graph_callable, bool(capture))
        body._locals.pop(CAPTURED, None)
        code = assemble(body, extra_locals=(CAPTURED,) if capture else ())
        return code, captured_graph, capture

    def _call_graph(self, graph: CapturedGraph, graph_callable: object, raised: Label) -> list[Node]:
        build = self.build
        position = graph.places()
        build.null_first()
        build.load_const(graph_callable)
        build.null_last()
        if position and all(spec.what == "tensor" for spec in graph.inputs):
            build.load_bound(CAPTURED)
            with build.covered(raised, 0):
                build.call_function_ex()
        else:
            for spec in graph.inputs:
                self._load_input(spec, position)
            with build.covered(raised, 0):
                build.call(len(graph.inputs))
        if self.outputs:
            build.store_fast(OUTPUTS)
        else:
            build.pop()
        return list(position)

    def _graph_raised(self, raised: Label, graph_callable: object, captured: bool) -> None:
        """What happens when the graph raises: nothing of the frame is done yet, so it can be run again as it is."""
        build, code = self.build, self.template
        nargs = code.co_argcount + code.co_kwonlyargcount
        nargs += bool(code.co_flags & VARARGS) + bool(code.co_flags & VARKEYWORDS)

        def closure() -> None:
            for name in code.co_freevars:
                build.load_closure(name)
            build.build_tuple(len(code.co_freevars))

        def slots() -> None:
            for name in code.co_varnames[:nargs]:
                self.load_local(name)
            build.build_tuple(nargs)

        def inputs() -> None:
            if captured:
                build.load_bound(CAPTURED)
            else:
                build.load_const(())

        with build.finally_handler(raised):
            if DRAWN in build.locals:
                self.call_helper(put_back, lambda: build.load_bound(DRAWN))
                build.pop()
            original = WeakCell(weakref.ref(code))  # a cycle through code objects would never be collected
            loads = [lambda c=c: build.load_const(c) for c in (graph_callable, original)]
            self.call_helper(recover, *loads, closure, slots, inputs)
            build.pop()

    def _inputs_as_outputs(self, graph: CapturedGraph) -> list[Node]:
        """What a graph that computes nothing returns: symbols as they came in."""
        position = graph.places()
        specs = dict(zip(graph.placeholders, graph.inputs, strict=True))
        for node in self.outputs:
            self._load_input(specs[node], position)
        self.build.build_tuple(len(self.outputs))
        self.build.store_fast(OUTPUTS)
        return list(position)

    def _load_input(self, spec: GraphInput, position: dict[Node, int]) -> None:
        build = self.build
        if spec.what in CARRIED:
            self.call_helper(scalar_tensor, lambda: spec.node.emit(self))
            return
        if spec.what == "int":
            spec.node.emit(self)
            return

        def load() -> None:
            build.load_bound(CAPTURED)
            build.load_const(position[spec.node])
            build.binary_subscr()

        if spec.what == "tensor":
            load()
        else:
            self.call_helper(_SYMBOL_LOADS[spec.what], load, lambda: build.load_const(spec.index))


def _labels(ops: Sequence[Any]) -> Iterator[Any]:
    """The labels that operations refer to."""
    for op in ops:
        if isinstance(op.arg, Label):
            yield op.arg
        if op.cover is not None:
            yield op.cover.target
