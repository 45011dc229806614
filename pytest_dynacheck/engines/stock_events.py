"""What was seen of the installed torch.compile, told as the engine's own events, so that it fills the same Report."""

from __future__ import annotations

import functools
import importlib
import linecache
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import CodeType, FrameType
from typing import Any

from dynacheck import events as ev
from dynacheck import places, reasons
from dynacheck.counting import through_wrapper
from dynacheck.guards.explain import distance
from dynacheck.report import codes_of

from pytest_dynacheck._redirect import subject
from pytest_dynacheck.engines.stock_records import OTHER_THREAD, Attempt, Break, Call, Failure, Recorder
from pytest_dynacheck.engines.stock_spelling import behind_property, line_of, spelled
from pytest_dynacheck.engines.stock_values import Change

__all__ = ["EventRecorder", "reason_of", "unknown_counts"]

_LONGEST = 160  # of what torch says about a break
_NEEDS = {
    "graphs": {"graphs", "frames"},
    "graph_breaks": {"breaks", "frames"},
    "recompiles": {"recompiles", "frames"},
    "cache_entries": {"frames"},
    "skipped": {"frames"},
    "eager_runs": {"frames", "calls", "hits"},
    "calls": {"calls", "hits", "frames"},
}
"""The hooks that each count of a Report needs."""


def unknown_counts(silent: frozenset[str]) -> frozenset[str]:
    """Returns the counts that can't be known without the hooks that don't answer."""
    return frozenset(count for count, hooks in _NEEDS.items() if hooks & silent)


_OF_NUMBERS = ("str", "repr", "bin", "hex", "oct", "chr", "complex", "pow", "invert")


def reason_of(name: str, builtin: str | None = None) -> str:
    """The id of the reason that torch's name of a break stands for; `torch:<name>` if it stands for none.

    Args:
        name: torch's name, its `gb_type`.
        builtin: the builtin function that can't be traced, if it is about one.
    """
    found = reasons.by_torch_name(name)
    if found is reasons.DATA_DEPENDENT_OPERATOR and builtin in ("bool", "float", "int"):
        found = reasons.SCALAR_OUTPUT
    if found is reasons.PRINT and builtin not in (None, "print", "input"):
        found = reasons.SYMBOLIC_NUMBER if builtin in _OF_NUMBERS else reasons.UNKNOWN_CALL
    return f"torch:{name}" if found is None else found.id


class EventRecorder(Recorder):
    """A recorder that also writes events.

    Attributes:
        events: what happened, in order.
    """

    def __init__(self, silent: frozenset[str]) -> None:
        super().__init__(silent)
        self.events: list[ev.Event] = []
        self._limited: dict[CodeType, tuple[CodeType, int] | None] = {}

    def opened(self, call: Call, caller: FrameType) -> None:
        super().opened(call, caller)
        self.events.append(ev.CallStarted(_target(call.target), _user_line(caller), call=call.number))

    def closed(self, call: Call, raised: bool) -> None:
        super().closed(call, raised)
        target = _target(call.target)
        for code, why, reason in self._eager_in(call, target):
            told = reasons.STANCE.message(stance=call.stance) if why == "stance" else ""
            self.events.append(
                ev.RanEagerly(own_ref(code, target), why, reason, message=told, call=call.number)
            )
        call.target = None
        self.events.append(ev.CallFinished(target, call.outcome, call.hits, raised, call=call.number))

    def _eager_in(self, call: Call, target: ev.CodeRef | None) -> Iterator[tuple[CodeType, str, str]]:
        """Frames that ran eagerly in a call without torch's translator being asked: code, cause, reason."""
        own = None if target is None else target.code
        if call.stance and own is not None:
            yield own, "stance", reasons.STANCE.id
            return
        for place in call.refused:
            limited = [code for code, where in self._limited.items() if where == place]
            yield from ((code, "limit", reasons.LIMIT.id) for code in limited[-1:])

    def gave_up(self, code: CodeType, call: Call | None) -> None:
        if call is not None and code in call.given_up:
            return  # one record per code object and call
        number, target = 0, None
        if call is not None:
            call.given_up.add(code)
            number, target = call.number, _target(call.target)
        why = reasons.BREAK_NOT_RESUMABLE.id
        self.events.append(ev.RanEagerly(own_ref(code, target), "skip", why, call=number))

    def add(self, attempt: Attempt, call: Call | None) -> None:
        super().add(attempt, call)
        number = 0 if call is None else call.number
        target = None if call is None else _target(call.target)
        self.events += _Telling(attempt, number, target).events()
        frame, code = attempt.frame, attempt.code
        if attempt.gave_up:
            self.gave_up(code, call)
        if frame is not None and frame.limit and attempt.error is None:
            caller = attempt.caller
            self._limited[code] = None if caller is None else (caller.f_code, caller.f_lasti)


class _Telling:
    """Events of one frame that torch is done with."""

    def __init__(self, attempt: Attempt, call: int, target: ev.CodeRef | None) -> None:
        self.attempt = attempt
        self.call = call
        self.ref = own_ref(attempt.code, target)
        self.target = target
        self.wraps = target if _is_wrapper(attempt.code) else None
        self.id = _compile_id(attempt)

    def events(self) -> Iterator[ev.Event]:
        attempt = self.attempt
        if attempt.frame is None:
            return
        for graph in attempt.graphs if attempt.entry is not None else ():
            yield ev.GraphCaptured(
                self.id,
                self.ref,
                graph.backend,
                len(graph.ops),
                graph.inputs,
                graph.text,
                graph.seconds,
                call=self.call,
            )
        gave_up = attempt.gave_up
        for found in attempt.breaks:
            yield self._break(found, gave_up and found is attempt.breaks[-1])
        if attempt.entry is not None:
            yield self._entry()
        elif attempt.frame.limit:
            yield from self._limit()
        elif gave_up:
            why = reasons.BREAK_NOT_RESUMABLE.id
            yield ev.FrameSkipped(self.ref, why, "", (), True, call=self.call)
        elif attempt.tried and attempt.translated and self.ref == self.target:
            # frames without tensors that are called below it (a print that is captured) are nobody's concern
            reason = reasons.NO_TENSOR_OPERATIONS
            misses = self._misses()
            yield ev.FrameSkipped(self.ref, reason.id, reason.message(), misses=misses, call=self.call)

    def _break(self, found: Break, skipped: bool) -> ev.Event:
        stack = tuple(stack_line(file, line, name) for file, line, name in found.stack)
        if (found.file, found.line) != found.user[:2] and not any(
            s[:2] == found.user[:2] for s in found.stack
        ):
            stack = (stack_line(*found.user), *stack)  # the line that led to a frame of a library
        reason = reason_of(found.reason, found.builtin)
        known = {r.id: r for r in reasons.all_reasons()}.get(reason)
        return ev.GraphBroke(
            self.id, self.ref, reason, _message(found), known.hint if known else "", stack,
            skipped, call=self.call,
        )  # fmt: skip

    def _entry(self) -> ev.Event:
        attempt = self.attempt
        misses = self._misses()
        return ev.EntryAdded(
            self.id, self.ref, len(attempt.recompile or ()), bool(attempt.graphs), attempt.recompile is not None, misses,
            self._trigger(), attempt.guard_texts, attempt.seconds, call=self.call,
        )  # fmt: skip

    def _trigger(self) -> ev.StackLine | None:
        return None if self.attempt.caller is None else _user_line(self.attempt.caller)

    def _limit(self) -> Iterator[ev.Event]:
        config = importlib.import_module("torch._dynamo.config")
        misses, limit = self._misses(), int(config.recompile_limit)
        yield ev.LimitReached(
            self.id, self.ref, "recompile_limit", limit, misses, self._trigger(), call=self.call
        )
        if self.attempt.error is None:  # else fail_on_recompile_limit_hit raised, and nothing ran
            yield ev.RanEagerly(self.ref, "limit", reasons.LIMIT.id, misses, call=self.call)

    def _misses(self) -> tuple[ev.EntryMiss, ...]:
        """Why no entry served the frame, the nearest one first."""
        failures = self.attempt.recompile or ()
        found = [
            ev.EntryMiss(len(failures) - 1 - i, self._rows(failure), failure.other_region)
            for i, failure in enumerate(failures)  # torch has the most recent entry first
        ]
        return tuple(
            sorted(
                found, key=lambda m: (m.region_differs, distance((row.kind, row.path) for row in m.changes))
            )
        )

    def _rows(self, failure: Failure) -> tuple[ev.ChangeRow, ...]:
        if failure.guard == OTHER_THREAD:
            then, now = ev.Named("absent when the call began"), ev.Named("made by another thread meanwhile")
            return (ev.ChangeRow("other", "entry for the same values", "", then, now),)
        if failure.other_region or failure.taken is None:
            return ()
        order = _Order(self.attempt.code)
        changes = sorted(failure.changes, key=order)
        rows = [self._row(change, failure) for change in changes]
        file, line, text = line_of(failure.needed)
        rest = [
            through_wrapper(
                replace(row, file=file, line=line, text=text, function=_function_at(file, line)), self.wraps
            )
            for row in _Guard(failure, self).rows({change.source for change in changes})
        ]
        state = [row for row in rest if not row.source.strip() or row.path == ""]
        return (*state, *rows, *(row for row in rest if row not in state))

    def spell(self, source: str, failure: Failure) -> str:
        return spelled(source, failure.scope, self.attempt.code, self.ref.code or self.attempt.code)

    def _row(self, change: Change, failure: Failure) -> ev.ChangeRow:
        source, file, line = change.source, change.file or "", change.line or 0
        if file.endswith("external_utils.py"):
            file, line = "", 0
        function, detail = _function_at(file, line), change.detail
        if change.kind == "value" and not detail and function:
            detail = behind_property(source, failure.scope, function)
        row = ev.ChangeRow(
            change.kind, self.spell(source, failure), source, change.then, change.now, detail, file, line,
            linecache.getline(file, line).strip() if line else "", failure.guard if change.decided else "",
            function=function, trait=change.trait,
        )  # fmt: skip
        return through_wrapper(row, self.wraps)


class _Order:
    """Sorts values as the frame has them: by the position of the variable that leads there."""

    def __init__(self, code: CodeType) -> None:
        names = (*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 2], *code.co_freevars)
        self._places = {name: place for place, name in enumerate(names)}

    def __call__(self, change: Change) -> int:
        root = re.match(r"[^\[]*L\['(\w+)'\]", change.source)
        return self._places.get(root[1], len(self._places)) if root else len(self._places) + 1


class _Guard:
    """The guard that failed, where no value's snapshot tells it: global state, aliasing, expressions, presence."""

    def __init__(self, failure: Failure, telling: _Telling) -> None:
        self.failure = failure
        self.telling = telling
        self.text = failure.guard

    def rows(self, known: set[str]) -> list[ev.ChangeRow]:
        """Rows for what isn't among the values that differ.

        Args:
            known: torch's spelling of these.
        """
        if (
            self.text.startswith("GLOBAL_STATE")
            or "dispatch key set" in self.text
            or "function_mode" in self.text
        ):
            return self._state()
        if self.text.startswith("Duplicate tensor"):
            return self._aliased()
        sources = list(dict.fromkeys(_SOURCE.findall(self.text)))
        if any(source in known for source in sources):
            return []
        for make in (self._mark, self._presence, self._expression, self._same):
            row = make(sources)
            if row is not None:
                return [row]
        if known:
            return []
        name = self.telling.spell(sources[0], self.failure) if sources else "unknown"
        kind = "identity" if "deallocated" in self.text else "other"
        return [
            ev.ChangeRow(kind, name, sources[0] if sources else "", ev.Named(self.text), ev.Named("fails"))
        ]

    def _state(self) -> list[ev.ChangeRow]:
        taken = self.failure.taken
        changes = () if taken is None else taken.state.changes(())
        return [ev.ChangeRow(c.kind, c.detail, "", c.then, c.now, c.detail, guard=self.text) for c in changes]

    def _aliased(self) -> list[ev.ChangeRow]:
        taken = self.failure.taken
        tensors = [shot.source for shot in taken.values if "dtype" in shot.aspects] if taken else []
        names = [self.telling.spell(source, self.failure) for source in sorted(tensors, key=self._position)]
        then, now = "different objects", "one object"
        joined = ", ".join(names)
        return [ev.ChangeRow("aliasing", joined, ", ".join(tensors), then, now, joined, guard=self.text)]

    def _position(self, source: str) -> int:
        return _Order(self.telling.attempt.code)(Change(source, "aliasing", None, None))

    def _mark(self, sources: list[str]) -> ev.ChangeRow | None:
        found = re.fullmatch(
            r"hasattr\((.+), '_dynamo_(\w+)_indices'\) == \w+|(.+)\._dynamo_(\w+)_indices.*", self.text
        )
        if found is None:
            return None
        source, which = (found[1], found[2]) if found[1] else (found[3], found[4])
        detail = f"{which} dimensions"
        return self._row("mark", source, ev.Named("as in the first call"), ev.Named("other"), detail)

    def _presence(self, sources: list[str]) -> ev.ChangeRow | None:
        found = re.fullmatch(r"(not )?hasattr\((.+), '(\w+)'\)", self.text)
        if found is not None:
            return self._row("presence", f"{found[2]}.{found[3]}", *_there(not found[1]))
        found = re.fullmatch(r"(not )?\w*dict_contains\((.+?), (.+)\)", self.text)
        if found is not None:
            return self._row("presence", f"{found[3]}[{found[2]}]", *_there(not found[1]))
        found = re.fullmatch(r"(.+) == ((?:frozen)?set\(.*\)|\{.*\})", self.text)
        if found is not None:
            return self._row(
                "value", found[1], *(ev.Named(self._value(text)) for text in (found[2], found[1]))
            )
        found = re.fullmatch(r"(not )?(?:frozen)?set\.__contains__\((.+), (.+)\)", self.text)
        if found is not None:
            held = ev.Named(f"without {found[3]}"), ev.Named(f"with {found[3]}")
            return self._row("value", found[2], *(held if found[1] else reversed(held)))
        found = re.fullmatch(r"KeyError on (.+)", self.text)
        return None if found is None else self._row("presence", found[1], *_there(True))

    def _same(self, sources: list[str]) -> ev.ChangeRow | None:
        if len(sources) != 2 or " is " not in self.text:
            return None
        names = ", ".join(self.telling.spell(s, self.failure) for s in sorted(sources, key=self._position))
        was = "different objects" if " is not " in self.text else "one object"
        now = "one object" if " is not " in self.text else "different objects"
        return ev.ChangeRow("aliasing", names, ", ".join(sources), was, now, guard=self.text)

    def _expression(self, sources: list[str]) -> ev.ChangeRow | None:
        """A condition on sizes, strides and numbers."""
        read = re.fullmatch(r"(.+)\.item\(\) == (.+)", self.text)
        if read is not None:
            then, now = self._value(read[2]), self._value(f"{read[1]}.item()")
            return self._row("value", read[1], then, now)
        loads = list(dict.fromkeys(_LOAD.findall(self.text)))
        if not loads:
            return self._numbers(sources)
        names = {source: self.telling.spell(source, self.failure) for source, _, _ in loads}
        now = {f"{names[s]}.{what}()[{i}]": self._value(f"{s}.{what}()[{i}]") for s, what, i in loads}
        text = self.text
        for source, name in names.items():
            text = text.replace(source, name)
        if len(loads) == 1:
            source, what, dim = loads[0]
            (value,) = now.values()
            return self._row(what, source, ev.Named(text), value, f"{what} of dim {dim}")
        joined = ", ".join(dict.fromkeys(names[s] for s in sorted(names, key=self._position)))
        return ev.ChangeRow("expression", joined, self.text, text, now, guard=self.text)

    def _numbers(self, sources: list[str]) -> ev.ChangeRow | None:
        """A condition on ints and floats, perhaps in tensors: `L['steps'] == 4`, `L['n'].item() < 4`."""
        reads = {source: f"{source}.item()" for source in sources if f"{source}.item()" in self.text}
        values = {source: self._value(reads.get(source, source)) for source in sources}
        if not values or not _COMPARES.search(self.text):
            return None
        if not all(isinstance(value, int | float) for value in values.values()):
            return None
        text = self.text
        names = {source: self.telling.spell(source, self.failure) for source in sources}
        for source, name in names.items():
            text = text.replace(reads.get(source, source), name)
        if len(sources) == 1:
            return self._row("value", sources[0], ev.Named(text), values[sources[0]])
        now = {names[source]: value for source, value in values.items()}
        return ev.ChangeRow("expression", ", ".join(names.values()), self.text, text, now, guard=self.text)

    def _value(self, text: str) -> Any:
        try:
            return eval(text, dict(self.failure.scope))  # torch's own expression over the frame's values
        except Exception:
            return ev.Named("?")

    def _row(self, kind: str, source: str, then: Any, now: Any, detail: str = "") -> ev.ChangeRow:
        name = self.telling.spell(source, self.failure)
        return ev.ChangeRow(kind, name, source, then, now, detail, guard=self.text)


_SOURCE = re.compile(r"[LG]\['\w+'\](?:\.(?!item\(\))\w+|\['[^']*'\]|\[-?\d+\])*")
_LOAD = re.compile(
    r"([LG]\['\w+'\](?:\.(?!size\b|stride\b)\w+|\['[^']*'\]|\[-?\d+\])*)\.(size|stride)\(\)\[(\d+)\]"
)
_COMPARES = re.compile(r" (==|!=|<=|>=|<|>) ")


def _there(present: bool) -> tuple[ev.Named, ev.Named]:
    states = ev.Named("absent"), ev.Named("present")
    return (states[1], states[0]) if present else states


def _is_wrapper(code: CodeType) -> bool:
    """True for torch's frame around what has none of its own (a module of torch.nn, a C function)."""
    return code.co_filename.endswith("external_utils.py")


def own_ref(code: CodeType, target: ev.CodeRef | None) -> ev.CodeRef:
    """The code as the user knows it: instead of torch's frame around it what is called."""
    return target if target is not None and _is_wrapper(code) else code_ref(code)


def code_ref(code: CodeType) -> ev.CodeRef:
    """A code object by name; a resume function by the function that it continues."""
    cache = importlib.import_module("torch._dynamo.resume_execution").ContinueExecutionCache
    line, original = None, code
    while original in cache.generated_code_metadata:
        line = code.co_firstlineno
        original = cache.generated_code_metadata[original].code
    return ev.CodeRef(
        original.co_filename, original.co_firstlineno, original.co_name, original.co_qualname, line, original
    )


def _compile_id(attempt: Attempt) -> ev.CompileId:
    """torch's own id of the entry; of a frame that got none, one that no entry has."""
    if attempt.entry is None:
        return ev.CompileId(-1, 0)
    found = re.findall(r"\d+", attempt.entry.compile_id)
    return ev.CompileId(int(found[-2]), int(found[-1]))


def _message(found: Break) -> str:
    """What torch says about a break, without its advice and its stack: the explanation, else the name."""
    text = re.search(r"^\s*Explanation: (.*)", found.message, re.MULTILINE)
    said = text[1].strip() if text else found.reason
    return said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"


def stack_line(file: str, line: int, name: str) -> ev.StackLine:
    """A line of torch's stacks as events have it, with the function's qualified name."""
    return ev.StackLine(file, line, _qualname(file, line, name), linecache.getline(file, line).strip())


@functools.lru_cache(maxsize=4096)
def _qualname(file: str, line: int, name: str) -> str:
    """The qualified name of the function called `name` that has the line."""
    while resumed := re.fullmatch(r"torch_dynamo_resume_in_(.+)_at_\d+", name):
        name = resumed[1]
    return _function_at(file, line, name) or name


@functools.lru_cache(maxsize=4096)
def _function_at(file: str, line: int, name: str = "") -> str:
    """The qualified name of the innermost function (called `name`, if given) that has the line; "" for none."""
    named = [code for code in _codes(file) if name in ("", code.co_name) and code.co_firstlineno <= line]
    found = [code for code in named if any(number == line for *_, number in code.co_lines())]
    # of functions on one line (lambdas) the innermost: a line of torch's stacks has no more to tell them apart
    innermost = max(found, key=lambda code: (code.co_firstlineno, len(code.co_qualname)), default=None)
    return "" if innermost is None else innermost.co_qualname


@functools.lru_cache(maxsize=64)
def _codes(file: str) -> tuple[CodeType, ...]:
    try:
        return tuple(_nested(compile("".join(linecache.getlines(file)), file, "exec", dont_inherit=True)))
    except SyntaxError:
        return ()


def _nested(code: CodeType) -> Iterable[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested(constant)


def _user_line(frame: FrameType) -> ev.StackLine | None:
    """The innermost line of the user's from a frame on outwards."""
    current: FrameType | None = frame
    while current is not None:
        code = current.f_code
        if not places.is_library(code.co_filename):
            line = current.f_lineno or code.co_firstlineno
            text = linecache.getline(code.co_filename, line).strip()
            return ev.StackLine(code.co_filename, line, code.co_qualname, text)
        current = current.f_back
    return None


def _target(fn: Any) -> ev.CodeRef | None:
    """What a compiled callable was made of."""
    codes = codes_of(subject(fn))
    return code_ref(codes[-1]) if codes else None
