"""A recorder for the installed torch.compile: what it compiled, where it broke, why it compiled again.

Torch offers structure for all of it, so no log text is parsed: the frame callback, the entry a frame got, the
break hook of its translator, the place that calls the backend, the hook after guards, and the guards with
their values. Most of these are private, so each is tried once a process on a function of five lines; counts
that need one which doesn't answer are None, never 0. Nothing imports torch's compiler before :func:`record`
is entered.

Example:
    >>> with record() as seen:  # doctest: +SKIP
    ...     torch.compile(fn, backend="eager")(x)
    >>> seen.counts  # doctest: +SKIP
    {'graphs': 1, 'graph_breaks': 0, 'recompiles': 0, 'cache_entries': 1}
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import linecache
import os
import sys
import sysconfig
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import BuiltinFunctionType, CodeType, FrameType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

from dynacheck.accessors import instance_dict
from dynacheck.guards.state import AmbientState

from pytest_dynacheck.engines import stock_values as values
from pytest_dynacheck.engines.stock_records import (
    OTHER_THREAD,
    Attempt,
    Break,
    Call,
    Entry,
    Failure,
    Frame,
    Graph,
    Recompile,
    Recorder,
    Taken,
)

__all__ = ["Break", "Call", "Entry", "Frame", "Graph", "Recompile", "Recorder", "record", "silent_hooks"]


class _Thread(threading.local):
    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.call: Call | None = None
        self.region: FrameType | None = None
        self.opening = False
        self.stance = ""
        self.handling: BaseException | None = None
        self.epoch = 0

    def looked_at(self) -> None:
        """The frame whose guards just failed wasn't left to run eagerly."""
        if self.call is not None and self.call.refused:
            self.call.refused.pop()


_here = _Thread()
_lock = threading.RLock()
_recorders: list[tuple[Recorder, bool]] = []
_undo: list[Callable[[], None]] = []
_snapshots: dict[tuple[CodeType, str], Taken] = {}
_given_up: dict[CodeType, Any] = {}
_numbers = itertools.count(1)
_LOOP_OR_BLOCK = ("graph break in loop", "Graph break under GenericContextWrappingVariable")
_silent: frozenset[str] | None = None
_epoch = 0


def _torch(name: str) -> Any:
    return importlib.import_module(f"torch._dynamo.{name}")


def _patch(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(make(original)))
    _undo.append(functools.partial(setattr, owner, name, original))


def _stack_of(error: Any) -> tuple[tuple[str, int, str], ...]:
    stack = getattr(error, "real_stack", None)
    if stack is None:
        stack = importlib.import_module("torch._guards").TracingContext.extract_stack()
    return tuple((frame.filename, frame.lineno or 0, frame.name) for frame in stack)


def _reason(error: Any) -> str:
    """Returns torch's name for a break; a loop or block that can't be resumed is named by what broke it."""
    name = getattr(error, "gb_type", None) or type(error).__name__
    if name not in _LOOP_OR_BLOCK:
        return str(name)
    inner = getattr(error.__cause__ or error.__context__, "gb_type", None)
    return str(
        inner or str(error).partition("\n")[0]
    )  # else torch tells what broke it by the first line only


_OF_C = (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, type)


def _builtin(error: BaseException) -> str | None:
    """Returns the name of the builtin function that torch's translator was at when it gave up, if it was at one."""
    traceback, found = error.__traceback__, None
    while traceback is not None:
        owner = traceback.tb_frame.f_locals.get("self")
        # from its dict: asking a variable for an attribute may trace on
        function = (instance_dict(owner) or {}).get("fn")
        found = function if issubclass(type(function), _OF_C) else found
        traceback = traceback.tb_next
    if found is None and error.__context__ is not None:
        return _builtin(error.__context__)
    return getattr(found, "__name__", None)


@functools.cache
def _is_library(file: str) -> bool:
    """Tells whether a file is torch's, the standard library's or ours, so never a place of the user's."""
    torch = os.path.dirname(str(importlib.import_module("torch").__file__))
    standard, packages = sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")
    ours = os.path.dirname(os.path.dirname(__file__))
    return file.startswith((torch, ours, "<frozen")) or (
        file.startswith(standard) and not file.startswith(packages)
    )


def _user_place(stack: tuple[tuple[str, int, str], ...]) -> tuple[str, int, str]:
    """Returns the user's innermost frame that led to a break, those above torch's callback included."""
    for found in reversed(stack):
        if not _is_library(found[0]):
            return found
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_library(frame.f_code.co_filename):
        frame = frame.f_back
    if _is_library(frame.f_code.co_filename):
        return stack[-1]
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


def _break(code: CodeType, error: Any, message: str, *, skipped: bool = False) -> Break:
    stack = _stack_of(error) or ((code.co_filename, code.co_firstlineno, code.co_name),)
    file, line, _ = stack[-1]
    return Break(
        file, line, _reason(error), message, code.co_name, stack, _user_place(stack), skipped, _builtin(error),
    )  # fmt: skip


def _is_break(error: BaseException) -> bool:
    exc = _torch("exc")
    return isinstance(error, (exc.Unsupported, exc.UserError)) and not getattr(error, "logged", False)


def _watch_frames() -> None:
    convert_frame = _torch("convert_frame")

    def make(original: Any) -> Any:
        def attempt(self: Any, frame: Any, cache_entry: Any, frame_state: Any) -> Any:
            answered = _again(frame.f_code, convert_frame.input_codes)
            if answered is not None:
                return answered
            current = Attempt(frame.f_code, sys._getframe(1), len(_entries(frame.f_code)))
            if any(wants for _, wants in _recorders):
                _watch_guards(self.hooks)
            _here.attempts.append(current)
            _here.looked_at()
            result, started = None, time.perf_counter()
            current.state = AmbientState.now()
            try:
                result = original(self, frame, cache_entry, frame_state)
            except BaseException as error:
                current.error = error
                raise
            finally:
                _here.attempts.pop()
                current.seconds = time.perf_counter() - started
                _finish(current, result)
            if current.gave_up:
                # torch would mark the code, so that nobody sees it run eagerly from now on
                result.apply_to_code = False
                _given_up[frame.f_code] = result
            return result

        return attempt

    _patch(convert_frame.CatchErrorsWrapper, "__call__", make)


def _again(code: CodeType, looked_at: Any) -> Any:
    """What torch answered about a frame that it gave up at a break earlier; None if it is to look at the frame.

    Args:
        code: the frame's.
        looked_at: codes that torch has looked at since it was reset.
    """
    if code not in _given_up:
        return None
    if code not in looked_at:
        del _given_up[code]
        return None
    _here.looked_at()
    for recorder, _ in _recorders:
        recorder.gave_up(code, _here.call)
    return _given_up[code]


def _entries(code: CodeType) -> Sequence[Any]:
    found: Sequence[Any] = importlib.import_module("torch._C._dynamo.eval_frame")._debug_get_cache_entry_list(
        code
    )
    return found


def _watch_translations() -> None:
    convert_frame = _torch("convert_frame")

    def make(original: Any) -> Any:
        def translate(self: Any, *args: Any, **keywords: Any) -> Any:
            current = _here.attempts[-1] if _here.attempts else Attempt(translate.__code__)
            current.tried = True
            try:
                result = original(self, *args, **keywords)
            except Exception as error:
                if _is_break(error) and hasattr(error, "compile_id") and hasattr(error, "real_stack"):
                    current.unlogged = error
                raise
            current.translated = True
            return result

        return translate

    _patch(convert_frame.ConvertFrameAssert, "__call__", make)


def _watch_guards(hooks: Any) -> None:
    """Puts a filter that keeps every guard on torch's hooks, to see the guards with their values."""
    previous = hooks.guard_filter_fn
    if getattr(previous, "dynacheck", False):
        return

    def see(entries: Any) -> Any:
        if _here.attempts:
            current = _here.attempts[-1]
            current.guards = tuple(values.snapshot(entries, functools.partial(_held, current.output)))
            current.guard_texts = values.texts(entries, current.guards)
            for entry in entries:  # torch makes filtered guards again, of a numpy array with another tensor
                entry.orig_guard.obj_weakref = None
        return [True] * len(entries) if previous is None else previous(entries)

    see.dynacheck = True  # type: ignore[attr-defined]
    hooks.guard_filter_fn = see
    _undo.append(functools.partial(setattr, hooks, "guard_filter_fn", previous))


def _held(output: Any, source: Any, kind: str) -> Sequence[int | None] | None:
    """Returns the sizes (or strides) of an input that its entry holds: None for those that may vary.

    Args:
        output: torch's OutputGraph; None if no graph was made, then all are held.
        source: torch's source of a tensor.
        kind: size or stride.
    """
    found = None if output is None else output.input_source_to_sizes_strides.get(source)
    return None if found is None else [n if type(n) is int else n.node.maybe_as_int() for n in found[kind]]


def _watch_breaks() -> None:
    def make(original: Any) -> Any:
        def log_graph_break(
            self: Any, code_options: Any, reason: Any, exc: Any, *args: Any, **keywords: Any
        ) -> Any:
            if not exc.logged and _here.attempts:
                _here.attempts[-1].breaks.append(_break(self.f_code, exc, str(reason)))
            return original(self, code_options, reason, exc, *args, **keywords)

        return log_graph_break

    _patch(_torch("symbolic_convert").InstructionTranslatorBase, "log_graph_break", make)


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _watch_backends() -> None:
    def make(original: Any) -> Any:
        def call_user_compiler(self: Any, gm: Any, example_inputs: Any, *args: Any, **keywords: Any) -> Any:
            if _here.attempts:
                current, nodes = _here.attempts[-1], list(gm.graph.nodes)
                current.output = self
                current.made = values.made_by(nodes)
                ops = tuple(str(node.target) for node in nodes if node.op.startswith("call"))
                inputs = tuple(str(node.target) for node in nodes if node.op == "placeholder")
                started, text = time.perf_counter(), gm.code
                try:
                    return original(self, gm, example_inputs, *args, **keywords)
                finally:
                    seconds = time.perf_counter() - started
                    name = getattr(self.compiler_fn, "compiler_name", None) or _name(self.compiler_fn)
                    current.graphs.append(
                        Graph(current.code.co_name, ops, inputs, text, False, seconds, name)
                    )
            return original(self, gm, example_inputs, *args, **keywords)

        return call_user_compiler

    _patch(_torch("output_graph").OutputGraph, "call_user_compiler", make)


def _watch_recompiles() -> None:
    def make(original: Any) -> Any:
        def reasons(entries: Any, frame: Any, backend: Any, skip_logging: bool = False) -> Any:
            if _here.attempts and not skip_logging:
                _here.attempts[-1].recompile = tuple(
                    _failure(entry, frame.f_code, frame.f_locals, backend) for entry in _each(entries)
                )
            return original(entries, frame, backend, skip_logging)

        return reasons

    _patch(_torch("convert_frame"), "get_and_maybe_log_recompilation_reasons", make)


def _each(entries: Any) -> Iterator[Any]:
    """Yields cache entries: torch has them in a list, until 2.12 chained to the first, which is None without any."""
    if isinstance(entries, list):
        yield from entries
        return
    while entries is not None:
        yield entries
        entries = entries.next


def _failure(entry: Any, code: CodeType, f_locals: Any, backend: Any) -> Failure:
    """Returns why an entry didn't serve this frame: its first failing guard and what else differs."""
    manager, name = entry.guard_manager, str(entry.compile_id)
    invalid = getattr(manager, "invalidation_reason", None)
    known = manager.global_scope or {"G": {}}  # an entry that went with a guarded object has none any more
    scope = {"L": f_locals, "G": known["G"], **(manager.closure_vars or {})}
    if invalid is not None:
        return Failure(name, str(invalid), (), scope, _snapshots.get((code, name)))
    info = manager.check_verbose(f_locals)
    if info.result:
        other = manager.cache_entry.backend != backend
        return Failure(name, "another backend" if other else OTHER_THREAD, other_region=other)
    parts = list(info.verbose_code_parts)
    failed = parts[0] if len(parts) == 1 else next((part for part in parts if _fails(part, scope)), "")
    guard, _, needed = failed.partition("  # ")  # torch appends the user's line
    taken = _snapshots.get((code, name))
    found = () if taken is None else values.changes(taken.values, scope, guard.rstrip(), taken.made)
    return Failure(name, guard.rstrip(), found, scope, taken, needed=needed)


def _fails(part: str, scope: dict[str, Any]) -> bool:
    try:
        return not eval(part, scope)  # a group of guards on sizes: torch gives the group, one of them failed
    except Exception:
        return True


def _watch_hits() -> None:
    eval_frame = _torch("eval_frame")

    def hook(hit: bool) -> bool:
        answer: bool = hit if previous is None else previous(hit)
        call = _here.call
        if call is not None and answer:
            call.hits += 1
        elif call is not None:
            caller = sys._getframe(1)
            call.refused.append((caller.f_code, caller.f_lasti))
        return answer

    previous = eval_frame.set_guard_complete_hook(hook)
    _undo.append(lambda: eval_frame.set_guard_complete_hook(previous))


def _watch_calls() -> None:
    """Brackets calls: a region asks the stance, switches the callback, and switches it back from the same frame.

    A disabled function asks too, and may switch nothing.
    """
    eval_frame = _torch("eval_frame")

    def make_stance(original: Any) -> Any:
        def callback_from_stance(callback: Any) -> Any:
            if _here.epoch != _epoch:  # a region that was open when an earlier recording ended
                _here.epoch, _here.call, _here.region = _epoch, None, None
            chosen = original(callback)
            _here.opening = callback is not None
            _here.stance = "force_eager" if callback is not None and chosen is None else ""
            return chosen

        return callback_from_stance

    def make_switch(original: Any) -> Any:
        def maybe_set_eval_frame(callback: Any) -> Any:
            opening, _here.opening = _here.opening, False
            caller, call = sys._getframe(1), _here.call
            if call is None and opening:
                call = Call(next(_numbers), caller.f_locals.get("fn"), stance=_here.stance)
                _here.call, _here.region = call, caller
                _here.handling = sys.exc_info()[1]
                for recorder, _ in _recorders:
                    recorder.opened(call, caller)
            elif call is not None and caller is _here.region:
                _here.call = _here.region = None
                raised = sys.exc_info()[1] is not _here.handling
                for recorder, _ in _recorders:
                    recorder.closed(call, raised)
            return original(callback)

        return maybe_set_eval_frame

    _patch(eval_frame, "_callback_from_stance", make_stance)
    _patch(eval_frame, "_maybe_set_eval_frame", make_switch)


def _finish(attempt: Attempt, result: Any) -> None:
    """Turns a finished attempt into records for every recorder."""
    code, call = attempt.code, _here.call
    guarded = None if result is None else result.guarded_code
    if attempt.error is not None:
        attempt.breaks.clear()  # nothing resumes or goes on eagerly after an error
    elif attempt.unlogged is not None:
        attempt.breaks.append(_break(code, attempt.unlogged, str(attempt.unlogged), skipped=True))
    if guarded is not None:
        if attempt.recompile is None and len(_entries(code)) > attempt.entries_before:
            attempt.recompile = (Failure("", OTHER_THREAD),)
        attempt.entry = Entry(code, str(guarded.compile_id), bool(attempt.graphs))
        attempt.graphs = [replace(graph, kept=True) for graph in attempt.graphs]
        _snapshots[code, attempt.entry.compile_id] = Taken(attempt.guards, attempt.state, attempt.made)
        if call is not None:
            call.added += 1
    added = attempt.entry is not None
    strategy = getattr(result, "frame_exec_strategy", None)
    attempt.frame = Frame(
        code,
        attempt.tried,
        attempt.translated,
        added,
        given_up=not added and bool(attempt.breaks) and attempt.error is None,
        limit=type(attempt.error).__name__ == "FailOnRecompileLimitHit"
        or (not added and getattr(getattr(strategy, "cur_action", None), "name", "") == "RUN_ONLY"),
        skip_reason=getattr(result, "skip_reason", None),
    )
    for recorder, _ in _recorders:
        recorder.add(attempt, call)
    attempt.output = attempt.caller = attempt.recompile = None


_HOOKS: dict[str, Callable[[], None]] = {
    "frames": _watch_frames,
    "translations": _watch_translations,
    "breaks": _watch_breaks,
    "graphs": _watch_backends,
    "recompiles": _watch_recompiles,
    "hits": _watch_hits,
    "calls": _watch_calls,
}

_PROBE = """
def probe(x):
    y = x + 1
    graph_break()
    return y * 2
"""


def _install() -> frozenset[str]:
    """Installs every hook; returns the names of those this torch doesn't have."""
    global _epoch
    _epoch += 1
    missing = set()
    for name, install in _HOOKS.items():
        try:
            install()
        except (ImportError, AttributeError, TypeError):
            missing.add(name)
    return frozenset(missing)


def _remove() -> None:
    while _undo:
        _undo.pop()()
    _snapshots.clear()
    _leave(_given_up)
    _given_up.clear()


def _leave(given_up: dict[CodeType, Any], *, seen: bool = False) -> None:
    """Marks codes as torch marks what it gave up, or takes the mark off them, so that they are seen to run."""
    looked_at = _torch("convert_frame").input_codes if given_up else ()
    for code, answer in given_up.items():
        if code in looked_at:
            kinds = _torch("types")
            default = kinds.FrameExecStrategy(kinds.FrameAction.DEFAULT, kinds.FrameAction.DEFAULT)
            _torch("eval_frame").set_code_exec_strategy(code, default if seen else answer.frame_exec_strategy)


def _probe(missing: frozenset[str]) -> frozenset[str]:
    """Compiles five lines under the installed hooks; returns the names of those that didn't tell it right."""
    torch = importlib.import_module("torch")
    dynamo, utils = importlib.import_module("torch._dynamo"), _torch("utils")
    names: dict[str, Any] = {"graph_break": dynamo.graph_break}
    place = "<dynacheck probe>"  # with its source, else torch wraps it as something without any
    linecache.cache[place] = (len(_PROBE), None, _PROBE.splitlines(keepends=True), place)
    exec(compile(_PROBE, place, "exec"), names)
    kept = {name: Counter(found) for name, found in utils.counters.items()}
    seen = Recorder()
    _recorders.append((seen, True))
    settings = {"error_on_recompile": False, "recompile_limit": 8, "disable": False, "suppress_errors": False}
    try:
        with dynamo.config.patch(settings), torch.compiler.set_stance("default"), torch.device("cpu"):
            compiled = torch.compile(names["probe"], backend=lambda gm, inputs: gm.forward)
            for dtype in (torch.float32, torch.float32, torch.float64):
                compiled(torch.ones(2, dtype=dtype))
    finally:
        _recorders.remove((seen, True))
        utils.counters.clear()
        utils.counters.update(kept)
    told = {
        "frames": seen.entries == 4 and seen.max_entries == 2,
        "translations": seen.raw["translated"] == 4,
        "graphs": [len(graph.ops) for graph in seen.graphs] == [1, 1, 1, 1],
        "breaks": [found.line for found in seen.breaks] == [4, 4],
        "recompiles": [len(found.guards) for found in seen.recompiles] == [1, 1],
        "hits": len(seen.calls) > 1 and seen.calls[1].hits == 2,
        "calls": len(seen.calls) == 3,
    }
    return missing | {name for name, answered in told.items() if not answered}


def silent_hooks() -> frozenset[str]:
    """Returns the hooks that don't answer on this torch; empty when every count is known."""
    with record() as seen:
        return seen.silent


@contextlib.contextmanager
def record(
    *, compare_values: bool = True, make: Callable[[frozenset[str]], Recorder] = Recorder
) -> Iterator[Recorder]:
    """Records what torch.compile does in this process, in all threads, until the context is left.

    Args:
        compare_values: also keep what every guarded value was, so that a recompile tells then and now. Costs
            about a fifth of a capture.
        make: makes the recorder from the hooks that don't answer.

    Yields:
        The recorder, which fills while the block runs.
    """
    global _silent
    with _lock:
        missing = _install() if not _recorders else frozenset()
        if _silent is None:
            _silent = _probe(missing)
        recorder = make(_silent)
        item = (recorder, compare_values)
        _recorders.append(item)
    try:
        yield recorder
    finally:
        with _lock:
            _recorders[:] = [other for other in _recorders if other is not item]
            if not _recorders:
                _remove()


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Torch is as it is when nobody records, until the block ends; recorders then go on with what they have."""
    with _lock:
        waiting, snapshots, given_up = list(_recorders), dict(_snapshots), dict(_given_up)
        _recorders.clear()
        if waiting:
            _remove()
    try:
        yield
    finally:
        with _lock:
            if waiting and not _recorders:
                _install()
            _recorders[:0] = waiting
            _snapshots.update(snapshots)
            _given_up.update(given_up)
            _leave(given_up, seen=True)
