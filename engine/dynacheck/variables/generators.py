"""Generators made in the frame, as CPython's `Objects/genobject.c` runs them."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Final, Literal, NoReturn, Protocol, TypeAlias

from dynacheck.bytecode.decode import decode
from dynacheck.reasons import FRAME_INSPECTION
from dynacheck.variables import abstract, exceptions
from dynacheck.variables.base import CantRebuild, ObservedException, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.exceptions import ExceptionVariable
from dynacheck.variables.iterators import IteratorVariable
from dynacheck.variables.methods import BuiltinMethodVariable
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.versions import PY312, PY313

Step: TypeAlias = tuple[Literal["yield", "return"], VariableTracker]
"""What a generator did when it was resumed."""

METHODS: Final = ("send", "throw", "close", "__next__", "__iter__")


class SuspendedFrame(Protocol):
    """A generator's frame between two resumptions. Exceptions leave as ObservedException."""

    @property
    def code(self) -> types.CodeType: ...

    def resume(self, value: VariableTracker) -> Step:
        """Go on with the value as result of the `yield`."""

    def throw(self, exception: ExceptionVariable) -> Step:
        """Raise the exception at the `yield`."""

    def delegate(self) -> VariableTracker | None:
        """The iterator of the `yield from` the frame is suspended in."""

    def finish_delegate(self, value: VariableTracker) -> Step:
        """End that `yield from` with a value and go on."""

    def in_block(self) -> bool:
        """Whether it stands in a `try` or `with`."""

    def held(self) -> list[VariableTracker]:
        """The trackers it holds."""

    def original_call(self) -> tuple[VariableTracker, list[VariableTracker], dict[str, VariableTracker]]:
        """The call that made the frame, while it hasn't started: function, arguments, keywords."""


class GeneratorVariable(IteratorVariable):
    """A generator made in the frame. Invariant: `frame` is suspended unless `running`; None once finished.

    Args:
        frame: the frame it runs.
        names: what its `__name__` and `__qualname__` are: those that its function has now.
    """

    __slots__ = ("frame", "names", "running", "started", "stopped_with")
    python_type = types.GeneratorType

    def __init__(self, frame: SuspendedFrame, names: dict[str, VariableTracker]) -> None:
        super().__init__()
        self.names = names
        self.frame: SuspendedFrame | None = frame
        self.started = False
        self.running = False
        self.stopped_with: VariableTracker | None = None
        """What the generator returned, for the StopIteration that tells it."""

    # -- running
    def _step(self, tx: Tracer, action: Callable[[], Step]) -> Step:
        self.running = self.started = True
        try:
            step = action()
        except ObservedException as observed:
            self.frame = None
            if abstract.raised(observed, StopIteration):
                self._stop_iteration_leaves(tx, observed)
            raise
        finally:
            self.running = False
        if step[0] == "return":
            self.frame = None
            self.stopped_with = step[1]
        return step

    def _stop_iteration_leaves(self, tx: Tracer, observed: ObservedException) -> NoReturn:
        """PEP 479: a StopIteration that leaves the generator's body is an error."""
        error = exceptions.stop_iteration_left(tx, observed.exception)
        raise ObservedException(error) from None

    def _idle_frame(self, tx: Tracer) -> SuspendedFrame | None:
        """The frame, if there is one to go on with."""
        if self.running:
            tx.raise_(ValueError, "generator already executing")
        return self.frame

    def resume(self, tx: Tracer, value: VariableTracker) -> Step:
        """`send(value)`, with the return told as a step instead of a StopIteration.

        Args:
            tx: the tracer.
            value: the result of the `yield` the generator is suspended at.

        Returns:
            What it yielded or returned; a finished generator returns None.
        """
        frame = self._idle_frame(tx)
        if not self.started and frame is not None and not abstract.is_none(tx, value):
            tx.raise_(TypeError, "can't send non-None value to a just-started generator")
        if frame is None:
            return "return", tx.constant(None)
        return self._step(tx, lambda: frame.resume(value))

    def throw(self, tx: Tracer, exception: ExceptionVariable) -> Step:
        """Raise an exception where the generator is suspended; a `yield from` hands it on."""
        frame = self._idle_frame(tx)
        if frame is None or not self.started:
            self.frame = None
            self.started = True
            raise ObservedException(exception)
        return self._step(tx, lambda: _throw_into(tx, frame, exception))

    def close(self, tx: Tracer) -> VariableTracker:
        """`close()`: GeneratorExit at the `yield`, which must not be answered with another value."""
        frame = self._idle_frame(tx)
        none = tx.constant(None)
        if frame is None or not self.started:
            self.frame = None
            self.started = True
            return none
        leaving = exceptions.make_exception(tx, GeneratorExit)
        try:
            kind, value = self._step(tx, lambda: _throw_into(tx, frame, leaving))
        except ObservedException as observed:
            if abstract.raised(observed, GeneratorExit):
                return none
            raise
        if kind == "yield":
            tx.raise_(RuntimeError, "generator ignored GeneratorExit")
        return value if PY313 else none

    def suspended_in_block(self) -> bool:
        """Whether something of its code runs when it is closed."""
        return self.started and not self.running and self.frame is not None and self.frame.in_block()

    # -- slots
    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        kind, value = self.resume(tx, tx.constant(None))
        return value if kind == "yield" else None

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name in METHODS:
            return BuiltinMethodVariable(self, name)
        if name == "gi_code" and self.frame is not None:
            return tx.constant(self.frame.code)
        if name == "gi_running":
            return tx.constant(self.running)
        if name == "gi_suspended":
            return tx.constant(self.started and not self.running and self.frame is not None)
        if name == "gi_yieldfrom":
            found = None if self.frame is None or self.running or not self.started else self.frame.delegate()
            return tx.constant(None) if found is None else found
        if name in self.names:
            return self.names[name]
        if name == "gi_frame":
            tx.break_(FRAME_INSPECTION, call="gi_frame")
        if not hasattr(types.GeneratorType, name):
            tx.raise_(AttributeError, f"'generator' object has no attribute {name!r}")
        return super().tp_getattro(tx, name)

    def tp_setattro(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        if hasattr(types.GeneratorType, name):
            self.unmodelled(tx, f"writing the attribute {name!r}")
        super().tp_setattro(tx, name, value)

    def call_method(
        self, tx: Tracer, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """A method of the generator."""
        if name == "__iter__":
            return self
        if name == "close":
            return self.close(tx)
        if name == "throw":
            step = self.throw(tx, thrown(tx, args))
        else:
            step = self.resume(tx, args[0] if name == "send" else tx.constant(None))
        if step[0] == "return":
            stop = exceptions.stop_iteration(tx, step[1])
            raise ObservedException(exceptions.raised(tx, stop))
        return step[1]

    def hash_key(self, tx: Tracer) -> object:
        return self

    def children(self) -> Sequence[VariableTracker]:
        return () if self.frame is None else self.frame.held()

    def reconstruct(self, to: Rebuilder) -> None:
        if (
            self.started or self.frame is None or decode(self.frame.code).loops
        ):  # as torch, which runs it to its end
            raise CantRebuild("a generator that has started, or has a loop")
        function, args, kwargs = self.frame.original_call()
        to.push_callable(lambda: to.load(function))
        for value in (*args, *kwargs.values()):
            to.load(value)
        to.call(len(args) + len(kwargs), tuple(kwargs))
        to.remember(self)


def thrown(tx: Tracer, args: list[VariableTracker]) -> ExceptionVariable:
    """The exception that `throw(type[, value[, traceback]])` raises."""
    error = "exceptions must be classes or instances deriving from BaseException, not "
    first = args[0].realize(tx)
    error += abstract.name_of(first)
    value = args[1].realize(tx) if len(args) > 1 else None
    if value is None or abstract.is_none(tx, value):
        found = exceptions.to_instance(tx, first, error)
    elif isinstance(first, ExceptionVariable):
        tx.raise_(TypeError, "instance exception may not have a separate value")
    elif isinstance(value, ExceptionVariable) and abstract.python_class(first) in value.cls.__mro__:
        found = value
    else:
        several = tuple in value.get_type().__mro__
        given = abstract.iterate(tx, value) if several else [value]
        found = exceptions.to_instance(tx, tx.call(first, given), error)
    exceptions.chain(tx, found, tx.handled_exception)
    return found


def _throw_into(tx: Tracer, frame: SuspendedFrame, exception: ExceptionVariable) -> Step:
    """`_gen_throw`: the iterator of a `yield from` gets the exception first."""
    inner = frame.delegate()
    if inner is None:
        return frame.throw(exception)
    if abstract.raised(ObservedException(exception), GeneratorExit):
        try:
            _close(tx, inner.realize(tx))
        except ObservedException as observed:
            return frame.throw(_instance(observed))
        return frame.throw(exception)
    try:
        return "yield", _throw_on(tx, inner.realize(tx), exception)
    except _NoThrow:
        return frame.throw(exception)
    except ObservedException as observed:
        if abstract.raised(observed, StopIteration) and not PY312:  # since 3.12 CLEANUP_THROW does it
            return frame.finish_delegate(stop_value(tx, observed))
        return frame.throw(_instance(observed))


class _NoThrow(Exception):
    """The iterator has no `throw`."""


def _throw_on(tx: Tracer, inner: VariableTracker, exception: ExceptionVariable) -> VariableTracker:
    if isinstance(inner, GeneratorVariable):
        kind, value = inner.throw(tx, exception)
        if kind == "return":
            raise ObservedException(exceptions.stop_iteration(tx, value))
        return value
    try:
        method = abstract.getattr_(tx, inner, "throw")
    except ObservedException as observed:
        if abstract.raised(observed, AttributeError):
            raise _NoThrow from None
        raise
    return tx.call(method, [exception])


def _close(tx: Tracer, inner: VariableTracker) -> None:
    if isinstance(inner, GeneratorVariable):
        inner.close(tx)
        return
    none = tx.constant(None)
    method = abstract.getattr_default(tx, inner, "close", none)
    if method is not none:
        tx.call(method, [])


def _instance(observed: ObservedException) -> ExceptionVariable:
    assert isinstance(observed.exception, ExceptionVariable)
    return observed.exception


def stop_value(tx: Tracer, observed: ObservedException) -> VariableTracker:
    """The value of a StopIteration."""
    return _instance(observed).part(tx, "value")


def send(tx: Tracer, receiver: VariableTracker, value: VariableTracker) -> Step:
    """What `yield from` does with a value that was sent in (SEND).

    Args:
        tx: the tracer.
        receiver: the iterator.
        value: None, or what the outer generator was sent.

    Returns:
        What the iterator yielded, or its return value.
    """
    iterator = receiver.realize(tx)
    if isinstance(iterator, GeneratorVariable):
        return iterator.resume(tx, value)
    try:
        if abstract.is_none(tx, value):
            if isinstance(iterator, UserObjectVariable):  # whose StopIteration may have a value
                return "yield", tx.call(abstract.getattr_(tx, tx.class_of(iterator), "__next__"), [iterator])
            item = iterator.tp_iternext(tx)
            return ("return", tx.constant(None)) if item is None else ("yield", item)
        return "yield", tx.call(abstract.getattr_(tx, iterator, "send"), [value])
    except ObservedException as observed:
        if abstract.raised(observed, StopIteration):
            return "return", stop_value(tx, observed)
        raise
