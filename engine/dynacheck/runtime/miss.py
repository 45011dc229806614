"""One frame being translated: hand it over, commit what comes of it, tell observers."""

from __future__ import annotations

import time
import traceback
import weakref
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any

from torch import nn

from dynacheck import _C, errors, events, reasons
from dynacheck.bytecode.listing import listing
from dynacheck.config import Config
from dynacheck.events import observers
from dynacheck.graph.state import preserved
from dynacheck.guards import mirror
from dynacheck.runtime import calls, misses
from dynacheck.runtime.capture import GraphHandOver
from dynacheck.runtime.codes import (
    CodeData,
    EntryRecord,
    caller_line,
    code_ref,
    compile_id,
    counted_entries,
    in_scope,
    user_stack,
)
from dynacheck.runtime.dynamic import ShapePolicy
from dynacheck.runtime.engine import engine
from dynacheck.runtime.job import Job
from dynacheck.runtime.regions import info_of
from dynacheck.runtime.switches import switches
from dynacheck.sources import FrameView, is_a
from dynacheck.translate.signals import SkipFrame
from dynacheck.translate.spelling import in_words
from dynacheck.translate.translate import TranslateRequest, Translation, translate


class Miss:
    """A frame that no entry serves and that may be translated; the translation lock is held.

    Args:
        job: the compile.
        func: the frame's function.
        args: the values of its argument slots.
        state: what hangs on its code object.
        data: the runtime's part of that.
        settings: the settings that hold.
    """

    def __init__(
        self,
        job: Job,
        func: FunctionType,
        args: tuple[Any, ...],
        state: _C.CodeState,
        data: CodeData,
        settings: Config,
    ) -> None:
        self.job = job
        self.func = func
        self.args = args
        self.state = state
        self.code: CodeType = func.__code__
        self.data = data
        self.id = compile_id(data)
        self.settings = settings
        self.handover = GraphHandOver(job.backend, self.id, self.code.co_qualname)
        self.started = time.perf_counter()

    def translate(self) -> _C.Entry | bool | None:
        """Translate the frame.

        Returns:
            The entry that serves it; None when it runs as it is, False when all below it does too.

        Raises:
            DynacheckError: what is an error for the user: a break under fullgraph, a backend that raised, a
                broken mark.
        """
        engine.oracle.refresh()
        job = self.job
        policy = ShapePolicy(engine.history, self.settings, job.dynamic, job.isolation)
        strict = engine.fail_on_break.get()
        settings = self.settings
        if job.fullgraph:  # what only the data tells needs no break then, as with torch
            settings = replace(settings, capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True)
        request = TranslateRequest(
            self.func,
            self.args,
            self.handover,
            policy,
            engine.oracle,
            settings,
            job.fullgraph if strict is None else strict,
            was_plain=self.data.plain > 0,
        )
        try:
            with preserved():
                translation = translate(request)
        except SkipFrame as skipped:
            self._skipped(skipped)
            return False if skipped.reason is reasons.AMBIENT_STATE else None
        except errors.BackendError:
            self._tell_backend_failed()
            if not self.settings.suppress_errors:
                raise
            return None
        except errors.InternalError as error:
            self._failed(error)
            return None
        except errors.DynacheckError:
            raise
        except Exception as error:
            self._failed(error)
            return None
        finally:
            switches.look_for_torch()
        return self._commit(translation)

    def _verify_guards(self) -> None:
        """Hold the native verdict of every entry on this frame to the Python one; the new entry is among them."""
        frame = FrameView(self.func, self.args)
        for entry in self.state.entries:
            if isinstance(entry.owner, EntryRecord):
                mirror(entry.owner.guards, frame)

    def _commit(self, done: Translation) -> _C.Entry | None:
        counted = counted_entries(self.state)
        record = EntryRecord(done.guards, self.data.attempts, self.job.isolation, done.kind != "plain")
        if done.broke is not None:
            record.split = (done.broke.reason, done.broke.message, user_stack(done.broke.stack))
        record.signature = misses.signature(self.func, self.args)
        if self.args and is_a(self.args[0], nn.Module):
            record.made_for = weakref.ref(self.args[0])
        if done.graph is not None:
            record.made = done.graph.made
        code = done.code or self.code
        entry = _C.Entry(done.guards.program, code, self.job.region, record, done.broke is not None)
        if not entry.alive:  # an object that was there for the translation alone: the frame runs as it is
            return None
        self._watch(entry, record)
        told = self._events(done, record, counted) if observers.active else []
        self.state.add(entry)
        if self.settings.verify_guards:
            self._verify_guards()
        if record.counted:
            self.data.attempts += 1
            self.data.died = None
            self.data.latest[self.job.isolation] = record.index
            calls.added()
        else:
            self.data.plain += 1
        for event in told:
            observers.emit(event)
        return entry

    def _watch(self, entry: _C.Entry, record: EntryRecord) -> None:
        """Let go of an entry's graph when it dies; one that goes with a guarded object is remembered."""
        owner, data = self.handover.owner, self.data
        let_go = None if owner is None else info_of(self.job.region).keep(owner)

        def died(gone: _C.Entry) -> None:
            if let_go is not None:
                let_go(gone)
            if record.counted and gone.program is not None and not gone.program.alive:
                data.died = record

        entry.on_death(died)

    def _events(self, done: Translation, record: EntryRecord, counted: list[_C.Entry]) -> list[events.Event]:
        """What there is to tell, worked out before the entry is there."""
        ref, call = code_ref(self.code), calls.number()
        told: list[events.Event] = []
        captured = self.handover.captured
        if captured is not None and done.graph is not None:
            inputs = tuple(spec.node.path for spec in captured.inputs)
            nodes, seconds = len(captured.graph.nodes), self.handover.seconds
            told.append(
                events.GraphCaptured(
                    self.id, ref, self.job.backend.name, nodes, inputs, captured.code, seconds, call=call
                )
            )
        if record.split is not None:
            reason, message, stack = record.split
            message = in_words(message, self.code)
            told.append(events.GraphBroke(self.id, ref, reason.id, message, reason.hint, stack, call=call))
        for sentence, lines in done.cautions.items():
            told.append(events.Cautioned(ref, sentence, user_stack(lines), call=call))
        latest, code = self.data.latest.get(self.job.isolation), done.code
        explained = self._explained(counted)
        if not record.counted:
            reason = reasons.NO_TENSOR_OPERATIONS
            told.append(events.FrameSkipped(ref, reason.id, reason.message(), misses=explained, call=call))
            return told
        told.append(
            events.EntryAdded(
                self.id,
                ref,
                record.index,
                done.graph is not None,
                latest is not None,
                explained,
                caller_line(),
                tuple(done.guards.texts()),
                time.perf_counter() - self.started,
                listing=None if code is None else (lambda: listing(code)),
                tree=done.guards.tree,
                call=call,
            )
        )
        return told

    def _explained(self, counted: list[_C.Entry]) -> tuple[events.EntryMiss, ...]:
        """Why no entry of the compile's scope served the frame."""
        scope = in_scope(counted, self.job.isolation)
        died = self.data.died
        if died is not None and died.isolation != self.job.isolation:
            died = None
        latest = self.data.latest.get(self.job.isolation)
        if scope or died is not None:
            return misses.explain(scope, self.job.region, self.func, self.args, died)
        return () if latest is None else (events.EntryMiss(latest, (), True),)

    def _skipped(self, skipped: SkipFrame) -> None:
        """The frame runs as it is; so do all of its code from now on, unless it just raised or called a lazy module."""
        broke, reason = skipped.broke, skipped.reason
        once = reason in (reasons.UNCAUGHT_RAISE, reasons.AMBIENT_STATE)
        if not once:
            self._give_up(reason.id)
        if not observers.active:
            return
        ref, call = code_ref(self.code), calls.number()
        stack = user_stack(skipped.stack)
        if broke is not None:
            why, message = broke.reason, in_words(broke.message, self.code)
            observers.emit(events.GraphBroke(self.id, ref, why.id, message, why.hint, stack, True, call=call))
        caused = broke is not None
        observers.emit(events.FrameSkipped(ref, reason.id, skipped.message, stack, caused, call=call))
        if caused or once:
            observers.emit(events.RanEagerly(ref, "skip", reason.id, call=call))

    def _give_up(self, why: str) -> None:
        """All frames of this code run as they are; the hook is not told while observers want to know of
        each."""
        self.data.given_up = why
        self.state.skip = not observers.active

    def _tell_backend_failed(self) -> None:
        if observers.active:
            error = self.handover.failure
            text = "no callable" if error is None else f"{type(error).__name__}: {error}"
            name = self.job.backend.name
            observers.emit(
                events.BackendFailed(self.id, code_ref(self.code), name, text, call=calls.number())
            )

    def _failed(self, error: Exception) -> None:
        """A fault of the engine: raised where settings say so, else told, and the code runs as it is.

        Raises:
            InternalError: `raise_internal_errors` is set.
        """
        if self.settings.raise_internal_errors:
            if isinstance(error, errors.InternalError):
                raise error
            what = f"{type(error).__name__}: {error}"
            raise errors.InternalError(f"translating {self.code.co_qualname}: {what}") from error
        self._give_up(reasons.INTERNAL.id)
        if observers.active:
            text = "".join(traceback.format_exception(error))
            observers.emit(
                events.InternalFault(
                    code_ref(self.code), f"{type(error).__name__}: {error}", text, call=calls.number()
                )
            )


def observers_changed(active: bool) -> None:
    """While somebody observes, the hook reports frames of code that was given up, and hits."""
    _C.set_hot_list(calls.hit if active else None)
    for state in _C.states():
        data = state.data
        if isinstance(data, CodeData) and data.given_up is not None:
            state.skip = not active
        elif active and state.skip:  # by rule: told again to whom observes now
            state.skip = False
    switches.set("observers", active)


observers.when_changed(observers_changed)
