"""What the frame hook calls when no entry serves a frame: leave it alone, refuse it, or have it
translated."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

import torch

from dynacheck import _C, config, errors, events, interop, reasons
from dynacheck.events import observers
from dynacheck.handlers import skip
from dynacheck.runtime import calls, limits, misses
from dynacheck.runtime.codes import CodeData, EntryRecord, code_ref, compile_id, counted_entries, in_scope
from dynacheck.runtime.dynamic import ShapePolicy
from dynacheck.runtime.engine import engine
from dynacheck.runtime.job import INLINE_CODE, Job
from dynacheck.runtime.miss import Miss
from dynacheck.runtime.relevance import concerns_tensors
from dynacheck.runtime.stance import stances
from dynacheck.translate.resume import origin
from dynacheck.translate.translate import fullgraph_error


class FrameCallback:
    """The hook's callback of one compile.

    Args:
        job: the compile.
    """

    __slots__ = ("job",)

    def __init__(self, job: Job) -> None:
        self.job = job

    def __call__(
        self, func: FunctionType, args: tuple[Any, ...], state: _C.CodeState
    ) -> _C.Entry | bool | None:
        """Decide about a frame.

        Args:
            func: its function.
            args: the values of its argument slots.
            state: what hangs on its code object.

        Returns:
            The entry that serves it; None to run it as it is; False to run it, and all below, with existing
            entries only.
        """
        code = func.__code__
        if _left_alone(func, args, state):
            return None
        data = engine.numbers.data(state)
        if data.given_up is not None:
            if observers.active:
                observers.emit(events.RanEagerly(code_ref(code), "skip", data.given_up, call=calls.number()))
            return None
        if code is not self.job.root and not concerns_tensors(func, args):
            return None
        if _ambient_mode(func):
            return None
        return _Decision(self.job, func, args, state, data).answer()


def _left_alone(func: FunctionType, args: tuple[Any, ...], state: _C.CodeState) -> bool:
    """Frames that are never translated, by rule or because they are disabled; marked so that the hook
    knows."""
    code = func.__code__
    if code is INLINE_CODE:
        return False
    if (found := origin(code)) is not None and found.as_is:
        state.skip = True
        return True
    why = skip.why_frame_skipped(code, args)
    if interop.is_torch_disabled(func):
        # torch's own wrapper runs all below it as it is; a function that bears the mark itself is left out
        # alone
        recursive = func.__dict__.get("_torchdynamo_disable_recursive", why is not None)
        if recursive:
            state.skip_recursive = True
        else:
            state.skip = True
        _tell_left_alone(code, reasons.DISABLED, what=func.__qualname__)
        return True
    if why is not None:
        state.skip = skip.why_file_listed(code.co_filename) is None  # for good, whatever the settings
        _tell_left_alone(code, reasons.SKIP_FILE, file=code.co_filename, what=why)
        return True
    return False


def _tell_left_alone(code: CodeType, reason: reasons.Reason, **fields: object) -> None:
    if observers.active:
        text = reason.message(**fields)
        observers.emit(events.FrameLeftAlone(code_ref(code), reason.id, text, call=calls.number()))


def _ambient_mode(func: FunctionType) -> bool:
    """Modes and transforms that a translated frame would not see: the frame runs as it is, this time."""
    if torch._C._len_torch_dispatch_stack():
        what = "a TorchDispatchMode"
    elif torch._C._functorch.peek_interpreter_stack() is not None:
        what = "a function transform"
    else:
        return False
    if observers.active:
        reason = reasons.AMBIENT_STATE
        text = reason.message(what=what)
        observers.emit(events.FrameSkipped(code_ref(func.__code__), reason.id, text, call=calls.number()))
    return True


class _Decision:
    """Whether one frame is translated."""

    def __init__(
        self, job: Job, func: FunctionType, args: tuple[Any, ...], state: _C.CodeState, data: CodeData
    ) -> None:
        self.job = job
        self.func = func
        self.args = args
        self.state = state
        self.data = data

    def answer(self) -> _C.Entry | bool | None:
        stance = stances.current().name
        if stance != "default":
            answer = self._by_stance(stance)
            if answer is not True:
                return answer
        if self._over_limit():
            return False
        with engine.lock:
            serving = self._serving()
            if serving is not None:
                return serving
            if self._over_limit():  # reached while waiting for the lock
                return False
            counted = counted_entries(self.state)
            if config.get("error_on_recompile") and in_scope(counted, self.job.isolation):
                raise self._recompile_error("error_on_recompile is set", counted)
            if self.data.plain >= limits.recompile_limit(
                self.job.limit
            ):  # never has tensor operations, however often it changes
                return None
            miss = Miss(self.job, self.func, self.args, self.state, self.data, config.snapshot())
            return miss.translate()

    def _serving(self) -> _C.Entry | None:
        """An entry that another thread made meanwhile.

        Raises:
            Unsupported: a fullgraph call that an entry ending in a graph break would serve.
        """
        for entry in self.state.entries:
            if entry.region is not self.job.region or not entry.alive:
                continue
            if entry.program is None or entry.program.check(self.args, self.func):
                record = entry.owner
                assert isinstance(record, EntryRecord)
                if record.split is not None and self.job.fullgraph:
                    raise fullgraph_error(*record.split)
                calls.hit(entry)
                return entry
        return None

    def _explained(self, counted: list[_C.Entry]) -> tuple[events.EntryMiss, ...]:
        return misses.explain(in_scope(counted, self.job.isolation), self.job.region, self.func, self.args)

    # -- stances
    def _by_stance(self, stance: str) -> bool | None:
        """What a stance other than the default makes of the frame; True: translate it."""
        if stance == "fail_on_recompile":
            counted = counted_entries(self.state)
            if self.data.plain and not counted:
                return None
            raise self._recompile_error("the stance is 'fail_on_recompile'", counted)
        if stance == "eager_then_compile":
            if self.data.seen:
                return True
            self.data.seen = True
            settings = config.snapshot()
            policy = ShapePolicy(engine.history, settings, self.job.dynamic, self.job.isolation)
            policy.observe(self.func, self.args)
        if observers.active:
            counted = counted_entries(self.state)
            explained = self._explained(counted) if counted else ()
            told, ref = reasons.STANCE.message(stance=stance), code_ref(self.func.__code__)
            observers.emit(
                events.RanEagerly(ref, "stance", reasons.STANCE.id, explained, told, call=calls.number())
            )
        return None if stance == "eager_then_compile" else False

    def _recompile_error(self, why: str, counted: list[_C.Entry]) -> errors.DynacheckError:
        code = code_ref(self.func.__code__)
        what = "compiled again" if counted else "compiled"
        lines = "\n".join(f"    {line}" for line in misses.guard_lines(self._explained(counted)))
        text = f"{code.qualname} ({code.file}:{code.line}) would be {what}, but {why}"
        return errors.make(errors.RecompileError, f"{text}\n{lines}" if lines else text)

    # -- limits
    def _over_limit(self) -> bool:
        """Whether the frame is refused for a limit.

        Raises:
            FailOnRecompileLimitHit: where that is an error.
        """
        if not self.state.entries:
            return False
        counted = counted_entries(self.state)
        scope = in_scope(counted, self.job.isolation)
        hit = limits.limit_reached(len(scope), len(counted), self.job.limit)
        if hit is None:
            return False
        name, limit = hit
        code = code_ref(self.func.__code__)
        first = (self.job.isolation, name) not in self.data.warned
        fails = self.job.fullgraph or config.get("fail_on_recompile_limit_hit")
        explained = self._explained(counted) if first or fails or observers.active else ()
        if first:
            self.data.warned.add((self.job.isolation, name))
            limits.warn(limits.message(name, limit, code, explained))
            if observers.active:
                observers.emit(
                    events.LimitReached(
                        compile_id(self.data), code, name, limit, explained, call=calls.number()
                    )
                )
        if fails:
            raise errors.make(errors.FailOnRecompileLimitHit, limits.message(name, limit, code, explained))
        if observers.active:
            observers.emit(events.RanEagerly(code, "limit", reasons.LIMIT.id, explained, call=calls.number()))
        return True
