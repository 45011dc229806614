"""Command line, environment and ini: what they do, which one wins, wrong values."""

from __future__ import annotations

import pytest
import torch

OVER = "def test_one():\n    f = torch.compile(clean)\n    f(X), f(X[:3])\n"


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("max-graphs", "2 graphs (1 first + 1 by recompile), max_graphs(1) from --dynacheck-max-graphs"),
        ("max-recompiles", "1 recompile, max_recompiles(0) from --dynacheck-max-recompiles"),
        (
            "max-cache-entries",
            "2 cache entries of one function, max_cache_entries(1) from --dynacheck-max-cache-entries",
        ),
    ],
)
def test_default_budgets_judge_unmarked_tests(project, option, text):
    number = "0" if option == "max-recompiles" else "1"
    result = project.run(f"--dynacheck-{option}={number}", text=OVER)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([text])


def test_default_budget_of_graph_breaks(project):
    result = project.run(
        "--dynacheck-max-graph-breaks=0", text="def test_one():\n    torch.compile(printing)(X)\n"
    )
    result.assert_outcomes(failed=1)


def test_default_budgets_leave_alone_what_compiles_nothing_and_what_has_a_marker(project):
    result = project.run(
        "--dynacheck-max-recompiles=0",
        text="""
        def test_nothing():
            assert clean(X) is not None

        @pytest.mark.max_recompiles(1)
        def test_marked():
            f = torch.compile(clean)
            f(X), f(X[:3])
        """,
    )
    result.assert_outcomes(passed=2)


def test_precedence(project, monkeypatch):
    project.pytester.makeini("[pytest]\ndynacheck_max_recompiles = 0\n")
    project.run(text=OVER).assert_outcomes(failed=1)
    monkeypatch.setenv("PYTEST_DYNACHECK_MAX_RECOMPILES", "1")
    project.run().assert_outcomes(passed=1)
    project.run("--dynacheck-max-recompiles=0").assert_outcomes(failed=1)
    project.run("--dynacheck-max-recompiles=2").assert_outcomes(passed=1)


def test_where_a_default_came_from_is_told(project, monkeypatch):
    project.pytester.makeini("[pytest]\ndynacheck_max_recompiles = 0\n")
    project.run(text=OVER).stdout.fnmatch_lines(
        ["1 recompile, max_recompiles(0) from ini dynacheck_max_recompiles"]
    )


@pytest.mark.parametrize(
    ("args", "env", "ini", "line"),
    [
        (["--dynacheck-engine=other"], {}, "", "--dynacheck-engine=other: expected one of bundled, torch"),
        (
            ["--dynacheck-backend=nonsense"],
            {},
            "",
            "--dynacheck-backend: no backend 'nonsense'; there are *eager*",
        ),
        (["--dynacheck-device=tpu"], {}, "", "--dynacheck-device=tpu: expected auto, cpu, cuda or cuda:n"),
        (
            ["--dynacheck-device=cuda:99"],
            {},
            "",
            "--dynacheck-device: no device 'cuda:99'; there are * CUDA devices",
        ),
        (["--dynacheck-isolate=some"], {}, "", "--dynacheck-isolate=some: expected one of marked, all, off"),
        (
            ["--dynacheck-max-graphs=-1"],
            {},
            "",
            "--dynacheck-max-graphs=-1: expected a whole number from 0 on",
        ),
        (
            ["--dynacheck-max-graphs=few"],
            {},
            "",
            "--dynacheck-max-graphs=few: expected a whole number from 0 on",
        ),
        (["--dynacheck-json="], {}, "", "--dynacheck-json=: expected a file's name, nothing was given"),
        (["--dynacheck-html=."], {}, "", "--dynacheck-html=.: expected a file, this is a folder"),
        (["--dynacheck-dynamic=maybe"], {}, "", "--dynacheck-dynamic=maybe: expected true or false"),
        (
            [],
            {"PYTEST_DYNACHECK_MAX_GRAPHS": "x"},
            "",
            "environment variable PYTEST_DYNACHECK_MAX_GRAPHS=x: expected *",
        ),
        (
            [],
            {"DYNACHECK_RECOMPILE_LIMIT": "x"},
            "",
            "environment variable DYNACHECK_RECOMPILE_LIMIT='x': expected a whole number",
        ),
        (
            [],
            {"DYNACHECK_VERBOSE": "maybe"},
            "",
            "environment variable DYNACHECK_VERBOSE='maybe': expected 0 or 1",
        ),
        (
            ["--dynacheck-engine=torch"],
            {"DYNACHECK_LOGS": "guards, nonsense"},
            "",
            "environment variable DYNACHECK_LOGS='guards, nonsense': unknown artifact 'nonsense'; there are guards, *",
        ),
        (
            [],
            {},
            "dynacheck_isolate = some",
            "ini option dynacheck_isolate = some: expected one of marked, all, off",
        ),
        ([], {}, "dynacheck_strict = maybe", "ini option dynacheck_strict = maybe: expected true or false"),
        (
            [],
            {},
            "verbosity_dynacheck = loud",
            "ini option verbosity_dynacheck = loud: expected auto or a whole number",
        ),
    ],
)
def test_wrong_values_stop_the_run_before_collection(project, monkeypatch, args, env, ini, line):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    project.pytester.makeini(f"[pytest]\n{ini}\n")
    result = project.run(*args, text=OVER)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {line}*"])
    assert "collected" not in result.stdout.str()


def test_fullgraph(project):
    result = project.run(
        "--dynacheck-fullgraph",
        text="""
        @pytest.mark.max_graphs(1)
        def test_clean():
            torch.compile(clean)(X)

        @pytest.mark.max_graphs(2)
        def test_stops():
            torch.compile(printing)(X)

        @pytest.mark.dynacheck(fullgraph=False)
        def test_says_no():
            torch.compile(printing)(X)

        @pytest.mark.max_graph_breaks(1)
        def test_allows_one():
            torch.compile(printing)(X)

        @pytest.mark.dynacheck(allow=["break:*"])
        def test_allows_by_cause():
            torch.compile(printing)(X)
        """,
    )
    result.assert_outcomes(passed=4, failed=1)


def test_fullgraph_says_when_it_met_no_test(project):
    result = project.run("--dynacheck-fullgraph", text="def test_one():\n    pass\n")
    result.stdout.fnmatch_lines(["dynacheck: --dynacheck-fullgraph met no test under test"])


def test_the_configured_backend_replaces_inductor_only(project):
    project.run(
        "--dynacheck-backend=aot_eager",
        text="""
        def mine(gm, inputs):
            return gm.forward

        def test_one(dynacheck):
            torch.compile(clean)(X)
            torch.compile(clean, backend="inductor", mode="reduce-overhead")(X)
            torch.compile(clean, backend="eager")(X)
            torch.compile(clean, backend=mine)(X)
            names = {graph.backend for graph in dynacheck.report.graphs}
            assert names == {"aot_eager", "eager", "mine"}
        """,
    ).assert_outcomes(passed=1)


@pytest.mark.parametrize(("dynamic", "recompiles"), [("true", 0), ("false", 2), ("", 1)])
def test_dynamic(project, dynamic, recompiles):
    project.run(
        *([f"--dynacheck-dynamic={dynamic}"] if dynamic else []),
        text=f"""
        @pytest.mark.dynacheck(recompiles={recompiles})
        def test_one():
            f = torch.compile(clean)
            f(X), f(X[:3]), f(X[:2])
        """,
    ).assert_outcomes(passed=1)


def test_device(project):
    project.run(
        "--dynacheck-device=cpu",
        text="""
        def test_one(dynacheck_device):
            assert dynacheck_device == torch.device("cpu")
        """,
    ).assert_outcomes(passed=1)


def test_the_device_is_that_of_the_nearest_marker_that_names_one(project):
    project.run(
        "--dynacheck-device=auto",
        text="""
        pytestmark = pytest.mark.dynacheck(device="cuda:99")

        @pytest.mark.dynacheck(device="cpu")
        class TestIt:
            @pytest.mark.dynacheck(allow=["nothing-compiled"])
            def test_of_the_class(self, dynacheck_device):
                assert dynacheck_device == torch.device("cpu")

        @pytest.mark.dynacheck(allow=["nothing-compiled"])
        def test_of_the_module(dynacheck_device):
            raise AssertionError(dynacheck_device)
        """,
    ).assert_outcomes(passed=1, skipped=1)


def test_header(project):
    result = project.run("--dynacheck-max-graphs=3", text="def test_one():\n    pass\n")
    result.stdout.fnmatch_lines(
        ["dynacheck: * (torch *, engine bundled, backend eager, isolate marked, max_graphs(3))"]
    )
    result = project.run(text="def test_one():\n    pass\n")
    assert "dynacheck:" not in result.stdout.str()


def test_observing_prints_a_table_and_judges_nothing(project):
    result = project.run(
        "--dynacheck",
        text="""
        import dynacheck

        def test_plain():
            dynacheck.compile(printing, backend="eager")(X)

        def test_none():
            pass
        """,
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "*- dynacheck -*",
            "graphs  breaks  recompiles  entries  eager  verdict     test",
            "     2       1           0        1      0  not judged  test_it.py::test_plain",
        ]
    )


def test_help(project):
    result = project.run("--help")
    result.stdout.fnmatch_lines(["*--dynacheck-max-recompiles=N", "*dynacheck_strict (*):*"])


@pytest.mark.parametrize(("isolate", "failed"), [("marked", 0), ("off", 1)])
def test_isolate(project, isolate, failed):
    project.run(
        f"--dynacheck-isolate={isolate}",
        text="""
        @pytest.mark.max_graphs(1)
        @pytest.mark.parametrize("n", [1, 2])
        def test_one(n):
            f = torch.compile(clean)
            f(X[:n + 1])
            assert torch.get_default_dtype() is torch.float32
            torch.set_default_dtype(torch.float64)
        """,
    ).assert_outcomes(passed=2 - failed, failed=failed)
    import torch

    torch.set_default_dtype(torch.float32)


def test_strict_makes_notes_fail(project):
    text = "@pytest.mark.max_recompiles(0)\ndef test_one():\n    torch.compile(clean)(X)\n"
    result = project.run(text=text)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["dynacheck: *max_recompiles(0) proves nothing: everything was called once"])
    project.pytester.makeini("[pytest]\ndynacheck_strict = true\n")
    project.run().assert_outcomes(failed=1)


def test_a_torch_that_is_too_old_is_told_where_a_test_needs_it(project, monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.10.1")
    text = """
        @pytest.mark.max_graphs(1)
        def test_marked():
            torch.compile(clean)(X)

        def test_plain():
            pass
        """
    result = project.run(text=text)
    result.assert_outcomes(errors=1, passed=1)
    wanted = "dynacheck needs torch 2.11 or later, not 2.10.1; install it with: pip install 'torch>=2.11'"
    result.stdout.fnmatch_lines([f"engine bundled can't be loaded: {wanted}"])
    result = project.run("--dynacheck-backend=nonsense")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: engine bundled can't be loaded: {wanted}"])


def test_without_a_gpu_tests_on_one_are_skipped(pytester, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    pytester.makepyfile("def test_there(dynacheck_device): assert False")
    result = pytester.runpytest_inprocess("-rs", "--dynacheck-device=cuda")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*no device 'cuda'; there are 0 CUDA devices"])
