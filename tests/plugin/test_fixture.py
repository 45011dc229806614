"""The dynacheck fixture: compile, report, expect, steady."""

from __future__ import annotations


def test_compile_is_torch_compile_on_the_engine_under_test(project):
    project.run(
        text="""
        def test_function(dynacheck):
            f = dynacheck.compile(clean)
            assert torch.equal(f(X), clean(X))
            assert dynacheck.report.counts["graphs"] == 1

        def test_decorator(dynacheck):
            @dynacheck.compile(fullgraph=True)
            def f(x):
                return x * 2

            assert torch.equal(f(X), X * 2)
            assert dynacheck.report.counts["graphs"] == 1

        def test_module(dynacheck):
            model = dynacheck.compile(Scaled())
            assert torch.equal(model(X), X * 0.5)

        def test_no_callable(dynacheck):
            with pytest.raises(TypeError, match="takes a function or a module, not int"):
                dynacheck.compile(3)
            dynacheck.compile(clean)(X)
        """
    ).assert_outcomes(passed=4)


def test_report_is_frozen_and_of_the_call_phase(project):
    project.run(
        text="""
        @pytest.fixture
        def warm(dynacheck):
            f = dynacheck.compile(clean)
            f(X)
            return f

        def test_one(dynacheck, warm):
            assert dynacheck.report.counts["graphs"] == 0
            assert dynacheck.report.setup["graphs"] == 1
            before = dynacheck.report
            warm(X)
            assert before.calls == ()
            assert [call.outcome for call in dynacheck.report.calls] == ["hit"]
            assert dynacheck.report.of(clean).counts["calls"] == 1
            assert dynacheck.report.of(printing).counts["calls"] == 0
        """
    ).assert_outcomes(passed=1)


def test_expect(project):
    result = project.run(
        text="""
        def test_holds(dynacheck):
            f = dynacheck.compile(clean)
            with dynacheck.expect(graphs=1, recompiles=0):
                f(X)
            with dynacheck.expect(recompiles=1, of=f):
                f(X[:3])
            with dynacheck.expect(max_recompiles=0, graphs=0):
                f(X)

        def test_allows(dynacheck):
            f = dynacheck.compile(clean)
            f(X)
            with dynacheck.expect(max_recompiles=0, allow=["recompile:size:*"]):
                f(X[:3])

        def test_fails(dynacheck):
            f = dynacheck.compile(clean)
            f(X)
            with dynacheck.expect(max_recompiles=0):
                f(X[:3])

        def test_empty(dynacheck):
            dynacheck.compile(clean)(X)
            with dynacheck.expect(max_recompiles=0):
                pass

        def test_wrong_argument(dynacheck):
            dynacheck.compile(clean)(X)
            with dynacheck.expect(recompile=0):
                pass
        """
    )
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines(
        [
            "in expect() at test_it.py:21: 1 recompile, max_recompiles(0)",
            "in expect() at test_it.py:26: nothing was compiled: *",
            "*expect() has no argument 'recompile'; did you mean 'recompiles'?",
        ]
    )


def test_wrong_arguments_are_refused_where_they_are_given(project):
    result = project.run(
        text="""
        def test_name(dynacheck):
            dynacheck.expect(recompile=0)

        def test_number(dynacheck):
            dynacheck.expect(graphs=-2)

        def test_nothing(dynacheck):
            dynacheck.expect(allow=["break:*"])

        def test_of(dynacheck):
            dynacheck.expect(of=3, graphs=1)

        def test_steady(dynacheck):
            dynacheck.steady(of=3)

        def test_compile(dynacheck):
            dynacheck.compile(clean, fullgrph=True)

        def test_check(dynacheck):
            dynacheck.check(clean, [X], tol=1)
        """
    )
    result.assert_outcomes(failed=7)
    result.stdout.fnmatch_lines(
        [
            ">       dynacheck.expect(recompile=0)",
            "E       *UsageError: expect() has no argument 'recompile'; did you mean 'recompiles'?",
            "E       *UsageError: expect(): graphs takes a number from 0 on, not -2",
            "E       *UsageError: expect() takes at least one number: graphs, *, max_graphs, *",
            "E       TypeError: expect(of=) takes a compiled function or module, not int",
            "E       TypeError: steady(of=) takes a compiled function or module, not int",
            "E       TypeError: dynacheck.compile() has no argument 'fullgrph'; did you mean 'fullgraph'?",
            "E       TypeError: dynacheck.check() has no argument 'tol'; did you mean '?tol'?",
        ]
    )
    result.stdout.no_fnmatch_line("*contextlib*")
    result.stdout.no_fnmatch_line("*_fixture.py*")


def test_an_error_inside_expect_is_the_tests_own(project):
    result = project.run(
        text="""
        def test_fails(dynacheck):
            f = dynacheck.compile(clean)
            with dynacheck.expect(graphs=7):
                f(X)
                raise KeyError("mine")
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*KeyError: 'mine'"])


def test_steady(project):
    result = project.run(
        text="""
        def test_holds(dynacheck):
            f = dynacheck.compile(clean)
            f(X)
            with dynacheck.steady():
                f(X)

        def test_recompiles(dynacheck):
            f = dynacheck.compile(clean)
            f(X)
            with dynacheck.steady():
                f(X)
                f(X[:3])

        def test_calls_nothing(dynacheck):
            dynacheck.compile(clean)(X)
            with dynacheck.steady():
                pass

        def test_calls_another(dynacheck):
            f, model = dynacheck.compile(clean), dynacheck.compile(Scaled())
            f(X)
            with dynacheck.steady(of=model):
                f(X)

        def test_expects_another(dynacheck):
            f, model = dynacheck.compile(clean), dynacheck.compile(Scaled())
            with dynacheck.expect(max_graphs=1, of=model):
                f(X)
        """
    )
    result.assert_outcomes(passed=1, failed=4)
    result.stdout.fnmatch_lines(
        [
            "not steady: call 2 of clean at test_it.py:14 compiled: recompile:size:x@programs.py:clean",
            "not steady: the block calls nothing that is compiled",
            "not steady: the block doesn't call Scaled",
            "in expect() at test_it.py:*: nothing was compiled: the block doesn't call Scaled",
        ]
    )


def test_blocks_may_be_nested_and_entered_again(project):
    project.run(
        text="""
        def test_nested(dynacheck):
            f = dynacheck.compile(clean)
            with dynacheck.expect(graphs=1):
                with dynacheck.expect(max_graphs=1):
                    f(X)
                with dynacheck.steady():
                    f(X)

        def test_again(dynacheck):
            f = dynacheck.compile(clean)
            f(X)
            steady, one = dynacheck.steady(of=f), dynacheck.expect(graphs=1)
            for size in (3, 2):
                with one if size == 3 else steady:
                    f(X[:size])
                with steady:
                    f(X[:size])
        """
    ).assert_outcomes(passed=2)


def test_a_block_that_is_never_begun_is_told(project):
    result = project.run(
        text="""
        def test_expect(dynacheck):
            dynacheck.compile(clean)(X)
            dynacheck.expect(max_graphs=0)

        def test_steady(dynacheck):
            dynacheck.compile(clean)(X)
            dynacheck.steady()
        """
    )
    result.assert_outcomes(failed=2)
    for line in ("expect() at test_it.py:5", "steady() at test_it.py:9"):
        result.stdout.fnmatch_lines([f"{line} is no `with` block, so it proves nothing"])


def test_the_fixture_has_to_be_an_argument(project):
    result = project.run(
        text="""
        def test_one(request):
            request.getfixturevalue("dynacheck")
        """
    )
    result.stdout.fnmatch_lines(["dynacheck: name the fixture as an argument *"])


def test_fixtures_are_documented(project):
    result = project.run("--fixtures")
    result.stdout.fnmatch_lines(["dynacheck -- *", "*Compile, look at what was compiled so far*"])
