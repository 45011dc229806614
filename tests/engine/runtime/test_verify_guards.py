"""Mirror mode: native and Python verdicts of guards are held together at each miss."""

from __future__ import annotations

import dynacheck
import pytest
import torch
from dynacheck.guards import GuardMismatch, objects


def scaled(x, n):
    return x * len(n)


def test_verdicts_agree_over_several_entries():
    run = dynacheck.compile(scaled, backend="eager")
    with dynacheck.configured(verify_guards=True), dynacheck.observe() as report:
        for value in ("a", "bb", [1], (1, 2)):
            assert torch.equal(run(torch.ones(2), value), scaled(torch.ones(2), value))
    assert len(report.cache_entries) == 4


def test_a_guard_whose_forms_disagree_is_an_error(monkeypatch):
    run = dynacheck.compile(scaled, backend="eager")
    monkeypatch.setattr(objects.ValueIs, "check", lambda self, slots: True)
    with dynacheck.configured(verify_guards=True), pytest.raises(GuardMismatch):
        run(torch.ones(2), "a")
        run(torch.ones(2), "bb")
