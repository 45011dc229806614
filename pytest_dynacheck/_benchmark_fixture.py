"""The fixture `dynacheck_benchmark`, in one form with pytest-benchmark and another without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_dynacheck._marks import RUN

if TYPE_CHECKING:
    from pytest_dynacheck._benchmark import Benchmark


class WithBenchmark:
    """Names `benchmark`, so that `--benchmark-only` and `--benchmark-skip` see it; a plugin of its own."""

    @pytest.fixture
    def dynacheck_benchmark(self, request: pytest.FixtureRequest, benchmark: Any) -> Benchmark:
        """Time a function or module eager and compiled; both are results of pytest-benchmark."""
        run = request.node.stash.get(RUN, None)
        if run is None:
            pytest.fail("dynacheck_benchmark: name the fixture as an argument of the test", pytrace=False)
        made: Benchmark = run.make_benchmark(benchmark)
        return made


class WithoutBenchmark:
    """pytest-benchmark isn't there; a plugin of its own."""

    @pytest.fixture
    def dynacheck_benchmark(self) -> None:
        """Time a function or module eager and compiled; needs pytest-benchmark, and skips without it."""
        pytest.skip("dynacheck_benchmark needs pytest-benchmark: pip install pytest-benchmark")
