"""The markers: bounds, exact numbers, allowances, owner, nearest wins, wrong arguments."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize(
    ("marker", "body", "message"),
    [
        ("max_graphs(1)", "f = torch.compile(printing); f(X)", "2 graphs, max_graphs(1)"),
        ("max_graph_breaks(0)", "f = torch.compile(printing); f(X)", "1 graph break, max_graph_breaks(0)"),
        ("max_recompiles(0)", "f = torch.compile(clean); f(X); f(X[:3])", "1 recompile, max_recompiles(0)"),
        (
            "max_cache_entries(1)",
            "f = torch.compile(clean); f(X); f(X[:3])",
            "2 cache entries of one function, max_cache_entries(1)",
        ),
        ("dynacheck(graphs=2)", "f = torch.compile(clean); f(X)", "1 graph, graphs=2"),
        ("dynacheck(recompiles=1)", "f = torch.compile(clean); f(X); f(X)", "0 recompiles, recompiles=1"),
        ("dynacheck(max_graphs=0)", "f = torch.compile(clean); f(X)", "1 graph, max_graphs(0)"),
    ],
)
def test_over(project, marker, body, message):
    result = project.run(text=f"@pytest.mark.{marker}\ndef test_one():\n    {body}\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([message.replace("[", "[[]")])


@pytest.mark.parametrize(
    ("marker", "body"),
    [
        ("max_graphs(1)", "f = torch.compile(clean); f(X); f(X)"),
        ("max_graphs(2)", "f = torch.compile(printing); f(X)"),
        ("max_graph_breaks(1)", "f = torch.compile(printing); f(X)"),
        ("max_recompiles(1)", "f = torch.compile(clean); f(X); f(X[:3])"),
        ("max_cache_entries(2)", "f = torch.compile(clean); f(X); f(X[:3])"),
        (
            "dynacheck(graphs=1, graph_breaks=0, recompiles=0, cache_entries=1)",
            "f = torch.compile(clean); f(X); f(X)",
        ),
        ("max_graphs(0)", "clean(X)"),
    ],
)
def test_within(project, marker, body):
    project.run(text=f"@pytest.mark.{marker}\ndef test_one():\n    {body}\n").assert_outcomes(passed=1)


def test_a_graph_count_is_split_by_recompiles(project):
    result = project.run(
        text="""
        @pytest.mark.max_graphs(1)
        def test_one():
            f = torch.compile(clean)
            f(X), f(X[:3])
        """
    )
    result.stdout.fnmatch_lines(["2 graphs (1 first + 1 by recompile), max_graphs(1)"])


@pytest.mark.parametrize(
    ("allow", "passes"),
    [
        ("['recompile:size:x@*']", True),
        ("['recompile:*']", True),
        ("{'recompile:size:*': 1}", True),
        ("{'recompile:size:*': 0}", False),
        ("['recompile:value:*']", False),
        ("['recompile:size:x@programs.py:clean']", True),
    ],
)
def test_allow_excuses_by_cause(project, allow, passes):
    result = project.run(
        text=f"""
        @pytest.mark.max_recompiles(0)
        @pytest.mark.dynacheck(allow={allow})
        def test_one():
            f = torch.compile(clean)
            f(X), f(X[:3])
        """
    )
    result.assert_outcomes(passed=int(passes), failed=int(not passes), warnings=None)


@pytest.mark.parametrize(
    ("mark", "passes"),
    [
        ("max_graph_breaks=0, allow=['break:DC103@programs.py:printing']", True),
        ("max_graph_breaks=0, allow={'break:*': 1}", True),
        ("max_graph_breaks=0, allow={'break:*': 0}", False),
        ("max_graph_breaks=0, allow=['break:DC101@*']", False),
        # an exact number is about everything that happened, allowed or not
        ("graph_breaks=1, allow=['break:*']", True),
        ("graph_breaks=0, allow=['break:*']", False),
    ],
)
def test_allow_excuses_breaks_by_cause(project, mark, passes):
    result = project.run(
        text=f"""
        @pytest.mark.dynacheck({mark})
        def test_one():
            torch.compile(printing)(X)
        """
    )
    result.assert_outcomes(passed=int(passes), failed=int(not passes), warnings=None)


def test_an_unused_allowance_is_a_warning(project):
    result = project.run(
        "-Werror::pytest_dynacheck.DynacheckUnusedAllowance",
        text="""
        @pytest.mark.dynacheck(max_recompiles=0, allow=["recompile:training:*"])
        def test_one():
            f = torch.compile(clean)
            f(X), f(X)
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*allow 'recompile:training:[*]' matched nothing*"])


def test_an_allowance_for_what_has_no_budget_is_not_unused(project):
    result = project.run(
        "-Werror::pytest_dynacheck.DynacheckUnusedAllowance",
        text="""
        @pytest.mark.dynacheck(graphs=2, allow=["recompile:training:*"])
        def test_one():
            model = torch.nn.Dropout()
            f = torch.compile(lambda x: model(x))
            f(X)
            model.eval()
            f(X)
        """,
    )
    result.assert_outcomes(passed=1)


def test_owner_counts_only_breaks_of_that_package(project):
    project.write(
        """
        @pytest.mark.dynacheck(max_graph_breaks=0, owner="other")
        def test_other():
            torch.compile(printing)(X)

        @pytest.mark.dynacheck(max_graph_breaks=0, owner="programs")
        def test_own():
            torch.compile(printing)(X)
        """
    )
    project.run().assert_outcomes(passed=1, failed=1)


def test_the_nearest_marker_wins(project):
    project.run(
        text="""
        pytestmark = pytest.mark.max_graphs(0)

        @pytest.mark.max_graphs(5)
        class TestAll:
            def test_class(self):
                torch.compile(printing)(X)

            @pytest.mark.max_graphs(1)
            def test_own(self):
                torch.compile(printing)(X)

        def test_module():
            torch.compile(clean)(X)
        """
    ).assert_outcomes(passed=1, failed=2)


def test_marker_keywords_reach_the_compile(project):
    project.run(
        text="""
        @pytest.mark.dynacheck(fullgraph=True)
        def test_fullgraph():
            with pytest.raises(Exception, match="(?i)print"):
                torch.compile(printing)(X)
            torch.compile(clean)(X)

        seen = []

        def backend(gm, inputs):
            seen.append(gm)
            return gm.forward

        @pytest.mark.dynacheck(backend=backend)
        def test_backend():
            torch.compile(clean)(X)
            assert len(seen) == 1

        @pytest.mark.dynacheck(dynamic=True, recompiles=0)
        def test_dynamic():
            f = torch.compile(clean)
            f(X), f(X[:3])
        """
    ).assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("marker", "line"),
    [
        ("max_graphs()", "takes one number, as in max_graphs(1), not ()"),
        ("max_graphs(-1)", "takes a number from 0 on, not -1"),
        ("max_graphs('2')", "takes a whole number, not '2'"),
        ("max_graphs(True)", "takes a whole number, not True"),
        ("max_graphs(n=2)", "takes one number, as in max_graphs(1), not (n=2)"),
        ("dynacheck(max_graph=1)", "has no argument 'max_graph'; did you mean 'max_graphs'?"),
        ("dynacheck(1)", "takes keyword arguments only, not 1"),
        ("dynacheck(graphs=1, max_graphs=2)", "graphs and max_graphs can't both be given"),
        ("dynacheck(allow='x')", "allow takes a list of globs over cause keys"),
        ("dynacheck(allow=[1])", "allow takes globs over cause keys"),
        (
            "dynacheck(allow=['brake:*'])",
            "allow: 'brake:*' matches no key; keys begin with break:, recompile:",
        ),
        ("dynacheck(allow={'break:*': -1})", "takes a number from 0 on, not -1"),
        ("dynacheck(fullgraph=1)", "fullgraph takes True or False, not 1"),
        ("dynacheck(owner=3)", "owner takes the name of a package, not 3"),
        ("dynacheck(engine='other')", "no engine 'other'; there are bundled, torch"),
        ("dynacheck(backend=3)", "backend takes a name or a callable, not 3"),
        ("dynacheck(backend='inducter')", "no backend 'inducter'; did you mean 'inductor'?"),
        ("dynacheck(backend='zzz')", "no backend 'zzz'; there are eager, inspect, "),
        ("dynacheck(device=3)", "device takes 'auto', 'cpu', 'cuda' or 'cuda:n', not 3"),
        ("dynacheck(device='gpu')", "device takes 'auto', 'cpu', 'cuda' or 'cuda:n', not 'gpu'"),
        ("dynacheck(dynamic='yes')", "dynamic takes True, False or None, not 'yes'"),
        ("dynacheck(isolate=0)", "isolate takes True or False, not 0"),
    ],
)
def test_a_wrong_argument_is_one_line_and_the_others_run(project, marker, line):
    result = project.run(
        text=f"""
        @pytest.mark.{marker}
        def test_wrong():
            pass

        def test_other():
            pass
        """
    )
    result.assert_outcomes(passed=1, errors=1)
    assert result.ret == 1
    [found] = [text for text in result.outlines if text.startswith("@pytest.mark.")]
    assert line in found
    assert "Traceback" not in result.stdout.str()


def test_markers_are_documented_and_strict(project):
    result = project.run("--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.max_graphs(n): *", "@pytest.mark.dynacheck(*"])
    project.run(
        "--strict-markers",
        text="@pytest.mark.max_graphs(1)\ndef test_one():\n    torch.compile(clean)(X)\n",
    ).assert_outcomes(passed=1)


@pytest.mark.skipif(torch.cuda.device_count() > 99, reason="the machine has that many GPUs")
def test_a_test_for_a_gpu_that_isnt_there_is_skipped(project):
    result = project.run(
        "-rs",
        text="""
        @pytest.mark.dynacheck(device="cuda:99")
        def test_gpu():
            torch.compile(clean)(X)

        @pytest.mark.dynacheck(device="cpu")
        def test_cpu(dynacheck_device):
            torch.compile(clean)(X.to(dynacheck_device))
        """,
    )
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*no device 'cuda:99'; there are * CUDA devices"])


def test_a_parameters_marker_is_nearer_than_the_functions(project):
    project.run(
        text="""
        @pytest.mark.parametrize(
            "fn",
            [
                clean,
                pytest.param(printing, marks=pytest.mark.max_graphs(2), id="more"),
                pytest.param(printing, marks=pytest.mark.dynacheck(graphs=2)),
                pytest.param(clean, marks=pytest.mark.max_graphs(0), id="none"),
            ],
        )
        @pytest.mark.max_graphs(1)
        def test_one(fn):
            torch.compile(fn)(X)
        """
    ).assert_outcomes(passed=3, failed=1)
