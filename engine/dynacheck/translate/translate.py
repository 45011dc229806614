"""Translating a frame: attempts until one holds, then code, guards and graph."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

import torch

from dynacheck import errors, reasons
from dynacheck.config import Config
from dynacheck.events import StackLine
from dynacheck.graph.oracle import Oracle
from dynacheck.graph.recorder import CapturedGraph
from dynacheck.graph.state import preserved
from dynacheck.graph.symbolic import SymbolicEnv, forget_environments
from dynacheck.guards import AmbientState, CompiledGuards, Distinct, NotAbsent, SizeExpression, build_program
from dynacheck.guards.base import Installed, install, relate
from dynacheck.guards.held import remembering
from dynacheck.guards.shapes import with_numbers
from dynacheck.handlers.torch_functions import ASKED_WHETHER_COMPILED
from dynacheck.reasons import Reason
from dynacheck.sources import CellContents, DictAttr, FrameView, Global, Local, Node, Root, SlotAttr, UserLine
from dynacheck.translate.breaks import Split
from dynacheck.translate.codegen import Codegen
from dynacheck.translate.frame import Frame
from dynacheck.translate.leaving import look_at, read_what_is_built
from dynacheck.translate.resume import origin
from dynacheck.translate.signals import Restart, SkipFrame, Speculation
from dynacheck.translate.spelling import in_words
from dynacheck.translate.tracing import Attempt
from dynacheck.variables.base import CantRebuild, GraphBreak, LazyVariable, VariableTracker
from dynacheck.variables.carried import CARRIED
from dynacheck.variables.methods import HASHED
from dynacheck.variables.tensor import TensorVariable
from dynacheck.variables.wrap import look_at_kind
from dynacheck.versions import torch_since

MAX_ATTEMPTS = 200
ROOM_FOR_A_BACKEND = 50_000
"""How many objects a backend may make before the garbage collector looks for the first time."""


@dataclass(slots=True)
class TranslateRequest:
    """What to translate, and with what.

    Args:
        func: the function of the frame.
        args: the values of its argument slots.
        compile_graph: hands a finished graph to the backend and gives the constant that runs it.
        shapes: decides which sizes and numbers are symbols.
        oracle: metadata propagation.
        settings: the settings that hold.
        fullgraph: a break is an error.
        was_plain: whether an earlier frame of this code had no operations.
    """

    func: FunctionType
    args: tuple[Any, ...]
    compile_graph: Callable[[CapturedGraph], object]
    shapes: Any
    oracle: Oracle
    settings: Config
    fullgraph: bool = False
    was_plain: bool = False


@dataclass(slots=True)
class Translation:
    """A frame translated.

    Args:
        kind: "entry", or "plain" for a frame that runs to its end without a tensor operation.
        guards: what the translation assumed.
        code: the rewritten code; None for a plain frame.
        graph: the graph; None if it computes nothing.
        broke: the break at which the frame is split, or None.
        root: the trie of the frame's values.
        cautions: what else there is to tell, and where.
    """

    kind: str
    guards: CompiledGuards
    code: CodeType | None = None
    graph: CapturedGraph | None = None
    broke: GraphBreak | None = None
    root: Root | None = None
    cautions: dict[str, tuple[UserLine, ...]] = field(default_factory=dict)


def translate(request: TranslateRequest) -> Translation:
    """Translate a frame.

    Args:
        request: the frame.

    Returns:
        What to run instead of it, and when.

    Raises:
        SkipFrame: the frame must run as it is.
        Unsupported: a break under fullgraph.
        BackendError: the backend raised.
    """
    speculation = Speculation()
    try:
        with remembering():
            return _translate(request, speculation)
    finally:
        if speculation.symbolic:
            forget_environments()


def _translate(request: TranslateRequest, speculation: Speculation) -> Translation:
    ambient = AmbientState.now()
    while True:
        speculation.attempts += 1
        if speculation.attempts > MAX_ATTEMPTS:
            raise errors.InternalError(f"{request.func.__qualname__} was restarted {MAX_ATTEMPTS} times")
        try:
            with preserved():  # traced context managers change ambient state for real
                return _attempt(request, speculation, ambient)
        except Restart:
            continue
        except RecursionError:
            reason = reasons.TOO_DEEP
            raise SkipFrame(reason, reason.message()) from None
        except SkipFrame as skipped:
            if request.fullgraph and skipped.broke is not None:
                broke = skipped.broke
                raise fullgraph_error(broke.reason, broke.message, broke.stack) from None
            raise


def _attempt(request: TranslateRequest, speculation: Speculation, ambient: AmbientState) -> Translation:
    settings = request.settings
    env = None
    if speculation.symbolic:
        env = SymbolicEnv(
            scalar_outputs=settings.capture_scalar_outputs,
            dynamic_output_shapes=settings.capture_dynamic_output_shape_ops,
        )
    view = FrameView(request.func, request.args)
    attempt = Attempt(view, speculation, request.oracle, request.shapes, env, request.fullgraph, settings)
    collecting = gc.isenabled()
    gc.disable()  # an attempt makes much and drops little: the collector would look at all of it again and again
    try:
        return _finished(attempt, request, ambient, collecting)
    except BaseException:
        attempt.root.release()  # torch keeps its symbols, which know their sources: nothing more may hang on those
        raise
    finally:
        attempt.release()
        if collecting:
            gc.enable()


def _collecting(
    compile_graph: Callable[[CapturedGraph], object], on: bool
) -> Callable[[CapturedGraph], object]:
    """The backend, with the garbage collector on if it was: not at once, it would look at all that the attempt has made,
    but when the backend makes as much again."""

    def compiled(graph: CapturedGraph) -> object:
        first, *others = before = gc.get_threshold()
        raised = first and (first + gc.get_count()[0] + ROOM_FOR_A_BACKEND, *others)
        if on and raised:
            gc.set_threshold(*raised)
        if on:
            gc.enable()
        try:
            return compile_graph(graph)
        finally:
            gc.disable()
            if on and gc.get_threshold() == raised:
                gc.set_threshold(*before)

    return compiled


def _finished(
    attempt: Attempt, request: TranslateRequest, ambient: AmbientState, collecting: bool
) -> Translation:
    """Run an attempt to its end."""
    frame = root_frame(attempt, request)
    env = attempt.env
    if env is not None:
        env.locate(frame.where)
    how, value = frame.run_root()
    if how == "return" and attempt.function_modes:  # they would stay on
        reason = reasons.BREAK_NOT_RESUMABLE
        raise SkipFrame(reason, reason.message(why="a torch function mode stays on"), frame.stack_lines())
    codegen = Codegen(frame.code, attempt.graph, frame)
    codegen.own_cells(frame.cells)
    broke: GraphBreak | None = None
    if how == "return":
        if not (computes(attempt, request.was_plain) or _knows_a_module_class(frame)):
            return Translation("plain", build_program(attempt.root, ambient), root=attempt.root)
        if attempt.fullgraph and not attempt.graph.calls and not torch_since(2, 14):
            # torch looks at what came into a whole graph of nothing
            for found in frame.locals.values():
                look_at_kind(frame, found)
        look_at(frame, [value], 1)
        if attempt.graph.undone and isinstance(value.realize(frame), TensorVariable):
            attempt.graph.asked = True  # torch has the input for a result of its graph
    else:
        inst, broke = value
        if request.fullgraph:
            raise fullgraph_error(broke.reason, broke.message, broke.stack)
    try:
        if broke is None:
            read_what_is_built(frame, [value], attempt.effects.items())
            codegen.replay(attempt.effects, [value])
            codegen.load(value)
            codegen.build.return_value()
        else:
            Split(frame, inst, broke, codegen).emit()
    except CantRebuild as error:
        reason = reasons.BREAK_NOT_RESUMABLE
        if broke is None:  # what can't be rebuilt leaves the frame
            broke = GraphBreak(reason, why=error)
            broke.stack = frame.stack_lines()
        raise SkipFrame(reason, reason.message(why=error), frame.stack_lines(), broke) from error
    code, graph, capture = codegen.finish(_collecting(request.compile_graph, collecting))
    inputs = [spec.node for spec in graph.inputs if spec.what == "tensor"]
    if len(inputs) > 1:
        relate(attempt.root, Distinct(), inputs, frame.line())
    _keep_apart(attempt, frame)
    extra = _size_guards(env, frame.code)
    _guard_presence(attempt.root, frame.line())
    guards = build_program(attempt.root, ambient, capture, extra, frame.line())
    kept = None if graph.is_empty else graph
    return Translation("entry", guards, code, kept, broke, attempt.root, attempt.cautions)


def computes(attempt: Attempt, was_plain: bool) -> bool:
    """Whether a frame that ran to its end is rewritten: one without operations runs as it is.

    Asking for a symbol, computing with symbols or a change of grad mode that is undone at once is one, unless the code
    ran as it is before: torch leaves it alone from then on.
    """
    if attempt.graph.calls or attempt.fullgraph or ASKED_WHETHER_COMPILED in attempt.state:
        return True
    return (attempt.graph.asked or attempt.graph.undone) and not was_plain


def _knows_a_module_class(frame: Frame) -> bool:
    """Whether a local is a class of modules, looked at or imported: torch keeps an entry for such a frame."""
    return any(
        isinstance(c, type) and issubclass(c, torch.nn.Module) for c in map(_known, frame.locals.values())
    )


def _known(local: VariableTracker) -> Any:
    """The object that a local is, unless it is an argument."""
    if isinstance(local, LazyVariable) and local.node is not None:
        return None if isinstance(local.node.accessor, Local) else local.node.peek()
    return getattr(local, "value", None)


def _keep_apart(attempt: Attempt, frame: Frame) -> None:
    """Assume that objects the frame writes to stay other objects than those of their type that it reads: a write to
    one that turned out to be another would be lost in what was read of that one. So do keys of sets and dicts."""
    hashed = list(attempt.state.get(HASHED, ()))
    if len(hashed) > 1:
        relate(attempt.root, Distinct(), hashed, frame.line())
    written = {item.get_type() for item in attempt.effects.items() if isinstance(item, VariableTracker)}
    if not written:
        return
    apart: dict[type, list[Node]] = {}
    for _, tracker in attempt.by_id.values():
        if tracker.node is not None and not tracker.is_constant() and tracker.get_type() in written:
            apart.setdefault(tracker.get_type(), []).append(tracker.node)
    for nodes in apart.values():
        if len(nodes) > 1:
            relate(attempt.root, Distinct(), nodes, frame.line())


MAY_BE_MISSING = (Global, DictAttr, SlotAttr, CellContents)
"""How names and attributes are reached."""


def _guard_presence(top: Node | Root, line: UserLine) -> None:
    """Names and attributes that were loaded and never looked at have to be there all the same."""
    for node in top.children.values():
        tracker = node.tracker
        if node.children:
            _guard_presence(node, line)
        elif (
            isinstance(node.accessor, MAY_BE_MISSING)
            and isinstance(tracker, LazyVariable)
            and tracker.real is None
            and not node.guards
        ):
            install(node, NotAbsent(), line)


def _size_guards(env: SymbolicEnv | None, frame: CodeType) -> list[Installed]:
    if env is None:
        return []
    env.freeze()
    for violation in env.violations():
        raise errors.make(errors.ConstraintViolationError, in_words(str(violation), frame))
    found = [
        Installed(
            SizeExpression(g.program, with_numbers(g.program, [n.peek() for n in g.nodes])), g.nodes, g.line
        )
        for g in env.guard_expressions()
    ]
    for installed in found:
        values = [node.peek() for node in installed.nodes]
        if not installed.guard.check(values):  # about unbacked sizes, which the trace never looked at
            raise errors.make(errors.ConstraintViolationError, in_words(_broken(installed, values), frame))
    return found


def _broken(installed: Installed, values: list[Any]) -> str:
    """What a condition on sizes marked unbacked is, and what the sizes are."""
    paths = [node.user_path for node in installed.nodes]
    change = installed.guard.changes(values, paths)[0]
    now = change.now if isinstance(change.now, dict) else {f"{change.detail} of {paths[0]}": change.now}
    sizes = ", ".join(f"{name} is {value}" for name, value in now.items())
    where = f", assumed at {installed.where}" if installed.where is not None else ""
    return (
        f"{installed.guard.text(paths)} doesn't hold: {sizes}{where}; "
        "sizes marked unbacked are held to what marks and checks say of them"
    )


def root_frame(attempt: Attempt, request: TranslateRequest) -> Frame:
    """The frame that the hook handed in, with its arguments as lazy locals."""
    func = request.func
    came = origin(func.__code__)
    attempt.state[CARRIED] = frozenset() if came is None else came.carried
    frame = Frame(attempt, func.__code__, {}, func.__globals__, None)
    for index, name in enumerate(frame.decoded.argument_names):
        frame.locals[name] = frame.wrap(attempt.root.local(name, index))
    return frame


def fullgraph_error(reason: Reason, message: str, stack: Iterable[UserLine | StackLine]) -> Exception:
    """The error of a break under fullgraph: reason, hint, the user's stack as tracebacks show it."""
    text = f"graph break under fullgraph=True: {reasons.break_text(reason, message, stack)}"
    return errors.make(errors.Unsupported, text, reason=reason.id)
