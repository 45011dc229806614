"""Generated programs: compiled they do what they do plain.

A failure prints the smallest program found that still fails in the same way.
"""

from __future__ import annotations

import pytest
import torch
from engine.semantics.generated.compare import TooLong, compare, limited
from engine.semantics.generated.program import Shrinker, text_of
from engine.semantics.generated.repair import runnable

BATCHES = 15
PROGRAMS = 10
LEAST_TRANSLATED = 0.75
"""Share of the programs of which something must have been translated."""


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def check(seed: int) -> bool:
    """Run a seed's program both ways; whether anything of it was translated."""
    dynamic = True if seed % 10 == 9 else None
    try:
        program = runnable(seed)
        with limited(60):
            found = compare(text_of(program), dynamic)
    except TooLong:
        return False
    if not found.kind:
        return found.translated

    def fails(text: str) -> bool:
        try:
            with limited(20):
                return compare(text, dynamic).kind == found.kind
        except (Exception, TooLong):  # cut too far: it isn't a program any more, or fails by itself
            return False

    smallest = Shrinker(fails).shrink(program)
    detail = compare(smallest, dynamic).detail
    pytest.fail(f"seed {seed}: {found.kind}\n\n{smallest}\n{detail}", pytrace=False)


def sweep(first: int, count: int) -> None:
    translated = sum(check(seed) for seed in range(first, first + count))
    print(f"{translated} of {count} programs translated")
    assert translated >= LEAST_TRANSLATED * count * 0.8


@pytest.mark.parametrize("batch", range(BATCHES))
def test_programs(batch):
    sweep(batch * PROGRAMS, PROGRAMS)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(100))
def test_ten_thousand(batch):
    sweep(100_000 + batch * 100, 100)
