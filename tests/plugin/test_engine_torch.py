"""Engine `torch`: the installed torch.compile runs the tests and fills the same reports."""

from __future__ import annotations

import textwrap

import pytest

BODIES = {
    "recompile": """
        def test_one():
            model = Scaled()
            compiled = torch.compile(model)
            compiled(X)
            model.scale = 0.6
            compiled(X)
        """,
    "a cache that grows": """
        class Cache(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.k = torch.zeros(2, 2)

            def forward(self, x):
                self.k = torch.cat([self.k, x])
                return self.k.sum(0)

        def test_one():
            compiled = torch.compile(Cache())
            for _ in range(4):
                compiled(torch.ones(1, 2))
        """,
    "a dict that it adds to": """
        def step(state):
            state["loss"] = state["obs"].sum()
            return state["loss"]

        def test_one():
            state, compiled = {"obs": X}, torch.compile(step)
            compiled(state), compiled(state)
        """,
    "what a property and __getattr__ read": """
        class Gain(torch.nn.Module):
            scale = property(lambda self: self.own * 2)

            def __init__(self):
                super().__init__()
                self.own = 1.0

            def forward(self, x, config):
                return x * self.own_scale() + (1 if config.shift else 2)

            own_scale = lambda self: self.scale

        class Config:
            def __init__(self, **kept):
                self.__dict__["kept"] = kept

            def __getattr__(self, name):
                return self.__dict__["kept"][name]

        def test_one():
            model = Gain()
            compiled = torch.compile(model)
            compiled(X, Config(shift=True))
            model.own = 2.0
            compiled(X, Config(shift=True)), compiled(X, Config(shift=False))
        """,
    "break": "def test_one():\n    torch.compile(printing)(X)\n",
    "given_up": "def test_one():\n    f = torch.compile(looping)\n    f(X), f(X)\n",
    "given_up_below": """
        def inner(x):
            for _ in range(2):
                x = looping(clean(x))
            return x

        def outer(x):
            return inner(x) + inner(x)

        def test_one(dynacheck):
            f = torch.compile(outer)
            f(X)
            with dynacheck.expect(graphs=0, allow=["eager:skip@*:looping", "eager:skip@*:inner"]):
                f(X), f(X)
            torch._dynamo.reset(), f(X[:3])
        """,
    "given_up_twice_compiled": """
        def test_one():
            for backend in ("eager", "aot_eager"):
                torch.compile(looping, backend=backend)(X)
        """,
    "caught": """
        def test_one():
            f = torch.compile(printing, fullgraph=True)
            for _ in range(2):
                with pytest.raises(torch._dynamo.exc.Unsupported):
                    f(X)
            torch.compile(clean)(X)
        """,
    "limit": """
        def test_one():
            compiled = torch.compile(Counting())
            for _ in range(10):
                compiled(X)
        """,
    "limit_that_raises": """
        def test_one():
            compiled = torch.compile(Counting())
            with torch._dynamo.config.patch(recompile_limit=2, fail_on_recompile_limit_hit=True):
                for n in range(4):
                    with contextlib.suppress(torch._dynamo.exc.FailOnRecompileLimitHit):
                        compiled(X)
            compiled(X)
        """,
    "sizes": "def test_one():\n    f = torch.compile(clean, dynamic=False)\n    f(X), f(X[:3]), f(X[:1])\n",
    "what becomes dynamic, and what does not": """
        def picked(x):
            return x * [1, 2, 3, 4, 5][x.shape[0]]

        def test_one():
            marked, varies = torch.compile(lambda x: x.sin()), torch.compile(lambda x, n: x * n)
            for size in (4, 3):
                x = torch.ones(size)
                torch._dynamo.mark_static(x, 0)
                marked(x)
            for f in (torch.compile(clean), torch.compile(picked)):
                f(X), f(X[:3]), f(X[:2])
            fixed = torch.compile(lambda x, n: x + n, dynamic=False)
            varies(X, 0.5), varies(X, 0.25), fixed(X, 3), fixed(X, 4)
        """,
    "modules with numbers of their own": """
        class Layer(torch.nn.Module):
            def __init__(self, number):
                super().__init__()
                self.number = number

            def forward(self, x):
                return x * self.number

        def test_one():
            first, second = Layer(2), Layer(3)
            for layer in (first, second):
                torch.compile(layer)(X)
            second.number, kept = 4, []
            torch.compile(second)(X)
            model = torch.nn.Sequential(torch.nn.Tanh())
            model[0].register_forward_hook(lambda module, args, out: kept.append(out))
            compiled = torch.compile(model)
            compiled(X), compiled(X)
        """,
    "stance": """
        def test_one():
            f = torch.compile(clean)
            f(X)
            with torch.compiler.set_stance("force_eager"):
                f(X)
            f(X)
        """,
    "keys_that_are_no_constants": """
        class Sums(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.by_tensor = {torch.nn.Parameter(torch.ones(4)): [1.5] for _ in range(2)}

            def forward(self, x):
                for tensor, factors in self.by_tensor.items():
                    for factor in factors:
                        x = x * tensor * factor
                return x

        def test_one():
            model = Sums()
            f = torch.compile(model)
            f(X)
            list(model.by_tensor.values())[1].append(2.5)
            f(X)
        """,
    "module_of_torch": "def test_one():\n    f = torch.compile(torch.nn.ReLU())\n    f(X), f(X.double())\n",
    "branch_on_a_size": """
        class Block(torch.nn.Module):
            def forward(self, x):
                return x * 2 if x.shape[0] > 8 else x.sin()

        def test_one():
            for model in (Block(), torch.nn.Sequential(Block())):
                f = torch.compile(model)
                for size in (16, 2):
                    x = torch.ones(size)
                    torch._dynamo.mark_dynamic(x, 0)
                    f(x)
        """,
    "fixture": """
        def test_one(dynacheck):
            f = dynacheck.compile(clean)
            f(X)
            with dynacheck.steady(of=f):
                f(X)
            with dynacheck.expect(recompiles=1, of=f):
                f(X.double())
        """,
    "reset": """
        def test_one():
            f = torch.compile(clean)
            f(X), torch._dynamo.reset(), f(X)
        """,
}
SHARED = """
import json
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.dynacheck(max_graphs=50, allow=["eager:*", "nothing-compiled"]))

def pytest_runtest_logreport(report):
    data = getattr(report, "dynacheck", None)
    if data is not None and report.when == "call":
        print(report.outcome, json.dumps(data))
"""


def told(project, engine, body):
    """What a test's report carries under an engine."""
    import json

    result = project.run(
        "-s", f"--dynacheck-engine={engine}", text=f"import contextlib\n{textwrap.dedent(body)}"
    )
    (line,) = [line for line in result.outlines if "{" in line]
    outcome, _, data = line.partition(" {")
    assert outcome.rpartition(".")[2] == "passed", result.outlines
    found = json.loads("{" + data)
    assert found["engine"] == engine
    return found


HINTS = {
    "modules with numbers of their own": "another module of the class",
    "a cache that grows": "use a static cache",
    "a dict that it adds to": "adds keys to it (line",
    "sizes": "dynamic=False (or",
    "what becomes dynamic, and what does not": "mark_static keeps this size constant",
}


@pytest.mark.parametrize("name", BODIES)
def test_both_engines_tell_the_same(project, name):
    project.pytester.makeconftest(SHARED)
    torch, bundled = (told(project, engine, BODIES[name]) for engine in ("torch", "bundled"))
    assert bundled["counts"]["calls"] > 0
    for key in ("counts", "causes", "budgets"):
        assert torch[key] == bundled[key]
    for key in ("source", "kind", "subject", "then", "now", "hint", "decided", "line"):
        assert [r["changes"][0][key] for r in torch["recompiles"]] == [
            r["changes"][0][key] for r in bundled["recompiles"]
        ]
    if name in HINTS:
        assert HINTS[name] in torch["recompiles"][0]["changes"][0]["hint"]
    for key in ("line", "function", "text", "hint", "stack"):
        assert [b[key] for b in torch["graph_breaks"]] == [b[key] for b in bundled["graph_breaks"]]
    assert [(c["function"], c["outcome"], c["at"]) for c in torch["calls"]] == [
        (c["function"], c["outcome"], c["at"]) for c in bundled["calls"]
    ]


def test_a_marker_chooses_the_engine(project):
    result = project.run(
        text="""
        import sys

        def counted():
            return dict(sys.modules["torch._dynamo.utils"].counters["frames"])

        @pytest.mark.dynacheck(engine="torch", graphs=1)
        def test_torch():
            before = counted()
            torch.compile(clean)(X)
            assert counted() != before

        @pytest.mark.dynacheck(graphs=1)
        def test_ours():
            before = counted()
            torch.compile(clean)(X)
            assert counted() == before
        """
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["dynacheck: 2 tests (engine bundled, backend eager; engine torch, backend eager)"]
    )


def test_what_was_compiled_before_the_test_is_told_too(project):
    project.run(
        "--dynacheck-engine=torch",
        text="""
        @torch.compile
        def decorated(x):
            return x + 1

        @torch.compile(mode="reduce-overhead")
        def library(x):
            return x + 1

        model = Scaled()
        model.compile()

        @pytest.mark.max_graphs(1)
        def test_decorated(dynacheck):
            decorated(X), decorated(X)
            assert [call.outcome for call in dynacheck.report.calls] == ["miss", "hit"]
            assert dynacheck.report.graphs[0].backend == "eager"

        @pytest.mark.max_graphs(1)
        def test_the_same_again(dynacheck):
            decorated(X)
            assert [call.outcome for call in dynacheck.report.calls] == ["miss"]

        @pytest.mark.max_graphs(1)
        def test_mode(dynacheck):
            library(X)
            assert dynacheck.report.graphs[0].backend == "eager"

        @pytest.mark.max_graphs(1)
        def test_module():
            model(X)
        """,
    ).assert_outcomes(passed=4)


def test_backends_are_as_written_where_asked_for(project):
    project.run(
        "--dynacheck-engine=torch", "--dynacheck-backend=aot_eager",
        text="""
        def mine(gm, inputs):
            return gm.forward

        def backend_of(report):
            return report.graphs[0].backend

        @pytest.mark.max_graphs(1)
        def test_default(dynacheck):
            torch.compile(clean)(X)
            assert backend_of(dynacheck.report) == "aot_eager"

        @pytest.mark.max_graphs(1)
        def test_own(dynacheck):
            torch.compile(clean, backend=mine)(X)
            assert backend_of(dynacheck.report) == "mine"
        """,
    ).assert_outcomes(passed=2)  # fmt: skip


def test_stock_torch_is_reset_only_where_it_is_the_engine(project):
    project.run(
        text="""
        entries = torch._dynamo.eval_frame._debug_get_cache_entry_list
        kept = torch.compile(clean, backend="eager")

        def test_compiled_by_torch():
            torch._dynamo.reset()
            kept(X)
            assert len(entries(clean.__code__)) == 1

        @pytest.mark.dynacheck(graphs=2)
        def test_ours():
            torch.compile(printing)(X)

        def test_still_there():
            assert len(entries(clean.__code__)) == 1

        @pytest.mark.dynacheck(engine="torch", graphs=2)
        def test_torch():
            torch.compile(printing)(X)

        def test_gone():
            assert len(entries(clean.__code__)) == 0
        """
    ).assert_outcomes(passed=5)


def test_fullgraph_raises_torchs_own(project):
    result = project.run(
        "--dynacheck-engine=torch", "--dynacheck-fullgraph",
        text="""
        import torch._dynamo.exc

        @pytest.mark.max_graphs(1)
        def test_one():
            torch.compile(printing)(X)

        @pytest.mark.max_graph_breaks(1)
        def test_allowed():
            torch.compile(printing)(X)

        @pytest.mark.dynacheck(allow=["break:*", "eager:*", "nothing-compiled"])
        def test_raises():
            with pytest.raises(torch._dynamo.exc.Unsupported):
                torch.compile(printing, fullgraph=True)(X)
        """,
    )  # fmt: skip
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["E * torch._dynamo.exc.Unsupported: *", "*, in printing", "all counts: graphs 0, graph breaks 0, *"]
    )
    assert not any("eager runs --" in line for line in result.outlines)


def test_a_failing_report_says_which_engine_and_no_more(project):
    result = project.run(
        "--dynacheck-engine=torch",
        text="@pytest.mark.max_graphs(1)\ndef test_one():\n    torch.compile(printing)(X)\n",
    )
    result.stdout.fnmatch_lines(["*dynacheck (engine torch, backend eager, torch *)*"])
    result.stdout.no_fnmatch_line("*check with: --dynacheck-engine*")


def test_a_failing_report_of_ours_says_how_to_ask_torch(project):
    result = project.run(text="@pytest.mark.max_graphs(1)\ndef test_one():\n    torch.compile(printing)(X)\n")
    result.stdout.fnmatch_lines(["check with: --dynacheck-engine=torch"])


def silenced(monkeypatch, hook):
    """Makes one hook not answer, as on a torch that has changed."""
    from pytest_dynacheck.engines import stock

    monkeypatch.setitem(stock._HOOKS, hook, lambda: None)
    monkeypatch.setattr(stock, "_silent", None)


@pytest.mark.parametrize(
    ("hook", "count"),
    [
        ("graphs", "graphs"),
        ("breaks", "graph_breaks"),
        ("recompiles", "recompiles"),
        ("frames", "cache_entries"),
    ],
)
def test_a_count_that_torch_does_not_tell_is_never_0(project, monkeypatch, hook, count):
    silenced(monkeypatch, hook)
    result = project.run(
        "--dynacheck-engine=torch", "-v",
        text=f"""
        @pytest.mark.max_{count}(5)
        def test_one():
            torch.compile(clean)(X)

        @pytest.mark.dynacheck(allow=["nothing-compiled"])
        def test_without_a_budget(dynacheck):
            torch.compile(clean)(X)
            assert dynacheck.report.counts["{count}"] is None
        """,
    )  # fmt: skip
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines([f"max_{count}(5): this engine can't count {count} on this version of torch"])
    (note,) = [line for line in result.outlines if line.startswith("dynacheck: engine torch can't count ")]
    assert count in note
    result.stdout.fnmatch_lines(["dynacheck: 2 tests, 1 with counts the engine can't know *"])


def test_threads_that_call_at_once_are_recompiles_of_torchs(project):
    result = project.run(
        "--dynacheck-engine=torch",
        text="""
        import threading

        def test_one(dynacheck):
            f, all_there = torch.compile(clean), threading.Barrier(3)

            def call():
                all_there.wait()
                f(X)

            threads = [threading.Thread(target=call) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            counts, causes = dynacheck.report.counts, dynacheck.report.causes
            assert counts["graphs"] == counts["cache_entries"] == counts["recompiles"] + 1
            assert set(causes) <= {"recompile:other:entry for the same values@programs.py:clean"}
        """,
    )
    result.assert_outcomes(passed=1)


def test_what_torch_gave_up_is_marked_as_torch_marks_it_afterwards(project):
    project.run(
        "--dynacheck-engine=torch", "--dynacheck-isolate=off",
        text="""
        from torch._dynamo.utils import counters

        compiled = []

        @pytest.mark.dynacheck(allow=["eager:*", "nothing-compiled"])
        def test_given_up(dynacheck):
            compiled.append(torch.compile(looping))
            compiled[0](X), compiled[0](X)
            assert [call.eager for call in dynacheck.report.calls] == [("eager:skip@programs.py:looping",)] * 2

        def test_not_tried_again():
            before = counters["frames"]["total"]
            compiled[0](X)
            assert counters["frames"]["total"] == before
        """,
    ).assert_outcomes(passed=2)  # fmt: skip


def test_what_the_engine_compiles_to_ask_torch_is_not_in_the_log(project):
    text = "@pytest.mark.max_graphs(0)\ndef test_one():\n    torch.compile(clean)(X)\n"
    code = "import pytest_dynacheck.engines.stock as s; s._silent = None"
    project.pytester.makeconftest(code)
    result = project.run("--dynacheck-engine=torch", text=text)
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*torch.__trace*")


def test_watching_alone_leaves_torch_as_it_is(project):
    result = project.run(
        "--dynacheck", "--dynacheck-engine=torch",
        text="def test_one():\n    torch.compile(clean, backend='aot_eager')(X)\n",
    )  # fmt: skip
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["* not judged  test_it.py::test_one"])


def test_threads_are_counted(project):
    project.run(
        "--dynacheck-engine=torch",
        text="""
        import threading

        @pytest.mark.dynacheck(graphs=1)
        def test_one():
            thread = threading.Thread(target=torch.compile(clean), args=(X,))
            thread.start()
            thread.join()
        """,
    ).assert_outcomes(passed=1)


def test_under_xdist(project):
    result = project.run(
        "-n1", "--dynacheck-engine=torch",
        text="@pytest.mark.max_graphs(1)\ndef test_one():\n    torch.compile(printing)(X)\n",
    )  # fmt: skip
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["dynacheck: 1 test, 1 over budget (engine torch, backend eager)"])
