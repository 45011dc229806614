"""Log records in the wording of PyTorch's documentation."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from dataclasses import replace

import dynacheck
import pytest
import torch
from dynacheck import artifacts as logs
from dynacheck import events as ev

HERE = os.path.abspath("script.py")
CODE = ev.CodeRef(HERE, 3, "fn", "fn")


@pytest.fixture(autouse=True)
def off():
    yield
    logs.logs()


def entry(*changes, guards=(), listing=None):
    return ev.EntryAdded(
        ev.CompileId(0, 1),
        CODE,
        1,
        True,
        True,
        (ev.EntryMiss(0, tuple(changes)),),
        None,
        guards=guards,
        listing=listing,
    )


def messages(caplog):
    return [record.getMessage() for record in caplog.records]


def test_a_recompile_reads_as_documented(caplog):
    logs.logs(recompiles=True)
    change = ev.ChangeRow("value", "b", "L['b']", "Hello", "Hi", guard="L['b'] == 'Hello'")
    ev.observers.emit(entry(change))
    where = {"file": HERE, "line": 5, "function": "fn", "text": "return a * len(b)"}
    ev.observers.emit(entry(replace(change, **where)))
    told = (
        "Recompiling function fn in script.py:3\n"
        "triggered by the following guard failure(s):\n"
        "     - L['b'] == 'Hello'  # now 'Hi'"
    )
    assert messages(caplog) == [told, f"{told}  # return a * len(b)  # script.py:5 in fn"]


def test_first_entries_are_no_recompiles(caplog):
    logs.logs(recompiles=True)
    ev.observers.emit(ev.EntryAdded(ev.CompileId(0, 0), CODE, 0, True, False, (), None))
    assert messages(caplog) == []


def test_guards_and_bytecode(caplog):
    logs.logs(guards=True, bytecode=True)
    ev.observers.emit(entry(guards=("L['b'] == 'Hello'",), listing=lambda: "LOAD_FAST a"))
    assert messages(caplog) == [
        "[0/1] GUARDS: function fn in script.py:3\n    L['b'] == 'Hello'",
        "[0/1] MODIFIED BYTECODE fn\nLOAD_FAST a",
    ]


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cfg = {"by": [1, 2.0]}

    def forward(self, x):
        return x * self.cfg["by"][1]


def test_guards_below_their_values_with_lines(caplog):
    logs.logs(guards="+")
    dynacheck.compile(Scaled(), backend="eager")(torch.ones(2))
    (text,) = messages(caplog)
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.endswith("+- L['self'].cfg['by']"))
    line = Scaled.forward.__code__.co_firstlineno + 1
    assert lines[at].count("|") == 2 and "GUARDS: function forward in" in lines[0]
    below = next(text for text in lines[at:] if "L['self'].cfg['by'][1] == 2.0" in text)
    assert below.count("|") == 4 and below.endswith(f"# {__file__}:{line} in Scaled.forward")
    logs.logs(guards=True)
    dynacheck.reset()
    dynacheck.compile(Scaled(), backend="eager")(torch.ones(2))
    assert "+-" not in messages(caplog)[1]


def test_graph_breaks_show_the_users_stack(caplog):
    logs.logs(graph_breaks=True)
    stack = (ev.StackLine(HERE, 5, "fn", "    print('Hi')"),)
    ev.observers.emit(ev.GraphBroke(ev.CompileId(0, 0), CODE, "DC103", "`print` can't.", "remove it", stack))
    assert messages(caplog)[0].splitlines() == [
        "Graph break in user code at script.py:5",
        "Graph Break Reason: DC103 (call that writes output)",
        "  `print` can't.",
        "  Hint: remove it",
        "User code traceback:",
        f'  File "{HERE}", line 5, in fn',
        "    print('Hi')",
    ]


def test_the_limit_names_function_limit_and_value(caplog):
    logs.logs(recompiles=True)
    miss = ev.EntryMiss(7, (ev.ChangeRow("value", "self.n", "L['self'].n", 7, 8, guard="L['self'].n == 7"),))
    ev.observers.emit(ev.LimitReached(ev.CompileId(0, 8), CODE, "recompile_limit", 8, (miss,)))
    assert caplog.records[0].levelno == logging.WARNING
    assert "hit recompile_limit (8)" in messages(caplog)[0]
    assert "L['self'].n == 7  # now 8" in messages(caplog)[0]


def test_graph_code(caplog):
    logs.logs(graph_code=True)
    ev.observers.emit(
        ev.GraphCaptured(ev.CompileId(0, 0), CODE, "eager", 1, (), lambda: "def forward(self): ...")
    )
    assert messages(caplog)[0].endswith("script.py:3\ndef forward(self): ...")


def with_a_break(x, text):
    y = x + 1
    print(end="")
    return y * len(text)


AT = f"{os.path.relpath(__file__)}:{with_a_break.__code__.co_firstlineno}"
REST = f"(from line {with_a_break.__code__.co_firstlineno + 2} on)"
ALONE = {  # the first lines of what a break and a recompile behind it tell, by artifact
    "guards": [f"[0/0] GUARDS: function with_a_break in {AT}"]
    + [f"[1/{n}] GUARDS: function with_a_break {REST} in {AT}" for n in (0, 1)],
    "recompiles": [f"Recompiling function with_a_break {REST} in {AT}"],
    "graph_breaks": [f"Graph break in user code at {os.path.relpath(__file__)}:"],
    "graph_code": [f"[0/0] TRACED GRAPH: function with_a_break in {AT}"]
    + [f"[1/{n}] TRACED GRAPH: function with_a_break {REST} in {AT}" for n in (0, 1)],
    "bytecode": [f"[{entry}] MODIFIED BYTECODE with_a_break" for entry in ("0/0", "1/0", "1/1")],
    "calls": ["call ", "call "],
}


@pytest.mark.parametrize("artifact", logs.ARTIFACTS)
def test_each_artifact_alone(artifact, caplog):
    dynacheck.reset()
    logs.logs(**{artifact: True})
    compiled = dynacheck.compile(with_a_break, backend="eager")
    with dynacheck.observe() as seen:
        for text in ("Hello", "Hi"):
            compiled(torch.ones(2), text)
    assert {record.name for record in caplog.records} == {f"dynacheck.{artifact}"}
    told = [text.splitlines()[0] for text in messages(caplog)]
    assert len(told) == len(ALONE[artifact])
    assert all(map(str.startswith, told, ALONE[artifact])), told
    assert seen.counts["recompiles"] == seen.counts["graph_breaks"] == 1


def test_unknown_artifacts_are_refused():
    with pytest.raises(ValueError, match="unknown artifact 'guard'; there are guards, recompiles"):
        logs.logs(guard=True)


def test_nothing_observes_when_all_is_off():
    logs.logs(guards=True)
    assert ev.observers.active
    logs.logs()
    assert not ev.observers.active


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("recompiles", "Recompiling function fn"),
        ("+guards", "GUARDS: function fn"),
        ("nonsense", "DYNACHECK_LOGS='nonsense': unknown artifact"),
    ],
)
def test_the_environment_variable(value, part):
    program = (
        "from dynacheck import events as ev, artifacts as logs\n"
        "logs.start_from_settings()\n"
        "code = ev.CodeRef('/s.py', 3, 'fn', 'fn')\n"
        "ev.observers.emit(ev.EntryAdded(ev.CompileId(0, 1), code, 1, True, True, (), None))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "DYNACHECK_LOGS": value},
        capture_output=True,
        text=True,
    )
    assert part in run.stderr
