"""What the frame hook calls when no entry serves a frame: decide, translate, hand over, commit."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from dynacheck import _C, config, errors, events
from dynacheck.backends.contract import Backend
from dynacheck.events import observers
from dynacheck.graph.state import preserved
from dynacheck.handlers import skip
from dynacheck.runtime.capture import GraphHandOver
from dynacheck.runtime.codes import (
    CodeData,
    EntryRecord,
    caller_line,
    code_ref,
    compile_id,
    counted_entries,
    in_scope,
    stack_lines,
)
from dynacheck.runtime.dynamic import ShapePolicy
from dynacheck.runtime.engine import engine
from dynacheck.runtime.regions import info_of
from dynacheck.translate.signals import SkipFrame
from dynacheck.translate.translate import Translation, TranslateRequest, translate


@dataclass(slots=True, eq=False)
class Job:
    """One compile: what the frames below a compiled callable are translated with.

    Args:
        backend: where graphs go.
        region: what its entries belong to.
        fullgraph: a break is an error.
        dynamic: torch's `dynamic`.
        isolation: its number if its entries, limit and history are its own.
        limit: its own recompile limit, or None.
    """

    backend: Backend
    region: _C.Region
    fullgraph: bool = False
    dynamic: bool | None = None
    isolation: int | None = None
    limit: int | None = None


class FrameCallback:
    """The hook's callback of one compile.

    Args:
        job: the compile.
    """

    __slots__ = ("job",)

    def __init__(self, job: Job) -> None:
        self.job = job

    def __call__(self, func: FunctionType, args: tuple[Any, ...], state: _C.CodeState) -> Any:
        code = func.__code__
        if code is not INLINE_CODE and skip.why_frame_skipped(code) is not None:
            state.skip = True
            return None
        with engine.lock:
            found = self._serving(func, args, state)
            if found is not None:
                return found
            return Miss(self.job, func, args, state).translate()

    def _serving(self, func: FunctionType, args: tuple[Any, ...], state: _C.CodeState) -> _C.Entry | None:
        """An entry that another thread made meanwhile."""
        for entry in state.entries:
            if entry.region is self.job.region and entry.alive:
                if entry.program is None or entry.program.check(args, func):
                    return entry
        return None


class Miss:
    """One frame that no entry serves, while it is being translated. Lives as long as the callback runs."""

    def __init__(self, job: Job, func: FunctionType, args: tuple[Any, ...], state: _C.CodeState) -> None:
        self.job = job
        self.func = func
        self.args = args
        self.state = state
        self.code: CodeType = func.__code__
        self.data: CodeData = engine.numbers.data(state)
        self.id = compile_id(self.data)
        self.settings = config.snapshot()
        self.handover = GraphHandOver(job.backend, self.id, self.code.co_qualname)
        self.started = time.perf_counter()

    def translate(self) -> _C.Entry | None:
        """The entry that serves the frame, or None when it runs as it is."""
        engine.oracle.refresh()
        policy = ShapePolicy(engine.history, self.job.dynamic, self.job.isolation)
        request = TranslateRequest(
            self.func, self.args, self.handover, policy, engine.oracle, self.settings, self.job.fullgraph
        )
        try:
            with preserved():
                translation = translate(request)
        except SkipFrame as skipped:
            self._skipped(skipped)
            return None
        except errors.BackendError:
            return self._backend_failed()
        except errors.DynacheckError as error:
            if isinstance(error, errors.InternalError):
                return self._failed(error)
            raise
        except Exception as error:
            return self._failed(error)
        return self._commit(translation)

    def _commit(self, done: Translation) -> _C.Entry:
        counted = counted_entries(self.state)
        plain = done.kind == "plain"
        split = None
        if done.broke is not None:
            split = (done.broke.reason, done.broke.message, stack_lines(done.broke.stack))
        record = EntryRecord(done.guards, len(counted), self.job.isolation, not plain, split)
        entry = _C.Entry(
            done.guards.program, done.code or self.code, self.job.region, record, split is not None
        )
        if self.handover.owner is not None:
            info_of(self.job.region).graphs.add(self.handover.owner)
        self.state.add(entry)
        if plain:
            self.data.plain += 1
        else:
            self.data.attempts += 1
        if observers.active:
            self._tell(done, record, counted)
        return entry

    def _tell(self, done: Translation, record: EntryRecord, counted: list[_C.Entry]) -> None:
        ref = code_ref(self.code)
        captured = self.handover.captured
        if captured is not None and done.graph is not None:
            observers.emit(
                events.GraphCaptured(
                    self.id, ref, self.job.backend.name, len(captured.graph.nodes),
                    tuple(spec.node.path for spec in captured.inputs), captured.code, self.handover.seconds,
                )
            )  # fmt: skip
        if record.split is not None:
            reason, message, stack = record.split
            observers.emit(events.GraphBroke(self.id, ref, reason.id, message, reason.hint, stack))
        if record.counted:
            observers.emit(
                events.EntryAdded(
                    self.id, ref, record.index, done.graph is not None, bool(in_scope(counted, self.job.isolation)),
                    (), caller_line(), tuple(done.guards.texts()), time.perf_counter() - self.started,
                )
            )  # fmt: skip

    def _skipped(self, skipped: SkipFrame) -> None:
        broke = skipped.broke
        self.state.skip = True
        if not observers.active:
            return
        ref = code_ref(self.code)
        stack = stack_lines(skipped.stack)
        if broke is not None:
            observers.emit(
                events.GraphBroke(self.id, ref, broke.reason.id, broke.message, broke.reason.hint, stack, True)
            )
        observers.emit(events.FrameSkipped(ref, skipped.reason.id, skipped.message, stack, broke is not None))
        if broke is not None:
            observers.emit(events.RanEagerly(ref, "skip", skipped.reason.id))

    def _backend_failed(self) -> None:
        if observers.active:
            error = self.handover.failure
            text = f"{type(error).__name__}: {error}"
            observers.emit(events.BackendFailed(self.id, code_ref(self.code), self.job.backend.name, text))
        if not self.settings.suppress_errors:
            raise
        return None

    def _failed(self, error: Exception) -> None:
        if self.settings.raise_internal_errors:
            if isinstance(error, errors.InternalError):
                raise error
            what = f"{type(error).__name__}: {error}"
            raise errors.InternalError(f"translating {self.code.co_qualname}: {what}") from error
        self.state.skip = True
        if observers.active:
            text = "".join(traceback.format_exception(error))
            observers.emit(events.InternalFault(code_ref(self.code), f"{type(error).__name__}: {error}", text))
        return None


def inline_call(fn: Any) -> FunctionType:
    """A frame of ours around what has none, or one that is never translated: the entries are this code's.

    Args:
        fn: a C function, an object with `__call__`, or a module whose `forward` is torch's own.
    """

    def inner(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return inner


INLINE_CODE: CodeType = next(c for c in inline_call.__code__.co_consts if isinstance(c, CodeType))
