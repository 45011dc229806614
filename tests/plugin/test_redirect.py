"""The seam: whatever torch compiled, whenever, is run by the engine under test, and only during the test."""

from __future__ import annotations

import pytest

CHECK = """
import sys

frames = torch._dynamo.utils.counters["frames"]


@pytest.fixture(autouse=True)
def nothing_by_torch():
    before = dict(frames)
    yield
    assert dict(frames) == before
"""


def body(text):
    return "\n".join(["import torch._dynamo", CHECK, text])


@pytest.mark.parametrize(
    ("made", "call"),
    [
        ("@torch.compile(backend='eager')\ndef f(x):\n    return x + 1\n", "f(X)"),
        ("f = torch.compile(clean)\n", "f(X)"),
        ("from torch import compile as other\n", "other(clean)(X)"),
        ("model = torch.compile(Scaled())\n", "model(X)"),
        ("model = torch.compile(torch.nn.Linear(4, 4))\n", "model(X)"),
        ("model = Scaled()\nmodel.compile()\n", "model(X)"),
        ("", "model = Scaled(); model.compile(); model(X)"),
        ("", "torch.compile(fullgraph=True)(clean)(X)"),
        ("", "torch.compiler.compile(clean)(X)"),
        ("", "torch._dynamo.optimize('eager')(clean)(X)"),
        (
            "class A:\n    @torch.compile(dynamic=True)\n    def go(self, x):\n        return x * 2\n",
            "A().go(X)",
        ),
        ("@torch.compile\ndef f(x):\n    return x + 1\n", "torch.compile(f)(X)"),
        ("@torch.compile\nclass A:\n    def __call__(self, x):\n        return x * 2\n", "A()(X)"),
        (
            "@torch.compile\nclass A(torch.nn.Module):\n    def forward(self, x):\n        return x * 2\n",
            "A()(X)",
        ),
        ("class A(Scaled):\n    forward = torch.compile(Scaled.forward)\n", "A()(X)"),
        ("import functools\nf = functools.partial(torch.compile(clean), x=X)\n", "f()"),
        (
            "import functools\ninner = torch.compile(clean)\n\n@functools.wraps(inner)\ndef f(x):\n    return inner(x)\n",
            "f(X)",
        ),
        (
            "class Averaged(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.module = torch.compile(Scaled())\n\n    def forward(self, x):\n        return self.module(x)\n"
            "\nmodel = Averaged()\n",
            "model(X)",
        ),
        ("", "torch.compile(clean, mode='reduce-overhead')(X)"),
        ("", "torch.compile(clean, options={'triton.cudagraphs': True})(X)"),
    ],
)
def test_every_way_to_compile(project, made, call):
    text = f"{made}\n\n@pytest.mark.dynacheck(graphs=1)\ndef test_one():\n    {call}\n"
    result = project.run(text=body(text))
    result.assert_outcomes(passed=1)


def test_keywords_of_earlier_compiles_are_kept(project):
    project.run(
        text=body(
            """
            seen = []

            def backend(gm, inputs):
                seen.append(len(inputs))
                return gm.forward

            @torch.compile(backend=backend, fullgraph=True)
            def f(x):
                return x + 1

            @torch.compile(fullgraph=True)
            def g(x):
                print("seen")
                return x + 1

            @pytest.mark.max_graphs(1)
            def test_backend():
                f(X)
                assert seen == [1]

            @pytest.mark.max_graphs(1)
            def test_fullgraph():
                f(X)
                with pytest.raises(Exception, match="(?i)print"):
                    g(X)
            """.replace("\n            ", "\n")
        )
    ).assert_outcomes(passed=2)


WRONG = {
    "mode='nonsense'": "RuntimeError: Unrecognized mode=nonsense",
    "mode=3": "mode",
    "options={'nonsense': 1}": "RuntimeError: Unexpected optimization option nonsense",
    "options={'max_autotune': 'x'}": "RuntimeError: Unexpected type of attr max_autotune, got str should be bool",
    "mode='reduce-overhead', options={'max_autotune': True}": "RuntimeError: *mode or options*",
}


@pytest.mark.parametrize("engine", ["bundled", "torch"])
def test_what_torch_compile_refuses_of_inductors_keywords_is_refused(project, engine):
    """Although inductor is replaced, and they go with it."""
    body = (
        f"@pytest.mark.parametrize('n', range({len(WRONG)}))\n@pytest.mark.max_graphs(1)\ndef test_one(n):\n"
    )
    body += "".join(
        f"    if n == {n}:\n        torch.compile(clean, {given})\n" for n, given in enumerate(WRONG)
    )
    result = project.run(f"--dynacheck-engine={engine}", "--tb=line", "-rf", text=body)
    result.assert_outcomes(failed=len(WRONG))
    result.stdout.fnmatch_lines(
        [f"FAILED *test_one[[]{n}] - *{says}*" for n, says in enumerate(WRONG.values())]
    )


FILTERED = """
import torch._dynamo

def but_the_scale(guards):
    return ["scale" not in guard.name for guard in guards]

model = Scaled()
early = torch.compile(model, options={"guard_filter_fn": but_the_scale})

@pytest.mark.max_recompiles(0)
@pytest.mark.parametrize("late", [False, True])
def test_one(late, monkeypatch):
    options = {"guard_filter_fn": but_the_scale, "max_autotune": True}
    compiled = torch.compile(model, options=options) if late else early
    assert set(options) == {"guard_filter_fn", "max_autotune"} or not late
    compiled(X)
    monkeypatch.setattr(model, "scale", 0.7)
    compiled(X)
"""


def test_guards_that_are_left_out_on_purpose(project):
    """The installed torch.compile leaves them out whenever it was asked; ours, which doesn't, says so."""
    project.run("--dynacheck-engine=torch", text=FILTERED).assert_outcomes(passed=2)
    result = project.run("--tb=line", text=FILTERED)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["*NotImplementedError: compile: the option guard_filter_fn isn't supported: *"]
    )


def test_the_mode_of_an_earlier_compile_is_kept_where_inductor_stays(project):
    project.run(
        "--dynacheck-backend=as-written",
        text="""
        early = torch.compile(clean, mode="max-autotune-no-cudagraphs")

        @pytest.mark.max_graphs(1)
        def test_one(dynacheck, monkeypatch):
            given = {}
            monkeypatch.setattr(dynacheck._run.compiling, "_compile", lambda fn, **kw: given.update(kw) or fn)
            early(X)
            assert given["backend"] == "inductor" and given["options"]["max_autotune"]
            pytest.skip("it would take seconds")
        """,
    ).assert_outcomes(skipped=1)


def test_tests_that_are_not_under_test_run_torch(project):
    project.run(
        text="""
        import torch._dynamo

        torch._dynamo.reset()

        @torch.compile(backend="eager")
        def f(x):
            return x + 1

        def frames():
            return sum(torch._dynamo.utils.counters["frames"].values())

        @pytest.mark.max_graphs(1)
        def test_first():
            before = frames()
            f(X)
            assert frames() == before

        def test_plain():
            before = frames()
            f(X)
            assert frames() > before

        @pytest.mark.max_graphs(1)
        def test_again():
            before = frames()
            f(X)
            assert frames() == before
        """
    ).assert_outcomes(passed=3)


def test_everything_is_as_before_afterwards(project):
    import torch
    import torch._dynamo.eval_frame as eval_frame

    before = (torch.compile.__code__, torch._dynamo.reset.__code__, eval_frame._TorchDynamoContext.__call__)
    project.run(text="@pytest.mark.max_graphs(1)\ndef test_one():\n    torch.compile(clean)(X)\n")
    after = (torch.compile.__code__, torch._dynamo.reset.__code__, eval_frame._TorchDynamoContext.__call__)
    assert before == after


def test_a_reset_of_torch_resets_the_engine_and_keeps_the_counts(project):
    project.run(
        text="""
        import torch._dynamo

        @pytest.mark.dynacheck(graphs=3, recompiles=0, cache_entries=1)
        def test_one():
            f = torch.compile(clean)
            f(X)
            torch._dynamo.reset()
            f(X)
            torch.compiler.reset()
            f(X)
        """
    ).assert_outcomes(passed=1)


def test_explain_is_the_engines(project):
    project.run(
        text="""
        import torch._dynamo

        @pytest.mark.max_graphs(2)
        def test_one():
            found = torch._dynamo.explain(printing)(X)
            assert (found.graph_count, found.graph_break_count) == (2, 1)
        """
    ).assert_outcomes(passed=1)


def test_limits_set_through_torch_apply(project):
    project.run(
        text="""
        import torch._dynamo

        @pytest.mark.dynacheck(recompiles=1, allow=["eager:limit@*"])
        def test_one():
            f = torch.compile(clean)
            with torch._dynamo.config.patch(recompile_limit=2):
                for dtype in (torch.float16, torch.float32, torch.float64):
                    f(X.to(dtype))
        """
    ).assert_outcomes(passed=1)


TORCHS_OWN = """
import torch._dynamo
import torch._dynamo.testing
from torch._dynamo.eval_frame import OptimizedModule

DTYPES = (torch.float16, torch.float32, torch.float64)


@pytest.mark.max_graphs(2)
def test_counter_as_a_backend():
    counter = torch._dynamo.testing.CompileCounter()
    f = torch.compile(lambda x: torch.relu(x) * 2, backend=counter)
    f(X), f(X), f(X.double())
    assert (counter.frame_count, counter.op_count) == (2, 4)


@pytest.mark.max_graphs(1)
def test_counter_with_a_backend():
    counter = torch._dynamo.testing.CompileCounterWithBackend("eager")
    torch.compile(lambda x: torch.relu(x) * 2, backend=counter, fullgraph=True)(X)
    assert counter.frame_count == len(counter.graphs) == 1


@pytest.mark.max_graphs(1)
def test_a_module_is_torchs():
    model = Scaled()
    compiled = torch.compile(model)
    compiled(X)
    assert isinstance(compiled, OptimizedModule) and not isinstance(compiled, Scaled)
    assert compiled._orig_mod is model and compiled.scale == 0.5


@pytest.mark.max_graphs(1)
def test_error_on_recompile():
    f = torch.compile(clean)
    f(X)
    with torch._dynamo.config.patch(error_on_recompile=True):
        f(X)
        with pytest.raises(torch._dynamo.exc.RecompileError):
            f(X.double())


@pytest.mark.dynacheck(graphs=2, recompiles=1)
def test_the_limit_is_an_error():
    f = torch.compile(clean)
    with torch._dynamo.config.patch(cache_size_limit=2, fail_on_recompile_limit_hit=True):
        f(X), f(X.double())
        with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
            f(X.half())


@pytest.mark.dynacheck(max_graphs=1, allow=["nothing-compiled"])
def test_a_break_under_fullgraph():
    with pytest.raises(torch._dynamo.exc.Unsupported, match="print"):
        torch.compile(printing, fullgraph=True)(X)


@pytest.mark.max_graphs(1)
def test_a_stance():
    f = torch.compile(clean)
    f(X)
    with torch.compiler.set_stance("fail_on_recompile"):
        f(X)
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            f(X.double())


@pytest.mark.dynacheck(graphs=1, recompiles=0)
def test_a_mark():
    f = torch.compile(clean)
    for size in (4, 3, 2):
        x = X[:size].clone()
        torch._dynamo.mark_dynamic(x, 0)
        f(x)


@pytest.mark.dynacheck(graphs=2, allow=["break:*"])
def test_what_is_disabled():
    inner = torch.compiler.disable(clean)
    torch.compile(lambda x: inner(x + 1) * 2)(X)
"""


@pytest.mark.parametrize("engine", ["bundled", "torch"])
def test_the_rest_of_torchs_testing_api_follows(project, engine):
    result = project.run(f"--dynacheck-engine={engine}", text=TORCHS_OWN)
    result.assert_outcomes(passed=TORCHS_OWN.count("def test_"))


def test_a_torch_that_wraps_in_another_way_is_told(project, monkeypatch):
    from pytest_dynacheck._redirect import Redirection

    monkeypatch.setattr(Redirection, "_check", lambda self, eval_frame: "torch 9.9 wraps in another way")
    result = project.run(text="@pytest.mark.max_graphs(1)\ndef test_one():\n    torch.compile(clean)(X)\n")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["dynacheck: functions compiled before a test can't be redirected: torch 9.9 *"]
    )


def test_the_self_check_passes_on_this_torch():
    import torch._dynamo.eval_frame as eval_frame

    from pytest_dynacheck._redirect import Redirection

    redirection = Redirection()
    assert redirection._check(eval_frame) is None
