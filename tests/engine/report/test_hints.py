"""Hints and histories."""

from __future__ import annotations

import textwrap

import pytest
from dynacheck.events import ChangeRow
from dynacheck.guards.base import KINDS
from dynacheck.hints import counted_at, hint_for, history_of
from dynacheck.records import Change


def change(then, now, file=""):
    return Change("self.steps", "value", then, now, file="model.py", line=8, origin=file)


def row(then, now, source="self.steps", kind="value", file="", line=0):
    return ChangeRow(kind, source, source, then, now, file=file, line=line)


@pytest.mark.parametrize(
    ("found", "part"),
    [
        (row(0.5, 0.6, "self.scale"), "a Python float read in forward"),
        (row(0.5, 0.6, "t"), "a Python float read in the compiled function"),
        (row(1, 2), "a Python int read in forward"),
        (row(1, 2, "k"), "pass it as a tensor"),
        (row(True, False, "flag"), "True and False"),
        (row("a", "b", "mode"), "string"),
        (row(None, 3, "mask"), "None or not"),
        (row((1, 2), (1, 3), "pads"), "this value"),
    ],
)
def test_values(found, part):
    assert part in hint_for(found)


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("value", "other")])
def test_every_kind_has_a_hint(kind):
    assert hint_for(row(1, 2, kind=kind))


def test_a_hint_of_the_guard_wins():
    assert hint_for(ChangeRow("size", "x", "L['x']", 1, 2, hint="say so")) == "say so"


def source(tmp_path, text):
    file = tmp_path / "model.py"
    file.write_text(textwrap.dedent(text))
    return str(file)


def test_a_counter_is_told_with_its_line(tmp_path):
    file = source(
        tmp_path,
        """
        class Net:
            def __init__(self):
                self.steps = 0

            def forward(self, x):
                self.steps += 1
                return x * self.steps
        """,
    )
    found = history_of([change(n, n + 1, file) for n in range(5)])
    assert found.values == ("0", "1", "2", "3", "4", "5")
    assert found.note == "only ever incremented at model.py:7"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("self.n = self.n + 1", (5,)),
        ("self.n = 5", ()),
        ("self.n -= 1", ()),
        ("self.m += 1", ()),
    ],
)
def test_what_counts_as_counting(tmp_path, body, lines):
    file = source(
        tmp_path,
        f"""
        n = 0
        class A:
            def step(self):
                {body}
        """,
    )
    assert counted_at(file, "n", True) == lines


def test_values_that_go_up_and_down_get_no_note():
    assert history_of([change(0, 1), change(1, 0)]).note == ""
    assert history_of([change(0.5, 0.6), change(0.6, 0.7)]).note == ""
