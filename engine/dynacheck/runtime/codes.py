"""What the runtime keeps per code object, and code objects and stacks as events name them."""

from __future__ import annotations

import itertools
import linecache
import sys
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

from dynacheck import _C, places
from dynacheck.bytecode.decode import decode
from dynacheck.events import CodeRef, CompileId, StackLine
from dynacheck.guards import CompiledGuards
from dynacheck.reasons import Reason
from dynacheck.sources import UserLine
from dynacheck.translate.resume import origin, side


class CodeData:
    """`CodeState.data`: dropped by `CodeState.clear()`.

    Attributes:
        number: of the code object, counted since the last reset.
        attempts: how many entries were made.
        plain: how many frames turned out to have no tensor operation.
        warned: isolation scopes that were told about their limit.
        given_up: why frames of this code run eagerly from now on, or None.
        seen: whether a frame ran under the stance `eager_then_compile`.
        died: the last counted entry that ended with an object it was guarded by, until another takes its place.
        latest: index of the last counted entry, by isolation scope; entries end with the compile that made them.
    """

    __slots__ = ("attempts", "died", "given_up", "latest", "number", "plain", "seen", "warned")

    def __init__(self, number: int) -> None:
        self.number = number
        self.attempts = 0
        self.plain = 0
        self.warned: set[tuple[int | None, str]] = set()
        self.given_up: Any = None
        self.seen = False
        self.died: EntryRecord | None = None
        self.latest: dict[int | None, int] = {}


class EntryRecord:
    """`Entry.owner`: what the engine knows about an entry. Holds no value of the frame.

    Attributes:
        guards: its guards.
        index: how many entries its code object had before it.
        isolation: the scope that it counts in.
        counted: False for a frame without tensor operations, which runs as it is.
        split: reason, sentence and stack of the break that its code ends in, or None.
        made: shapes of the tensors that its graph makes.
        signature: which arguments its first call had, of a frame that takes any; or "".
        made_for: gives the object whose method it was made in (`self`), while that lives.
    """

    __slots__ = ("counted", "guards", "index", "isolation", "made", "made_for", "signature", "split")

    def __init__(
        self,
        guards: CompiledGuards,
        index: int,
        isolation: int | None,
        counted: bool,
        split: tuple[Reason, str, tuple[StackLine, ...]] | None = None,
    ) -> None:
        self.guards = guards
        self.index = index
        self.isolation = isolation
        self.counted = counted
        self.split = split
        self.made: frozenset[tuple[int, ...]] = frozenset()
        self.signature = ""
        self.made_for: Callable[[], Any] = lambda: None


class Numbers:
    """Numbers code objects since the last reset."""

    def __init__(self) -> None:
        self._next = itertools.count()

    def data(self, state: _C.CodeState) -> CodeData:
        """The data of a code object, made on first need."""
        data = state.data
        if data is None:
            data = state.data = CodeData(next(self._next))
        assert isinstance(data, CodeData)
        return data

    def reset(self) -> None:
        self._next = itertools.count()


def counted_entries(state: _C.CodeState) -> list[_C.Entry]:
    """Live entries that count, in any region."""
    return [e for e in state.entries if isinstance(e.owner, EntryRecord) and e.owner.counted]


def in_scope(entries: Iterable[_C.Entry], isolation: int | None) -> list[_C.Entry]:
    """Those of one isolation scope."""
    return [e for e in entries if isinstance(e.owner, EntryRecord) and e.owner.isolation == isolation]


def code_ref(code: CodeType) -> CodeRef:
    """A code object by name; a resume function by the function that it continues."""
    came = origin(code)
    original = None if came is None else came.code
    line, branch = None, None
    if came is not None and original is not None:
        line, branch = side(code) or (decode(original).instructions[came.resumed_at].lineno, None)
        code = original
    return CodeRef(code.co_filename, code.co_firstlineno, code.co_name, code.co_qualname, line, code, branch)


def compile_id(data: CodeData) -> CompileId:
    return CompileId(data.number, data.attempts)


def stack_line(line: UserLine) -> StackLine:
    """A line of the translator's as events have it, with its text."""
    text = line.text or linecache.getline(line.file, line.line).strip()
    return StackLine(line.file, line.line, line.function, text)


def user_stack(lines: Iterable[UserLine]) -> tuple[StackLine, ...]:
    """The stack of a break as the user sees it: a frame of library code (an optimizer's step) is led to by the
    user's call, which is put before it."""
    found = tuple(map(stack_line, lines))
    if all(places.is_library(line.file) for line in found) and (caller := caller_line()) is not None:
        return (caller, *found)
    return found


def caller_line() -> StackLine | None:
    """The innermost line of the user's on this thread's stack, the frame being looked at not included."""
    frame = sys._getframe(1)
    while frame is not None:
        if not places.is_library(frame.f_code.co_filename):
            code = frame.f_code
            line = frame.f_lineno or code.co_firstlineno
            return StackLine(
                code.co_filename, line, code.co_qualname, linecache.getline(code.co_filename, line).strip()
            )
        frame = frame.f_back  # type: ignore[assignment]
    return None
