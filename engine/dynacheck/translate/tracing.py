"""The Tracer: what trackers and handlers ask of a frame's translator, backed by the attempt they belong to."""

from __future__ import annotations

import operator
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import torch

from dynacheck import reasons
from dynacheck.graph.behaviour import is_torchs, may_raise, note_hidden_writes, writes_so_far
from dynacheck.graph.facts import TensorRef
from dynacheck.graph.fromfacts import is_contiguous, written_out
from dynacheck.graph.oracle import DataDependent, OperatorRaised, Oracle, UnsupportedOperator
from dynacheck.graph.recorder import Escaped, GraphRecorder
from dynacheck.graph.runs import holds_symbols
from dynacheck.graph.subgraphs import SubgraphRecorder
from dynacheck.guards import Absent, LengthIs, RangeIs, Same
from dynacheck.guards.base import Guard, install, is_installed, relate
from dynacheck.handlers import skip
from dynacheck.reasons import Reason
from dynacheck.sources import ABSENT, HEAP_TYPE, FrameView, Node, Root, UserLine, is_a
from dynacheck.translate.effects import SideEffects
from dynacheck.translate.signals import OPERATOR_RAISED, Restart, SkipFrame, Speculation
from dynacheck.variables import exceptions
from dynacheck.variables.base import GraphBreak, LazyVariable, ObservedException, Tracer, VariableTracker
from dynacheck.variables.cells import CellVariable
from dynacheck.variables.classes import PythonModuleVariable
from dynacheck.variables.constant import ConstantVariable, is_constant_value
from dynacheck.variables.functions import ObjectVariable, UserFunctionVariable
from dynacheck.variables.indices import known_indices, knows_numbers
from dynacheck.variables.randoms import ELEMENTWISE, TAKEN
from dynacheck.variables.results import CONTAINERS
from dynacheck.variables.sequences import ListVariable, NamedTupleVariable, SizeVariable, TupleVariable
from dynacheck.variables.subclasses import StrippedVariable, SubclassTensorVariable, tensor_tracker
from dynacheck.variables.symbolic import SymNumberVariable
from dynacheck.variables.tensor import Overloaded, TensorVariable
from dynacheck.variables.walk import reachable
from dynacheck.variables.wrap import IDENTITY_FREE, class_tracker, wrap_value

_IS_ABSENT: Final = Absent()
PYTHON_VALUES: Final = (bool, int, float, complex, str, torch.dtype, torch.device, torch.layout)
"""What an operator may return that a graph can't hold."""
OWN_OPERATORS = ("dynacheck.graph.custom", "dynacheck.graph.functional")
"""Modules of what a graph calls for functions that were interpreted, with their operators' `__torch_function__`."""


class Attempt:
    """Everything of one try at translating a frame; dropped when the frame restarts.

    Args:
        frame: the frame's function and arguments.
        speculation: what earlier attempts learnt.
        oracle: metadata propagation.
        shapes: the policy that decides which sizes and numbers are symbols (`runtime.dynamic`).
        env: the symbolic environment, or None.
        fullgraph: a break is an error.
        settings: the engine's settings.
    """

    def __init__(
        self,
        frame: FrameView,
        speculation: Speculation,
        oracle: Oracle,
        shapes: Any,
        env: Any,
        fullgraph: bool,
        settings: Any,
    ) -> None:
        self.frame = frame
        self.root = Root(frame)
        self.speculation = speculation
        self.oracle = oracle
        self.shapes = shapes
        self.env = env
        self.fullgraph = fullgraph
        self.settings = settings
        self.graph = GraphRecorder(env)
        self.effects = SideEffects()
        self.by_id: dict[int, tuple[Any, VariableTracker]] = {}  # values met, kept alive, and their trackers
        self.refs: dict[int, TensorVariable] = {}  # trackers of tensors by their ref
        self.storages: dict[int, Any] = {}
        self.cells: dict[int, CellVariable] = {}
        self.frames: list[Tracing] = []  # running frames, outermost first
        self.modules: list[tuple[str, Any]] = []  # entered nn.Modules: (path, class)
        self.cautions: dict[str, tuple[UserLine, ...]] = {}  # sentences, each with where it holds first
        self.state: dict[Any, Any] = {}
        self.function_modes: list[VariableTracker] = []  # torch function modes that the frame has entered
        # in a function that may have no side effect: what it may not change
        self.outside: frozenset[int] | None = None

    def release(self) -> None:
        """Let go of the frame and its values: the attempt is part of cycles, and would keep them until a collection."""
        self.frames.clear()
        self.by_id.clear()
        self.state.clear()


class Tracing(Tracer):
    """What a frame's translator does without running anything."""

    attempt: Attempt
    code: types.CodeType
    globals: dict[str, Any]
    exceptions: list[VariableTracker]

    def held(self) -> list[VariableTracker]:
        """The trackers that the frame holds."""
        raise NotImplementedError

    # -- where we are
    @property
    def root(self) -> Root:
        return self.attempt.root

    @property
    def effects(self) -> SideEffects:
        return self.attempt.effects

    @property
    def env(self) -> Any:
        return self.attempt.env

    def captures_scalars(self) -> bool:
        return bool(self.attempt.settings.capture_scalar_outputs)

    @property
    def state(self) -> dict[Any, Any]:
        return self.attempt.state

    @property
    def function_modes(self) -> list[VariableTracker]:
        return self.attempt.function_modes

    @property
    def graph(self) -> GraphRecorder:
        return self.attempt.graph

    def line(self) -> UserLine:
        """This frame's current line."""
        raise NotImplementedError

    def where(self) -> UserLine | None:
        for frame in reversed(self.attempt.frames):
            if not skip.is_library_file(frame.code.co_filename):
                return frame.line()
        return self.attempt.frames[0].line() if self.attempt.frames else None

    def stack_lines(self) -> tuple[UserLine, ...]:
        """The lines of all running frames, outermost first."""
        return tuple(frame.line() for frame in self.attempt.frames)

    # -- values and guards
    def wrap(self, node: Node) -> VariableTracker:
        tracker: VariableTracker | None = node.tracker
        if tracker is None:
            tracker = node.tracker = LazyVariable(node)
        return tracker

    def known(self, value: object) -> VariableTracker | None:
        met = self.attempt.by_id.get(id(value))
        return None if met is None else met[1]

    def meet(self, value: object, tracker: VariableTracker) -> None:
        self.attempt.by_id[id(value)] = (value, tracker)

    def wrap_now(self, node: Node) -> VariableTracker:
        value = node.peek()
        if value is ABSENT:
            raise AssertionError(f"{node.path} leads nowhere")
        if type(value) in IDENTITY_FREE:
            return wrap_value(self, node)
        known = self.attempt.by_id.get(id(value))
        if known is not None:
            return self._known(node, value, known[1])
        tracker = wrap_value(self, node)
        self.meet(value, tracker)
        return tracker

    def _known(self, node: Node, value: Any, tracker: VariableTracker) -> VariableTracker:
        """The same object by another path: assume that it stays the same object."""
        first = tracker.node
        if first is None:  # met as what a handler or the interpreter knows: nothing was assumed of it yet
            wrap_value(self, node)
        elif first is not node:
            if isinstance(tracker, (ObjectVariable, PythonModuleVariable, ConstantVariable)) or (
                isinstance(tracker, UserFunctionVariable)
                and first.guards
                and first.guards[0].guard.native_op == "IS"
            ):
                for installed in first.guards:
                    self.guard(node, installed.guard)
            else:
                relate(self.root, Same(), (first, node), self.where())
        return tracker

    def guard(self, node: Node, guard: Guard) -> None:
        if not is_installed(node, guard):
            install(node, guard, self.where())

    def guard_absent(self, node: Node) -> None:
        self.guard(node, _IS_ABSENT)

    def guard_length(self, node: Node, length: int) -> None:
        self.guard(node, LengthIs(length))

    def class_node(self, cls: type) -> Node:
        return self.attempt.root.held(cls, cls.__qualname__)

    def cell_of(self, node: Node) -> CellVariable:
        cell = node.peek()
        found = self.attempt.cells.get(id(cell))
        if found is None:
            found = self.attempt.cells[id(cell)] = CellVariable(node)
        return found

    def constant(self, value: object) -> VariableTracker:
        make = CONTAINERS.get(type(value))
        return ConstantVariable(value) if make is None else make(self, value)

    def object(self, value: Any) -> VariableTracker:
        if is_constant_value(value):
            return ConstantVariable(value)
        known = self.attempt.by_id.get(id(value))
        if known is not None:
            return known[1]
        tracker = self._unsourced(value)
        self.meet(value, tracker)
        return tracker

    def _unsourced(self, value: Any) -> VariableTracker:
        if is_a(value, types.FunctionType):
            return UserFunctionVariable(value)
        if is_a(value, type):
            return class_tracker(value, None)
        if is_a(value, types.ModuleType):
            return PythonModuleVariable(value)
        if type(value) is tuple:
            return TupleVariable([self.object(v) for v in value])
        if type(value) is list:
            return ListVariable([self.object(v) for v in value])
        if type(value) is types.MethodType:
            node = self.constant_node(value)
            return self.wrap(node).realize(self)
        if is_a(value, (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)):
            return ObjectVariable(value)
        return self.wrap(self.constant_node(value)).realize(self) if _weakly(value) else ObjectVariable(value)

    def module_name(self) -> str | None:
        found: object = self.globals.get("__name__")
        return found if isinstance(found, str) else None

    def constant_node(self, value: Any) -> Node:
        """A node for an object without a path, held weakly by the entry."""
        return self.attempt.root.held(value, getattr(value, "__qualname__", type(value).__name__))

    def class_variable(self, cls: type) -> VariableTracker:
        """The tracker of a class known by itself."""
        known = self.attempt.by_id.get(id(cls))
        if known is not None:
            return known[1]
        node = None if not (cls.__flags__ & HEAP_TYPE) else self.class_node(cls)
        tracker = class_tracker(cls, node)
        self.meet(cls, tracker)
        return tracker

    def class_of(self, value: VariableTracker) -> VariableTracker:
        known = value.realize(self)
        tracker = self.class_variable(known.get_type())
        if tracker.node is not None:
            tracker.node.reach(known.node)
        return tracker

    def tuple_of(self, items: Sequence[VariableTracker]) -> VariableTracker:
        return TupleVariable(list(items))

    def guard_range(self, node: Node, value: range) -> None:
        self.guard(node, RangeIs(value.start, value.stop, value.step))

    def oracle_attribute(self, ref: TensorRef, name: str, *args: Any, **kwargs: Any) -> Any:
        """A tensor's metadata, by the oracle."""
        return self.attempt.oracle.attribute(ref, name, *args, env=self.attempt.env, **kwargs)

    # -- exceptions and breaks
    @property
    def handled_exception(self) -> VariableTracker | None:
        for frame in reversed(self.attempt.frames):
            if frame.exceptions:
                return frame.exceptions[-1]
        return None

    def raise_(self, exc_type: type[BaseException], *args: Any) -> NoReturn:
        values = [a if isinstance(a, VariableTracker) else self.constant(a) for a in args]
        raise ObservedException(exceptions.new_exception(self, exc_type, values))

    def break_(self, reason: Reason, **fields: Any) -> NoReturn:
        broke = GraphBreak(reason, **fields)
        broke.stack = self.stack_lines()
        raise broke

    def give_up(self, reason: Reason, **fields: Any) -> NoReturn:
        """Break where torch doesn't split but skips the frame."""
        broke = GraphBreak(reason, **fields)
        broke.stack = self.stack_lines()
        raise SkipFrame(reason, broke.message, broke.stack, broke)

    def need_symbols(self) -> NoReturn:
        self.attempt.speculation.symbolic = True
        raise Restart("the frame has symbols")

    def restart(self, why: str) -> NoReturn:
        raise Restart(why)

    # -- the graph
    def graph_input(self, node: Node, ref: TensorRef) -> Any:
        return self.attempt.graph.add_input(node, ref, self.where())

    def graph_node(self, node: Any, value: Any) -> Any:
        graph = self.attempt.graph
        if node.graph is graph.graph:
            return node
        try:
            return graph.own(node, value)
        except Escaped:
            self.break_(reasons.ESCAPED_VALUE)

    @contextmanager
    def function_graph(self, *arguments: VariableTracker, pure: bool = True) -> Iterator[SubgraphRecorder]:
        attempt = self.attempt
        graph, outside, closed = attempt.graph, attempt.outside, attempt.effects.closed
        inner = attempt.graph = SubgraphRecorder(graph)
        if pure:
            held = [value for frame in attempt.frames for value in frame.held()]
            attempt.outside = frozenset(id(value) for value in reachable([*held, *arguments]))
            attempt.effects.closed = lambda what: self.break_(reasons.FUNCTION_SIDE_EFFECT, what=what)
        try:
            yield inner
        finally:
            attempt.graph, attempt.outside, attempt.effects.closed = graph, outside, closed

    def examine(self, fn: Callable[..., Any], *metas: Any) -> Any:
        try:
            return self.attempt.oracle.call("call_function", fn, metas, None, self.attempt.env)
        except (OperatorRaised, DataDependent, UnsupportedOperator) as error:
            self.break_(reasons.OPERATOR_FAILED, call=describe_target(fn), why=str(error))

    def record(
        self,
        op: str,
        target: Any,
        args: Sequence[Any],
        kwargs: dict[str, Any] | None = None,
        function: Any = None,
    ) -> VariableTracker:
        kwargs = kwargs or {}
        if self.attempt.function_modes and getattr(target, "__module__", None) not in OWN_OPERATORS:
            return self.torch_function(op, target, args, kwargs)
        self.state.pop(TAKEN, None)
        known = known_indices(self, target, args)
        try:
            metas = [a.as_meta(self) for a in known]
            named = {k: v.as_meta(self) for k, v in kwargs.items()}
        except Overloaded:
            return self.torch_function(op, target, args, kwargs)
        if self.state.pop(TAKEN, False) and target not in ELEMENTWISE:
            self.break_(reasons.DATA_DEPENDENT_OPERATOR, call=describe_target(target))
        attempt = self.attempt
        outs, before = written_out(named.get("out"))
        risky = may_raise(target, metas)
        self._may_be_caught(target, risky)
        writes = writes_so_far()
        try:
            if target is getattr and len(metas) == 2:
                result = attempt.oracle.attribute(metas[0], metas[1], env=attempt.env)
            else:
                result = attempt.oracle.call(op, target, metas, named, attempt.env)  # type: ignore[arg-type]
        except OperatorRaised as error:
            raised = error.exc
            if isinstance(raised, TypeError) and holds_symbols([*metas, *named.values()]):
                self.break_(reasons.OPERATOR_FAILED, call=describe_target(target), why=str(raised))
            self.operator_raised(target, raised)
        except DataDependent as error:
            if not error.size and knows_numbers(self, [*args, *kwargs.values()]):
                return self.record(op, target, args, kwargs, function)
            name = "capture_dynamic_output_shape_ops" if error.size else "capture_scalar_outputs"
            if attempt.env is None and getattr(attempt.settings, name):
                self.need_symbols()
            size = reasons.DYNAMIC_SHAPE_OPERATOR
            self.break_(size if error.size else reasons.DATA_DEPENDENT_OPERATOR, call=describe_target(target))
        except UnsupportedOperator as error:
            self.break_(reasons.OPERATOR_FAILED, call=describe_target(target), why=str(error))
        if before != [out.facts.shape for out in outs] or not all(is_contiguous(out.facts) for out in outs):
            self.break_(reasons.RESIZE, call=f"{describe_target(target)} with out=")
        if isinstance(result, PYTHON_VALUES) and target is not getattr:
            self.break_(reasons.PYTHON_RESULT, call=describe_target(target), what=type(result).__name__)
        if named.get("requires_grad") is True:
            self.break_(reasons.CREATES_LEAF, call=describe_target(target))
        node = attempt.graph.call(
            op,
            target,
            [a.as_proxy(self) for a in args],
            {k: v.as_proxy(self) for k, v in kwargs.items()},
            self.stack_lines(),
            module_stack=self._module_stack(),
            function=function,
        )
        note_hidden_writes(target, metas)
        if writes_so_far() != writes:
            attempt.graph.writers.append(node)
        if risky:
            attempt.graph.raisers.append(node)
        return self.wrap_result(node, result)

    def _may_be_caught(self, target: Any, risky: bool) -> None:
        """Break before an operator that may raise where the frame may go on with that, if running the frame again would
        not give the same: what the graph did before can't be taken back."""
        graph = self.attempt.graph
        if graph.caught and not risky:
            return
        anything = not is_torchs(target)
        if not any(frame.catches(anything) for frame in self.attempt.frames):
            return
        graph.caught = True
        if risky and graph.changes_state():
            self.break_(reasons.RAISE_IN_TRY, call=describe_target(target))

    def _module_stack(self) -> Callable[[], dict[str, Any]] | None:
        modules = tuple(self.attempt.modules)
        if not modules:
            return None
        return lambda: {path: (path, cls) for path, cls in modules}

    def catches(self, anything: bool = False) -> bool:
        """Whether what an operator raises now may be caught by the frame; one of the user's may raise anything."""
        raise NotImplementedError

    def covered(self) -> bool:
        """Whether an exception raised in the frame now meets a handler of the frame."""
        raise NotImplementedError

    def operator_raised(self, target: Any, error: BaseException) -> NoReturn:
        """An operator raises for the metadata it is given: the traced program raises.

        Where the program may look at the error, only running the operator tells its words: kernels and metadata
        propagation say them differently.
        """
        words_differ = not isinstance(error, (TypeError, AttributeError))
        if words_differ and any(frame.covered() for frame in self.attempt.frames):
            self.break_(
                reasons.OPERATOR_FAILED, call=describe_target(target), why=f"it raises {type(error).__name__}"
            )
        raised = exceptions.new_exception(self, type(error), [self.constant(a) for a in error.args])
        if not isinstance(error, TypeError) or "argument" not in str(error):  # torch counts these as breaks
            self.state[OPERATOR_RAISED] = raised
        raise ObservedException(raised)

    def wrap_result(self, node: Any, value: Any) -> VariableTracker:
        """The tracker of what a recorded operator returns."""
        if isinstance(value, TensorRef):
            known = self.attempt.refs.get(id(value))
            if known is not None:
                return known
            tracker = self.attempt.refs[id(value)] = tensor_tracker(value, node)
            if node is not None and self.attempt.env is not None:
                self.attempt.graph.sized(value.facts.shape, node)
            return tracker
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            if node is not None:
                self.attempt.graph.define(value, node)
            return self._number(value)
        if isinstance(value, torch.Size):
            return SizeVariable([self._number(v) for v in value])
        if isinstance(value, (tuple, list)):
            return self._wrap_sequence(node, value)
        return self.constant(value)

    def _wrap_sequence(self, node: Any, value: Any) -> VariableTracker:
        graph, items = self.attempt.graph, []
        for i, item in enumerate(value):
            part = None  # metadata (strides) has no node: symbols are computed where they are needed
            if node is not None:
                part = graph.call("call_function", operator.getitem, [node, i], {}, self.stack_lines())
            items.append(self.wrap_result(part, item))
        if type(value) is tuple:
            return TupleVariable(items)
        if type(value) is list:
            return ListVariable(items)
        return NamedTupleVariable(type(value), items, self.class_variable(type(value)))

    # -- tensors and symbols
    def wrap_tensor(self, node: Node, value: torch.Tensor) -> VariableTracker:
        ref = self._input_ref(node, value)
        tracker = self.attempt.refs[id(ref)] = tensor_tracker(ref, None, node)
        return tracker

    def _input_ref(self, node: Node, value: torch.Tensor) -> TensorRef:
        self.attempt.graph.meet(node)
        with torch._C.DisableTorchFunctionSubclass():  # it isn't the program that looks at it
            ref: TensorRef = self.attempt.shapes.wrap_tensor(self, node, value)
            self._share_storage(ref, value)
            self._view_of_input(ref, value)
        return ref

    def wrap_subclass(self, node: Node, value: torch.Tensor) -> VariableTracker:
        ref = self._input_ref(node, value)
        ref.facts = ref.facts.replace(cls=torch.Tensor)
        tracker = SubclassTensorVariable(StrippedVariable(node, ref), type(value), node)
        self.attempt.refs[id(ref)] = tracker
        return tracker

    def subclassed(self, plain: TensorVariable, cls: type) -> VariableTracker:
        tracker = self.attempt.refs[id(plain.ref)] = SubclassTensorVariable(plain, cls)
        return tracker

    def _share_storage(self, ref: TensorRef, value: torch.Tensor) -> None:
        """Inputs over one storage are one storage group in the trace too."""
        key = value.untyped_storage()._cdata
        known = self.attempt.storages.get(key)
        if known is None:
            self.attempt.storages[key] = ref.storage
        elif ref.storage is not known:
            ref.storage.members.remove(ref)
            ref.storage = known
            known.members.append(ref)

    def _view_of_input(self, ref: TensorRef, value: torch.Tensor) -> None:
        """A view of another input follows in-place writes to it."""
        base = value._base if value._is_view() else None
        known = None if base is None else self.attempt.by_id.get(id(base))
        if known is not None and isinstance(known[1], TensorVariable):
            ref.base = known[1].ref

    def symbol_for_number(self, node: Node, value: int | float) -> VariableTracker | None:
        self.attempt.graph.meet(node)
        sym = self.attempt.shapes.number(self, node, value)
        return None if sym is None else SymNumberVariable(sym, node)

    def size_of(self, tensor: TensorVariable) -> VariableTracker:
        return SizeVariable([self.size_item(tensor, i) for i in range(len(tensor.ref.facts.shape))])

    def size_item(self, tensor: TensorVariable, index: int) -> VariableTracker:
        size = tensor.ref.facts.shape[index]
        return ConstantVariable(size) if type(size) is int else self._number(size)

    def _number(self, value: Any) -> VariableTracker:
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            self.attempt.graph.asked = True
            return SymNumberVariable(value)
        return ConstantVariable(value)

    def evaluate_symbolic(self, target: Callable[..., Any], operands: list[Any]) -> Any:
        """An operation on symbols and numbers, by the symbolic environment."""
        self.attempt.graph.asked = True
        try:
            return target(*operands)
        except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
            self.raise_(type(error), *error.args)

    def specialize(self, sym: Any) -> Any:
        """The value of a symbol, which the frame then depends on: a guard with the current line."""
        where = self.where()
        try:
            return self.attempt.env.specialize(sym, where)
        except DataDependent:
            if isinstance(sym, torch.SymBool):
                self.break_(reasons.DATA_DEPENDENT_BRANCH, opname="if")
            self.break_(reasons.SCALAR_OUTPUT, call=self.attempt.env.spelled(sym))

    # -- side effects
    def mutated(self, value: VariableTracker) -> None:
        outside = self.attempt.outside
        if outside is not None and (value.node is not None or id(value) in outside):
            self.break_(reasons.FUNCTION_SIDE_EFFECT, what=value.describe())
        if value.node is not None or not self.is_new(value):
            self.attempt.effects.mutated(value)

    def is_new(self, value: VariableTracker) -> bool:
        return value.node is None and not isinstance(value, (PythonModuleVariable, ObjectVariable))


def _weakly(value: object) -> bool:
    try:
        weakref.ref(value)
    except TypeError:
        return False
    return True


def describe_target(target: Any) -> str:
    """An operator's name for messages."""
    if isinstance(target, str):
        return f"Tensor.{target}"
    module = getattr(target, "__module__", None) or ""
    name = getattr(target, "__name__", None) or str(target)
    return f"{module}.{name}" if module and module not in ("builtins", "_operator") else str(name)
