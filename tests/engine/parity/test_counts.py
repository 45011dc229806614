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
BY_KIND = range(
    43, 48
)  # programs that go through what torch has, kind by kind: slow, but for those that found faults
QUICK = {
    "api_attributes", "api_factories", "api_indices", "api_storage_asked", "api_jacrev_of_sizes", "api_sparse_given",
    "api_nested_made", "context_branch_under_autocast", "context_inference_mode_around_a_break",
    "context_decorated_by_a_kernel_choice", "module_RegistersAHookItself", "batch_mode_around_a_break",
    "batch_mode_of_the_program",
}  # fmt: skip
ROWS_OF_OTHER_PYTHONS = {"printing_generator", "print_in_comprehension"}


def rows(quick=()):
    """The names of all programs; most of those by kind are slow."""
    slow = {name for name, program in PROGRAMS.items() if program.row in BY_KIND} - set(quick)
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in slow)) for name in PROGRAMS]


@pytest.mark.parametrize("name", rows())
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


@pytest.mark.parametrize("name", rows(QUICK))
def test_bundled_agrees(name, request):
    engine = ENGINES["bundled"]
    if reason := LACKED.get(name) or engine.unavailable():
        pytest.skip(reason)
    if name in EXPECTED_FAILURES:
        request.applymarker(pytest.mark.xfail(reason=EXPECTED_FAILURES[name], strict=True))
    assert not disagreements(PROGRAMS[name])


def test_every_row_is_there():
    assert {program.row for program in PROGRAMS.values()} == set(range(1, 48))


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
