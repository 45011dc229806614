"""When and how a test over budget fails, beside everything else that can happen to a test."""

from __future__ import annotations

import pytest


def test_outcomes(project):
    result = project.run(
        text="""
        import unittest
        from pytest_dynacheck import BudgetExceeded

        pytestmark = pytest.mark.max_graphs(1)

        @pytest.mark.xfail
        def test_xfail():
            torch.compile(printing)(X)

        @pytest.mark.xfail(strict=True)
        def test_xfail_strict():
            torch.compile(printing)(X)

        @pytest.mark.xfail(raises=BudgetExceeded, strict=True)
        def test_xfail_raises():
            torch.compile(printing)(X)

        @pytest.mark.xfail(raises=KeyError)
        def test_xfail_other():
            torch.compile(printing)(X)

        @pytest.mark.xfail(strict=True)
        def test_xfail_strict_within():
            torch.compile(clean)(X)

        def test_own_failure_stays():
            torch.compile(printing)(X)
            assert 1 == 2

        def test_skips():
            torch.compile(printing)(X)
            pytest.skip("later")

        class TestCase(unittest.TestCase):
            def setUp(self):
                self.f = torch.compile(printing)

            def test_over(self):
                self.f(X)

            def test_fails_itself(self):
                self.f(X)
                self.assertEqual(1, 2)
        """
    )
    result.assert_outcomes(xfailed=3, failed=5, skipped=1)
    text = result.stdout.str()
    assert "assert 1 == 2" in text
    assert "AssertionError: 1 != 2" in text
    result.stdout.fnmatch_lines(["FAILED *test_xfail_other - BudgetExceeded: 2 graphs, max_graphs(1)"])


def test_an_own_failure_gets_the_sections(project):
    result = project.run(
        text="""
        @pytest.mark.max_graphs(9)
        def test_one():
            torch.compile(printing)(X)
            assert False
        """
    )
    result.stdout.fnmatch_lines(["*- dynacheck (engine bundled, *", "*- dynacheck: 1 graph break -*"])


def test_async_and_subtests(project):
    project.run(
        text="""
        import unittest

        class TestAsync(unittest.IsolatedAsyncioTestCase):
            @pytest.mark.max_graphs(1)
            async def test_over(self):
                torch.compile(printing)(X)

            @pytest.mark.max_graphs(1)
            async def test_within(self):
                torch.compile(clean)(X)
        """
    ).assert_outcomes(passed=1, failed=1)


def test_last_failed_and_exitfirst(project):
    text = """
    @pytest.mark.max_graphs(1)
    def test_over():
        torch.compile(printing)(X)

    def test_after():
        pass
    """
    project.write(text)
    pytester = project.pytester
    pytester.runpytest_inprocess("-x").assert_outcomes(failed=1)
    pytester.runpytest_inprocess("--lf").assert_outcomes(failed=1, deselected=0)


def test_junit(project):
    project.run(
        "--junitxml=out.xml",
        text="""
        @pytest.mark.max_graphs(1)
        def test_over():
            torch.compile(printing)(X)
        """,
    )
    text = (project.pytester.path / "out.xml").read_text()
    assert '<property name="dynacheck.graphs" value="2"' in text
    assert '<property name="dynacheck.backend" value="eager"' in text
    assert "2 graphs, max_graphs(1)" in text


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("pass", "nothing was compiled: the test calls nothing that is compiled"),
        ("torch.compile(clean)", "nothing was compiled: clean was compiled but never called"),
        (
            "torch.compile(lambda x: x)(3)",
            "nothing was compiled: the compiled code has no tensor operation *",
        ),
        (
            "m = torch.nn.Linear(8, 8); m.compile(); m(torch.ones(1, 8))",
            "*module.compile() leaves torch.nn's own modules alone; use torch.compile(module))",
        ),
        (
            "list(torch.compile(produces)(X))",
            "nothing was compiled: generators and coroutines (produces) run as they are; compile what they call",
        ),
        (
            "torch.compiler.set_stance('force_eager'); torch.compile(clean)(X)",
            "nothing was compiled: a stance is set (set_stance) *",
        ),
    ],
)
def test_compiling_nothing_fails(project, body, line):
    made = "def produces(x):\n    yield x + 1\n"
    result = project.run(text=f"{made}\n@pytest.mark.max_recompiles(0)\ndef test_one():\n    {body}\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([line])


def test_compiling_nothing_can_be_allowed(project):
    project.run(
        text="""
        @pytest.mark.dynacheck(max_recompiles=0, allow=["nothing-compiled"])
        def test_allowed():
            pass

        @pytest.mark.max_graphs(0)
        def test_asserted():
            pass

        def test_fixture(dynacheck):
            with dynacheck.expect(graphs=0):
                clean(X)
        """
    ).assert_outcomes(passed=3)


def test_ending_in_eager_fails(project):
    result = project.run(
        text="""
        class Modes(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.n = 0

            def forward(self, x):
                return x + self.n

        @pytest.mark.max_recompiles(20)
        def test_limit():
            model = Modes()
            compiled = torch.compile(model)
            for n in range(10):
                model.n = n + 2
                compiled(X)

        @pytest.mark.max_graph_breaks(1)
        def test_loop():
            torch.compile(looping)(X)

        @pytest.mark.dynacheck(max_graph_breaks=1, allow=["eager:skip@*:looping", "nothing-compiled"])
        def test_allowed():
            torch.compile(looping)(X)
        """
    )
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(
        [
            "Modes.forward ran eagerly in 2 calls: its recompile limit is reached",
            "looping ran eagerly in 1 call: a graph break gave it up",
        ]
    )


def test_a_graph_budget_that_hides_breaks_says_so(project):
    result = project.run(text="@pytest.mark.max_graphs(2)\ndef test_one():\n    torch.compile(printing)(X)\n")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["dynacheck: test_it.py::test_one: max_graphs(2) holds, with 1 graph break"])
