"""What torch gives a backend besides the graph: sources of its inputs, a tracing context, and what it leaves
there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

import torch
from torch import _guards

from dynacheck.backends.contract import GraphCompiler
from dynacheck.graph.recorder import CapturedGraph, GraphInput
from dynacheck.graph.symbolic import torch_source
from dynacheck.guards import Same, StorageOverlap
from dynacheck.guards.base import relate
from dynacheck.guards.relations import overlapping_pairs
from dynacheck.sources import DictAttr, Node

_numbers = count()
_STATE = (DictAttr("_buffers"), DictAttr("_parameters"))


class LazyContext(_guards.TracingContext):
    """A tracing context whose fake mode is made when a backend asks for it.

    Args:
        captured: the graph that is being compiled.
    """

    def __init__(self, captured: CapturedGraph) -> None:
        self._captured: CapturedGraph | None = captured
        super().__init__(None)

    @property
    def fake_mode(self) -> Any:
        """The fake mode of the graph's example values, which it knows the fake inputs of."""
        captured = self._captured
        if captured is None:
            return None
        if not self.tensor_to_context:
            captured.fake_inputs()
            self._note_contexts(captured)
        return captured.fake_mode

    @fake_mode.setter
    def fake_mode(self, mode: Any) -> None:
        """Set by the base class when it is made."""

    def _note_contexts(self, captured: CapturedGraph) -> None:
        """How each input's sizes were made symbols, for those who make fake tensors of them again."""
        from torch.fx.experimental.symbolic_shapes import DimDynamic, StatefulSymbolicContext

        for spec in captured.inputs:
            if spec.what != "tensor":
                continue
            tensor = spec.node.peek()
            known = None if captured.env is None else captured.env.tensor_contexts.get(spec.node)
            if known is None:
                dims = tensor.dim()
                known = StatefulSymbolicContext(
                    dynamic_sizes=[DimDynamic.STATIC] * dims,
                    dynamic_strides=[DimDynamic.INFER_STRIDE] * dims,
                    constraint_sizes=[None] * dims,
                    constraint_strides=[None] * dims,
                    view_base_context=None,
                    tensor_source=torch_source(spec.node),
                )
            self.tensor_to_context[tensor] = known

    def close(self) -> None:
        """Let go of the graph."""
        self._captured = None


@contextmanager
def backend_context(captured: CapturedGraph) -> Iterator[_guards.TracingContext]:
    """What is in force while a backend compiles a graph; the guards it leaves are installed afterwards.

    Args:
        captured: the graph.

    Yields:
        The tracing context.
    """
    _describe(captured)
    context = LazyContext(captured)
    compile_id = _guards.CompileId(frame_id=next(_numbers), frame_compile_id=0)
    captured.gm.meta["dynamo_compile_id"] = compile_id
    try:
        with _guards.compile_context(_guards.CompileContext(compile_id)), _guards.tracing(context):
            try:
                yield context
            finally:
                context.close()  # or `tracing` would drop what the fake mode's symbols still have to say
    finally:
        context.clear()
    _install_guards(context, captured)


def _describe(captured: CapturedGraph) -> None:
    """The attributes by which AOTAutograd finds where inputs come from."""
    gm: Any = captured.gm
    gm._param_name_to_source = {}
    gm._source_to_user_stacks = {}
    gm.meta.setdefault("dynamo_flat_name_to_original_fqn", {})
    for placeholder, spec in zip(captured.placeholders, captured.inputs):
        placeholder._dynamo_source = _input_source(spec)


def _input_source(spec: GraphInput) -> Any:
    """Where an input comes from, in torch's terms."""
    from torch._dynamo import source

    base = torch_source(spec.node)
    kinds = {
        "size": source.TensorProperty.SIZE,
        "stride": source.TensorProperty.STRIDE,
        "offset": source.TensorProperty.STORAGE_OFFSET,
    }
    if spec.what not in kinds:
        return base
    return source.TensorPropertySource(base, kinds[spec.what], None if spec.what == "offset" else spec.index)


def _install_guards(context: _guards.TracingContext, captured: CapturedGraph) -> None:
    """Relations between inputs that the backend relied on, as guards of the entry."""
    by_name = {spec.node.path: spec.node for spec in captured.inputs}
    for guard in context.guards_context.aotautograd_guards:
        if isinstance(guard, _guards.DuplicateInputs):
            names = [guard.input_source_a.name, guard.input_source_b.name]
            relation: Any = Same()
        elif isinstance(guard, _guards.StorageOverlap):
            names = [s.name for s in (*guard.overlapping_sources, *guard.non_overlapping_sources)]
            relation = None
        else:
            raise NotImplementedError(f"a backend left a guard of an unknown kind: {type(guard).__name__}")
        nodes = [by_name[name] for name in names]
        if relation is None:
            tensors: list[torch.Tensor] = [node.peek() for node in nodes]
            relation = StorageOverlap(overlapping_pairs(tensors))
        relate(nodes[0].root, relation, nodes, None)
    _guard_overlap(context, captured)


def _guard_overlap(context: _guards.TracingContext, captured: CapturedGraph) -> None:
    """Hold inputs to how they overlap in memory, if the backend made the graph's writes to them its own.

    torch.compile doesn't while shapes are static, and is wrong when the same function then gets other views.
    Parameters and buffers are taken to have storage of their own.
    """
    infos = getattr(context.fw_metadata, "input_info", ())
    mutated = {i for i, info in enumerate(infos) if info.mutates_data or info.mutates_storage_metadata}
    inputs = [
        (i, spec.node)
        for i, spec in enumerate(captured.inputs)
        if spec.what == "tensor" and not _owned(spec.node)
    ]
    if len(inputs) > 1 and any(i in mutated for i, _ in inputs):
        nodes = [node for _, node in inputs]
        relate(nodes[0].root, StorageOverlap(overlapping_pairs([n.peek() for n in nodes])), nodes, None)


def _owned(node: Node) -> bool:
    """Whether a tensor is a module's parameter or buffer."""
    return node.parent is not None and node.parent.accessor in _STATE


def calling(fn: GraphCompiler, keywords: Mapping[str, Any]) -> Callable[[CapturedGraph], Callable[..., Any]]:
    """Hand a graph to a callable of the contract, with what torch gives it.

    Args:
        fn: the callable.
        keywords: further arguments for it (`mode`, `options`).
    """

    def compile_graph(captured: CapturedGraph) -> Callable[..., Any]:
        with backend_context(captured):
            return fn(captured.gm, captured.example_inputs(), **keywords)

    return compile_graph
