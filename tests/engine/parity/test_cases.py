"""The small cases in tests/cases, under torch.compile (index.json's figures) and under the bundled engine."""

import json
import sys

import pytest
from parity.compare import disagreements
from parity.engines import ENGINES
from parity.expected_failures import EXPECTED_FAILURES, TORCH
from parity.harness import LIBRARY_FRAMES, differences, run
from parity.programs import CASES, all_cases

PROGRAMS = {program.name: program for program in all_cases()}
INDEX = {
    case["file"].removesuffix(".py"): case["expect"]
    for case in json.loads((CASES[0].parent / "index.json").read_text())["cases"]
}


def test_index_and_cases_belong_together():
    assert set(INDEX) == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_torch_figures(name):
    if TORCH != (2, 13) or sys.version_info[:2] != (3, 11):
        pytest.skip("figures were measured with torch 2.13 and Python 3.11")
    seen, expected = run(PROGRAMS[name], ENGINES["torch"]), INDEX[name]
    found = seen.figures
    assert seen.backend_calls == expected["graphs"]
    assert found.breaks == expected["breaks"]
    assert found.raw["breaks"] == expected["break_events"]
    assert found.raw["recompiles"] == expected["recompiles"]
    assert found.raw["entries"] == expected["cache_entries"]
    assert bool(found.limit_hits) == expected["limit_hit"]
    if name not in LIBRARY_FRAMES:
        assert [found.raw["translated"], found.raw["tried"]] == expected["frames"]
    wrong = differences(run(PROGRAMS[name]), seen, tracebacks=False)
    assert bool(wrong) != expected["correct"], wrong


@pytest.mark.parametrize("name", PROGRAMS)
def test_bundled_agrees(name, request):
    engine = ENGINES["bundled"]
    if reason := engine.unavailable():
        pytest.skip(reason)
    if name in EXPECTED_FAILURES:
        request.applymarker(pytest.mark.xfail(reason=EXPECTED_FAILURES[name], strict=True))
    assert not disagreements(PROGRAMS[name])
