"""What the engine did, as log records: `DYNACHECK_LOGS=guards,recompiles` or `dynacheck.logs(guards=True)`.

Each artifact has a logger of its own below `dynacheck` (`dynacheck.recompiles`), so that the standard
`logging` module's levels, handlers and filters apply. The wording is that of PyTorch's documentation.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from typing import Any

from dynacheck import config
from dynacheck import events as ev
from dynacheck.counting import title_of

VERBOSE = {"+guards": "guards"}
"""Artifacts that say more, and what they say more of."""
ARTIFACTS = ("guards", "recompiles", "graph_breaks", "graph_code", "bytecode", "calls")


def _short(file: str) -> str:
    """A file below the current folder is named from there, as Python does for scripts."""
    if file.startswith("<"):
        return file
    relative = os.path.relpath(file)
    return file if relative.startswith(os.pardir) else relative


def _named(code: ev.CodeRef) -> str:
    return f"function {code.name}{code.rest} in {_short(code.file)}:{code.line}"


def guards(event: ev.EntryAdded) -> str:
    """The guards of an entry that was added, one a line."""
    return "\n".join(
        [f"[{event.compile_id}] GUARDS: {_named(event.code)}", *(f"    {g}" for g in event.guards)]
    )


def guard_tree(event: ev.EntryAdded) -> str:
    """The guards of an entry that was added below the values that they are about, with the user's lines."""
    lines = [f"+- {guard}" for guard in event.guards] if event.tree is None else event.tree()
    return "\n".join(
        [f"[{event.compile_id}] GUARDS: {_named(event.code)}", *(f"    {line}" for line in lines)]
    )


def recompile(event: ev.EntryAdded) -> str | None:
    """Which guards of which entries failed; None for a first entry."""
    if not event.recompile:
        return None
    lines = [f"Recompiling {_named(event.code)}", "triggered by the following guard failure(s):"]
    for miss in event.misses:
        entry = f"entry {miss.entry}: " if len(event.misses) > 1 else ""
        if miss.region_differs and not miss.changes:
            lines.append(f"     - {entry}it belongs to another compile of the function")
        lines += [f"     - {entry}{guard}" for guard in ev.failed_guards(miss.changes, _short)]
    return "\n".join(lines)


def limit(event: ev.LimitReached) -> str:
    """The limit, the function, and the value that kept changing."""
    kept = [guard for miss in event.misses[:1] for guard in ev.failed_guards(miss.changes[:1], _short)]
    return "\n".join(
        [
            f"dynacheck hit {event.limit_name} ({event.limit})",
            f"   {_named(event.code)}",
            *(f"   last reason: {text}" for text in kept),
            "   calls that match no entry run eagerly from now on",
        ]
    )


def graph_break(event: ev.GraphBroke) -> str:
    """Where translation stopped, why, and the user's stack."""
    last = event.stack[-1] if event.stack else None
    where = f" at {_short(last.file)}:{last.line}" if last else ""
    lines = [
        f"Graph break in user code{where}",
        f"Graph Break Reason: {event.reason} ({title_of(event.reason)})",
    ]
    lines += [f"  {event.message}"] + ([f"  Hint: {event.hint}"] if event.hint else [])
    if event.skipped:
        lines.append(f"  The frame can't be split here: {_named(event.code)} runs eagerly.")
    lines.append("User code traceback:")
    for line in event.stack:
        lines.append(f'  File "{line.file}", line {line.line}, in {line.function}')
        lines += [f"    {line.text.strip()}"] if line.text else []
    return "\n".join(lines)


def graph_code(event: ev.GraphCaptured) -> str:
    """The graph's Python source."""
    source = event.graph() if callable(event.graph) else event.graph
    return f"[{event.compile_id}] TRACED GRAPH: {_named(event.code)}\n{source}"


def bytecode(event: ev.EntryAdded) -> str | None:
    """The rewritten code; None if the event carries none."""
    if event.listing is None:
        return None
    return f"[{event.compile_id}] MODIFIED BYTECODE {event.code.name}\n{event.listing()}"


def finished_call(event: ev.CallFinished) -> str:
    """One line for a compiled call."""
    name = _named(event.target) if event.target else "function"
    return f"call {event.call} of {name}: {event.outcome}{', raised' if event.raised else ''}"


_LINES: dict[str, tuple[tuple[type[ev.Event], Callable[[Any], str | None], int], ...]] = {
    "guards": ((ev.EntryAdded, guards, logging.DEBUG),),
    "+guards": ((ev.EntryAdded, guard_tree, logging.DEBUG),),
    "recompiles": ((ev.EntryAdded, recompile, logging.DEBUG), (ev.LimitReached, limit, logging.WARNING)),
    "graph_breaks": ((ev.GraphBroke, graph_break, logging.DEBUG),),
    "graph_code": ((ev.GraphCaptured, graph_code, logging.DEBUG),),
    "bytecode": ((ev.EntryAdded, bytecode, logging.DEBUG),),
    "calls": ((ev.CallFinished, finished_call, logging.DEBUG),),
}


class _Switchboard:
    """Which artifacts are on. An observer of the engine while any is."""

    def __init__(self) -> None:
        self.on: frozenset[str] = frozenset()
        self.read_settings = False
        self.told = False
        self.handler: logging.Handler | None = None

    def observe(self, event: ev.Event) -> None:
        for artifact in (*ARTIFACTS, *VERBOSE):
            if artifact in self.on and f"+{artifact}" not in self.on:
                for kind, text_of, level in _LINES[artifact]:
                    if isinstance(event, kind):
                        text = text_of(event)
                        if text is not None:
                            logging.getLogger(f"dynacheck.{artifact.lstrip('+')}").log(level, text)

    def switch(self, on: frozenset[str]) -> None:
        on |= {VERBOSE[name] for name in on & VERBOSE.keys()}
        before, self.on = self.on, on
        for artifact in (on ^ before) - VERBOSE.keys():
            logging.getLogger(f"dynacheck.{artifact}").setLevel(
                logging.DEBUG if artifact in on else logging.NOTSET
            )
        if on and not before:
            ev.observers.add(self.observe)
        elif before and not on:
            ev.observers.remove(self.observe)

    def show_on_stderr(self) -> None:
        """A handler of our own, for programs that configured no logging."""
        if self.handler is None:
            self.handler = logging.StreamHandler()
            self.handler.setFormatter(logging.Formatter("[%(name)s] %(message)s"))
            logging.getLogger("dynacheck").addHandler(self.handler)


_switchboard = _Switchboard()


def _checked(names: frozenset[str], where: str) -> frozenset[str]:
    unknown = sorted(names - {*ARTIFACTS, *VERBOSE})
    if unknown:
        raise ValueError(f"{where}: unknown artifact {unknown[0]!r}; there are {', '.join(ARTIFACTS)}")
    return names


def logs(**artifacts: bool | str) -> None:
    """Switch log artifacts on or off; those not named are switched off, as `torch._logging.set_logs` does.

    Args:
        **artifacts: guards, recompiles, graph_breaks, graph_code, bytecode, calls; `guards="+"` shows them below the
            values that they are about, with the lines that needed them.

    Raises:
        ValueError: no such artifact.

    Example:
        >>> logs(recompiles=True)
        >>> logs()
    """
    _checked(frozenset(artifacts), "logs()")
    _switchboard.read_settings = True
    names = {f"+{name}" if on == "+" else name for name, on in artifacts.items() if on}
    _switchboard.switch(_checked(frozenset(names), "logs()"))


def _named_by(text: str) -> frozenset[str]:
    names = frozenset(part.strip() for part in text.split(",") if part.strip())
    return _checked(names, f"DYNACHECK_LOGS={text!r}")


def check_environment() -> list[str]:
    """Read every `DYNACHECK_` variable without setting anything.

    Returns:
        A sentence for each that is one of ours misspelt, if nobody has been told.

    Raises:
        ValueError: a variable's value doesn't fit its option.
    """
    _named_by(config.from_environment().logs)
    told, _switchboard.told = _switchboard.told, True
    return [] if told else config.misspelt()


def start_from_settings() -> None:
    """Switch on what `DYNACHECK_LOGS` names, once per process; called before the first translation.

    Raises:
        ValueError: the variable names an unknown artifact.
    """
    if _switchboard.read_settings:
        return
    _switchboard.read_settings = True
    for sentence in check_environment():
        warnings.warn(sentence, stacklevel=2)
    names = _named_by(str(config.get("logs")))
    if names:
        _switchboard.switch(names)
        if not logging.getLogger().handlers:
            _switchboard.show_on_stderr()
