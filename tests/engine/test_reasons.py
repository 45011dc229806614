"""The table of reasons is complete: each is given by a program, and whoever adds one adds it to docs/programs.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import dynacheck
import pytest
from dynacheck import config, events, reasons

ROOT = Path(__file__).resolve().parents[2]

_spec = importlib.util.spec_from_file_location("programs", ROOT / "docs" / "programs.py")
assert _spec and _spec.loader
programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)


def test_every_reason_has_a_program():
    assert set(programs.PROGRAMS) == {reason.id for reason in reasons.all_reasons()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reason", reasons.all_reasons(), ids=lambda reason: reason.id)
def test_reason(reason, engine):
    seen: list[events.Event] = []
    config.set_base(raise_internal_errors=False)
    events.observers.add(seen.append)
    try:
        programs.PROGRAMS[reason.id]()
    finally:
        events.observers.remove(seen.append)
    assert reason.id in {getattr(event, "reason", None) for event in seen}, seen
    told = [e for e in seen if getattr(e, "reason", None) == reason.id and getattr(e, "message", None)]
    assert all("{" not in e.message for e in told)


def test_left_alone_is_reported(engine):
    for _ in range(2):  # told again to whom observes later
        with dynacheck.observe() as report:
            programs.skip_file()
        found = [s for s in report.left_alone if s.reason == "DC303"]
        assert [s.function for s in found].count("Random.shuffle") == 1
        assert "random.py belongs to the standard library" in found[0].message
