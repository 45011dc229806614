"""A test starts clean and leaves nothing, in any order and with fixtures of any scope."""

from __future__ import annotations

import json

import pytest

SCOPES = """
import torch._dynamo


@pytest.fixture(scope="{scope}")
def model():
    compiled = torch.compile(Scaled())
    compiled(X)
    return compiled


@pytest.mark.dynacheck(graphs=1)
def test_a(model):
    model(X)


@pytest.mark.dynacheck(graphs=1)
def test_b(model):
    model(X)


class TestIn:
    @pytest.mark.dynacheck(graphs=1)
    def test_c(self, model):
        model(X)
"""


@pytest.mark.parametrize("scope", ["class", "module", "session"])
@pytest.mark.parametrize("order", [["test_a", "test_b"], ["test_b", "test_a"], ["TestIn::test_c", "test_b"]])
def test_wider_fixtures_and_order_make_no_difference(project, scope, order):
    project.write(SCOPES.format(scope=scope))
    project.run(*[f"test_it.py::{name}" for name in order]).assert_outcomes(passed=2)


def test_function_scoped_fixtures_are_setup(project):
    result = project.run(
        text="""
        @pytest.fixture
        def model():
            compiled = torch.compile(Scaled())
            compiled(X)
            return compiled

        @pytest.mark.max_graphs(0)
        def test_hits(model):
            model(X)

        @pytest.mark.dynacheck(max_recompiles=0)
        def test_not_vacuous(model):
            model(X)

        class TestOld:
            def setup_method(self):
                self.f = torch.compile(clean)
                self.f(X)

            @pytest.mark.dynacheck(graphs=0)
            def test_one(self):
                self.f(X)
        """
    )
    result.assert_outcomes(passed=3)


def test_module_fixture_of_a_test_that_is_not_under_test(project):
    project.run(
        text="""
        @pytest.fixture(scope="module")
        def model():
            return torch.compile(Scaled(), backend="eager")

        def test_plain(model):
            model(X)

        @pytest.mark.dynacheck(graphs=1)
        def test_marked(model):
            model(X)
        """
    ).assert_outcomes(passed=2)


def test_what_is_left_behind_is_restored_and_told(project):
    result = project.run(
        text="""
        import torch._dynamo
        import dynacheck.config

        @pytest.mark.max_graphs(1)
        def test_leaves():
            torch.compile(clean)(X)
            torch._dynamo.config.cache_size_limit = 3
            torch.set_default_dtype(torch.float64)
            torch.use_deterministic_algorithms(True)
            torch.compiler.set_stance("eager_on_recompile")
            dynacheck.config.set_base(recompile_limit=2)

        @pytest.mark.max_graphs(1)
        def test_clean():
            torch.compile(clean)(X)
            assert torch._dynamo.config.recompile_limit == 8
            assert torch.get_default_dtype() is torch.float32
            assert not torch.are_deterministic_algorithms_enabled()
            assert dynacheck.config.get("recompile_limit") == 8
        """
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "dynacheck: test_it.py::test_leaves left default dtype torch.float32 -> torch.float64 (restored)",
            "dynacheck: test_it.py::test_leaves left deterministic algorithms *",
            "dynacheck: test_it.py::test_leaves left torch._dynamo.config.recompile_limit 8 -> 3 (restored)",
            "dynacheck: test_it.py::test_leaves left dynacheck.config.recompile_limit 8 -> 2 (restored)",
            "dynacheck: *test_leaves left torch.compiler stance default -> eager_on_recompile (restored)",
        ]
    )


TABLE = """
import torch._dynamo, torch._functorch.config, torch._inductor.config
from torch._dynamo.utils import counters

compiled = torch.compile(clean)
CHANGES = {
    "default dtype": lambda: torch.set_default_dtype(torch.float64),
    "default device": lambda: torch.set_default_device("meta"),
    "grad mode": lambda: torch.set_grad_enabled(False),
    "deterministic algorithms": lambda: torch.use_deterministic_algorithms(True, warn_only=True),
    "float32 matmul precision": lambda: torch.set_float32_matmul_precision("medium"),
    "autocast on cpu": lambda: torch.set_autocast_enabled("cpu", True),
    "autocast on cuda": lambda: torch.set_autocast_dtype("cuda", torch.bfloat16),
    "number of threads": lambda: torch.set_num_threads(3),
    "cudnn benchmark": lambda: torch._C._set_cudnn_benchmark(True),
    "torch._dynamo.config.capture_scalar_outputs": lambda: setattr(torch._dynamo.config, "capture_scalar_outputs", True),
    "torch._inductor.config.max_autotune": lambda: setattr(torch._inductor.config, "max_autotune", True),
    "torch._functorch.config.debug_assert": lambda: setattr(torch._functorch.config, "debug_assert", True),
    "torch.compiler stance": lambda: torch.compiler.set_stance("eager_on_recompile"),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.dynacheck(allow=["nothing-compiled"])
def test_changes(what):
    CHANGES[what]()


@pytest.mark.dynacheck(graphs=2, recompiles=1)
@pytest.mark.parametrize("again", [1, 2])
def test_entries_and_the_history_of_sizes(again):
    for size in (4, 3, 2):  # the second entry has a size that varies; with what an earlier test left the first had
        compiled(X[:size])
    counters["stats"]["mine"] += 1


def test_counters_are_left_alone():
    assert counters["stats"]["mine"] >= 2 * (ENGINE == "bundled")
"""


@pytest.mark.parametrize("engine", ["bundled", "torch"])
def test_the_table_of_what_is_isolated(project, engine):
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    changes = [line.split('"')[1] for line in TABLE.splitlines() if line.startswith('    "')]
    args = (f"--dynacheck-engine={engine}", "--dynacheck-json=out.json")
    result = project.run(*args, text=f"ENGINE = {engine!r}\n{TABLE}")
    torch.set_num_threads(threads)
    result.assert_outcomes(passed=len(changes) + 3, warnings=None)
    tests = json.loads((project.pytester.path / "out.json").read_text())["tests"]
    left = {t["nodeid"]: [leak["name"] for leak in t["state_leaks"]] for t in tests if t["state_leaks"]}
    assert left == {f"test_it.py::test_changes[{name}]": [name] for name in changes}


def test_isolation_of_one_test_can_be_switched_off(project):
    project.run(
        text="""
        @pytest.mark.dynacheck(isolate=False, graphs=1)
        def test_first():
            torch.compile(clean)(X)

        @pytest.mark.dynacheck(isolate=False, graphs=0)
        def test_second():
            torch.compile(clean)(X)
        """
    ).assert_outcomes(passed=2)


def test_isolating_all_restores_flags_of_unmarked_tests(project):
    project.run(
        "--dynacheck-isolate=all",
        text="""
        def test_leaves():
            torch.set_default_dtype(torch.float64)

        def test_clean():
            assert torch.get_default_dtype() is torch.float32
        """,
    ).assert_outcomes(passed=2)


def test_faults_of_the_engine_are_raised_in_tests_under_test(project):
    project.run(
        text="""
        import dynacheck.config

        def test_plain():
            assert not dynacheck.config.get("raise_internal_errors")

        @pytest.mark.max_graphs(1)
        def test_marked():
            assert dynacheck.config.get("raise_internal_errors")
            torch.compile(clean)(X)

        def test_plain_again():
            assert not dynacheck.config.get("raise_internal_errors")
        """
    ).assert_outcomes(passed=3)


def test_threads_count(project):
    project.run(
        text="""
        import threading

        @pytest.mark.dynacheck(graphs=1)
        def test_one():
            f = torch.compile(clean)
            thread = threading.Thread(target=f, args=(X,))
            thread.start()
            thread.join()
        """
    ).assert_outcomes(passed=1)


def test_cost():
    """Below a millisecond a test, compiling apart."""
    import time

    import torch._dynamo
    import torch._functorch.config
    import torch._inductor.config  # noqa: F401

    from pytest_dynacheck._isolation import Snapshot
    from pytest_dynacheck._redirect import Redirection

    redirection = Redirection()
    redirection.start(lambda fn, **kw: fn, lambda: None)
    redirection.stop()
    times = []
    for _ in range(20):
        start = time.process_time()
        snapshot = Snapshot()
        redirection.start(lambda fn, **kw: fn, lambda: None)
        redirection.stop()
        assert snapshot.restore() == []
        times.append(time.process_time() - start)
    redirection.close()
    assert min(times) < 1e-3
