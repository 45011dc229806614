"""Every row of the table, under torch.compile (the figures measured) and under the bundled engine."""

import sys

import pytest
from parity.compare import disagreements
from parity.engines import ENGINES
from parity.expected_failures import AS_TORCH, EXPECTED_FAILURES, HERE, LACKED, ON_PURPOSE, TORCH
from parity.harness import differences, run
from parity.programs import CASES, all_programs

PROGRAMS = {program.name: program for program in all_programs()}
MEASURED = (2, 13), (3, 11)
ROWS_OF_OTHER_PYTHONS = {"printing_generator", "print_in_comprehension"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_torch_figures(name):
    program = PROGRAMS[name]
    if TORCH != MEASURED[0]:
        pytest.skip("figures were measured with torch 2.13")
    if sys.version_info[:2] != MEASURED[1] and name in ROWS_OF_OTHER_PYTHONS:
        pytest.skip("figures of this row differ between Python versions; measured with 3.11")
    for _ in range(program.runs):
        seen = run(program, ENGINES["torch"])
        found = {key: seen.figures.raw[key] for key in program.raw}
        if found == program.raw:
            break
    assert found == program.raw
    wrong = differences(run(program), seen, tracebacks=False)
    assert bool(wrong) == bool(program.torch_differs), wrong


@pytest.mark.parametrize("name", PROGRAMS)
def test_bundled_agrees(name, request):
    engine = ENGINES["bundled"]
    if reason := LACKED.get(name) or engine.unavailable():
        pytest.skip(reason)
    if name in EXPECTED_FAILURES:
        request.applymarker(pytest.mark.xfail(reason=EXPECTED_FAILURES[name], strict=True))
    assert not disagreements(PROGRAMS[name])


def test_every_row_is_there():
    assert {program.row for program in PROGRAMS.values()} == set(range(1, 44))


def test_expected_failures_name_programs():
    known = {*PROGRAMS, *(path.stem for path in CASES)}
    assert {*EXPECTED_FAILURES, *ON_PURPOSE, *AS_TORCH, *HERE, *LACKED} <= known


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["one_size", "blocks_in_loop_read_index", "first_in_dispatch_mode"])
def test_a_run_leaves_nothing_to_the_next(name, engine):
    if reason := ENGINES[engine].unavailable():
        pytest.skip(reason)
    if engine == "bundled" and name in EXPECTED_FAILURES:
        pytest.skip(EXPECTED_FAILURES[name])
    first, second = run(PROGRAMS[name], ENGINES[engine]), run(PROGRAMS[name], ENGINES[engine])
    assert first.figures.compared() == second.figures.compared()
    assert first.outcomes == second.outcomes
