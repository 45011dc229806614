"""The texts of reports, whole. Times are the only part that changes."""

from __future__ import annotations

import re
import textwrap

import pytest


def shown(result: pytest.RunResult) -> str:
    """From the failure's message to the summary."""
    lines = result.outlines
    start = next(i for i, line in enumerate(lines) if "FAILURES" in line) + 2
    end = next(i for i, line in enumerate(lines) if line.startswith("dynacheck: "))
    text = "\n".join(lines[start:end])
    text = re.sub(r"\d+ ms", "N ms", text)
    text = re.sub(r"torch \d[\w.+]*", "torch N", text)
    return re.sub(r"-{5,}", "--", text)


def check(project, body, expected, *args):
    result = project.run("--no-header", *args, text=body)
    assert shown(result) == textwrap.dedent(expected).strip() + "\ncheck with: --dynacheck-engine=torch"


def test_a_changed_float(project):
    check(
        project,
        """
        @pytest.mark.max_recompiles(0)
        def test_one():
            model = Scaled()
            compiled = torch.compile(model)
            compiled(X)
            model.scale = 0.6
            compiled(X)
        """,
        """
        1 recompile, max_recompiles(0)
        -- dynacheck (engine bundled, backend eager, torch N) --
        OVER  max_recompiles(0)  counted 1  (marker)
        all counts: graphs 2, graph breaks 0, recompiles 1, cache entries 2, skipped 0, eager runs 0, calls 2
        -- dynacheck: 1 recompile --
        Scaled.forward (programs.py:27) compiled again: entry 1, N ms, triggered at test_it.py:9
          self.scale                               assumed at programs.py:28  return torch.relu(x) * self.scale
        -   0.5
        +   0.6, dynamic from now on
          hint: a Python float read in forward is part of the compiled code; make it a buffer, or pass it as a tensor
          allow with: recompile:value:self.scale@programs.py:Scaled.forward
        """,
    )


def test_a_counter_is_one_row(project):
    check(
        project,
        """
        @pytest.mark.max_recompiles(0)
        def test_one():
            model = torch.compile(Counting())
            for _ in range(4):
                model(X)
        """,
        """
        3 recompiles, max_recompiles(0)
        -- dynacheck (engine bundled, backend eager, torch N) --
        OVER  max_recompiles(0)  counted 3  (marker)
        all counts: graphs 4, graph breaks 0, recompiles 3, cache entries 4, skipped 0, eager runs 0, calls 4
        -- dynacheck: 3 recompiles --
        Counting.forward (programs.py:36) compiled again 3 times: entries 1 to 3, N ms, triggered at test_it.py:7
          self.steps: 0, 1, 2, 3: only ever incremented at programs.py:37
          assumed at programs.py:37  self.steps += 1
          hint: a Python int read in forward is part of the compiled code; make it a buffer, move it out of forward, or set torch._dynamo.config.allow_unspec_int_on_nn_module
          allow with: recompile:value:self.steps@programs.py:Counting.forward
        """,
    )


def test_a_print_in_a_helper(project):
    check(
        project,
        """
        def helper(x):
            return printing(x) + 1

        @pytest.mark.max_graph_breaks(0)
        def test_one():
            torch.compile(helper)(X)
        """,
        """
        1 graph break, max_graph_breaks(0)
        -- Captured stdout call --
        seen
        -- dynacheck (engine bundled, backend eager, torch N) --
        OVER  max_graph_breaks(0)  counted 1  (marker)
        all counts: graphs 3, graph breaks 1, recompiles 0, cache entries 1, skipped 0, eager runs 0, calls 1
        -- dynacheck: 1 graph break --
        programs.py:11 in printing: call that writes output
              print("seen")
          `print()` has a side effect outside the graph and can't be traced.
          hint: remove it, move it out of the compiled function, or add it to torch._dynamo.config.reorderable_logging_functions
          called at test_it.py:4 in helper
          allow with: break:DC103@programs.py:printing
        """,
    )


@pytest.mark.parametrize("engine", ["bundled", "torch"])
def test_a_break_that_torch_asks_for_is_not_the_users_to_remove(project, engine):
    result = project.run(
        f"--dynacheck-engine={engine}",
        text="""
        @pytest.mark.max_graph_breaks(0)
        def test_one():
            weight = torch.ones(4, requires_grad=True)
            weight.sum().backward()
            optimizer = torch.optim.SGD([weight])
            torch.compile(lambda x: (optimizer.step(), x + 1))(X)
        """,
    )
    result.stdout.fnmatch_lines(
        [
            "test_it.py:8 in test_one.<locals>.<lambda>: graph_break() was called",
            "  torch/optim/optimizer.py:* asks for a graph break.",
            "  hint: move the call out of the compiled function, or wrap it in a custom operator",
        ]
    )


def test_a_break_in_a_loop_has_both_keys(project):
    check(
        project,
        """
        @pytest.mark.max_graph_breaks(1)
        def test_one():
            torch.compile(looping)(X)
        """,
        """
        looping ran eagerly in 1 call: a graph break gave it up
        -- Captured stdout call --
        seen
        seen
        -- dynacheck (engine bundled, backend eager, torch N) --
        ok    max_graph_breaks(1)  counted 1  (marker)
        all counts: graphs 0, graph breaks 1, recompiles 0, cache entries 0, skipped 1, eager runs 1, calls 1
        -- dynacheck: 1 graph break --
        programs.py:17 in looping: call that writes output
              print("seen")
          `print()` has a side effect outside the graph and can't be traced.
          looping can't go on after it (break inside a loop) and runs eagerly as a whole
          hint: remove it, move it out of the compiled function, or add it to torch._dynamo.config.reorderable_logging_functions
          allow with: break:DC103@programs.py:looping
          allow with: eager:skip@programs.py:looping
        """,
    )


def test_a_batch_of_one(project):
    check(
        project,
        """
        @pytest.mark.max_recompiles(1)
        def test_one():
            f = torch.compile(clean)
            for size in (4, 3, 1):
                f(X[:size])
        """,
        """
        2 recompiles, max_recompiles(1)
        -- dynacheck (engine bundled, backend eager, torch N) --
        OVER  max_recompiles(1)  counted 2  (marker)
        all counts: graphs 3, graph breaks 0, recompiles 2, cache entries 3, skipped 0, eager runs 0, calls 3
        -- dynacheck: 2 recompiles --
        clean (programs.py:5) compiled again 2 times: entries 1 to 2, N ms, triggered at test_it.py:7
          x (size of dim 0): 4, 3, 1
          assumed at programs.py:6  return torch.relu(x) + 1
          then 2 <= x.size()[0]  assumed at programs.py:6  return torch.relu(x) + 1
          hint: sizes 0 and 1 have entries of their own, whatever is marked dynamic: don't call it with them, or mark_unbacked(x, 0)
          hint: a size that varies is dynamic after one recompile, or from the start with mark_dynamic
          allow with: recompile:size:x@programs.py:clean
        """,
    )


def test_more_with_v_and_all_with_vv(project):
    text = """
    class Many(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = self.b = self.c = self.d = self.e = 1.5

        def forward(self, x):
            return x * self.a * self.b * self.c * self.d * self.e

    @pytest.mark.max_recompiles(0)
    def test_one():
        model = Many()
        compiled = torch.compile(model)
        compiled(X)
        model.a = model.b = model.c = model.d = model.e = 2.5
        compiled(X)
    """
    project.write(text)
    short, all_ = project.run().stdout.str(), project.run("-vv").stdout.str()
    assert "... 2 more values differ (-vv shows all)" in short
    assert "  self.e " not in short
    assert "more values differ" not in all_
    assert "  self.e " in all_
    project.pytester.makeini("[pytest]\nverbosity_dynacheck = 2\n")
    assert "  self.e " in project.run().stdout.str()


def test_a_range_that_a_later_entry_assumed(project):
    check(
        project,
        """
        def even(x):
            n = x.shape[0]
            if n % 2 == 0:
                return x + 1
            return x - 1

        @pytest.mark.max_recompiles(0)
        def test_one():
            f = torch.compile(even)
            for size in (4, 6, 7):
                f(torch.ones(size))
        """,
        """
        2 recompiles, max_recompiles(0)
        -- dynacheck (engine bundled, backend eager, torch N) --
        OVER  max_recompiles(0)  counted 2  (marker)
        all counts: graphs 3, graph breaks 0, recompiles 2, cache entries 3, skipped 0, eager runs 0, calls 3
        -- dynacheck: 2 recompiles --
        even (test_it.py:3) compiled again 2 times: entries 1 to 2, N ms, triggered at test_it.py:13
          x (size of dim 0): 4, 6, 7
          assumed at test_it.py:4  n = x.shape[0]
          then (x.size()[0] % 2) == 0  assumed at test_it.py:5  if n % 2 == 0:
          hint: a branch depends on this size: each side is a graph of its own; pad it so that one side serves
          hint: a size that varies is dynamic after one recompile, or from the start with mark_dynamic
          allow with: recompile:size:x@test_it.py:even
        """,
    )


def test_equal_sizes_were_assumed_by_the_call_that_had_them(project):
    check(
        project,
        """
        @pytest.mark.max_recompiles(0)
        def test_one():
            f = torch.compile(clean, dynamic=True)
            f(torch.ones(4, 4))
            f(torch.ones(4, 6))
        """,
        """
        1 recompile, max_recompiles(0)
        -- dynacheck (engine bundled, backend eager, torch N) --
        OVER  max_recompiles(0)  counted 1  (marker)
        all counts: graphs 2, graph breaks 0, recompiles 1, cache entries 2, skipped 0, eager runs 0, calls 2
        -- dynacheck: 1 recompile --
        clean (programs.py:5) compiled again: entry 1, N ms, triggered at test_it.py:7
          x.size()[1] == x.size()[0]               assumed at test_it.py:6  f(torch.ones(4, 4))
        -   holds: 4 == 4
        +   x.size()[1] is 6, x.size()[0] is 4
          hint: the sizes were equal in the first call and are taken to stay equal: warm up with different ones, or set torch.fx.experimental._config.use_duck_shape = False
          allow with: recompile:expression:x@programs.py:clean
        """,
    )


ASSUMED = [
    ("torch.nn.Linear(4, 4)", "torch.ones(2, 4)", "torch.ones(3, 4)", "input (size of dim 0)"),
    ("torch.nn.Sequential(torch.nn.ReLU())", "torch.ones(2)", "torch.ones(3)", "input (size of dim 0)"),
    ("torch.nn.Softmax(dim=0)", "torch.ones(2)", "torch.ones(2).double()", "input.dtype"),
]


@pytest.mark.parametrize("engine", ["bundled", "torch"])
@pytest.mark.parametrize(("model", "first", "second", "subject"), ASSUMED)
def test_what_a_module_of_torch_needed_was_assumed_by_the_users_call(
    project, engine, model, first, second, subject
):
    result = project.run(
        f"--dynacheck-engine={engine}",
        text=f"""
        @pytest.mark.max_recompiles(0)
        def test_one():
            f = torch.compile({model})
            f({first})
            f({second})
        """,
    )
    result.stdout.fnmatch_lines([f"  {subject} *assumed at test_it.py:6  f({first})"])


@pytest.mark.parametrize("engine", ["bundled", "torch"])
def test_what_torch_needed_inside_a_users_module_was_assumed_on_the_users_line(project, engine):
    result = project.run(
        f"--dynacheck-engine={engine}",
        text="""
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(4, 4)

            def forward(self, x):
                return self.inner(x)

        @pytest.mark.max_recompiles(0)
        def test_one():
            f = torch.compile(Net())
            f(torch.ones(2, 4))
            f(torch.ones(3, 4))
        """,
    )
    result.stdout.fnmatch_lines(["  x (size of dim 0) *assumed at test_it.py:9  return self.inner(x)"])


@pytest.mark.parametrize("engine", ["bundled", "torch"])
def test_a_range_of_sizes_was_assumed_at_the_branch(project, engine):
    result = project.run(
        f"--dynacheck-engine={engine}",
        text="""
        class Block(torch.nn.Module):
            def forward(self, x):
                if x.shape[0] > 8:
                    x = x * 1.0
                return x.sin()

        @pytest.mark.max_recompiles(0)
        def test_one():
            f = torch.compile(torch.nn.Sequential(Block()))
            for size in (16, 2):
                x = torch.ones(size)
                torch._dynamo.mark_dynamic(x, 0)
                f(x)
        """,
    )
    result.stdout.fnmatch_lines(
        [
            "  input (size of dim 0) *assumed at test_it.py:5 in Block.forward  if x.shape[[]0] > 8:",
            "-   9 <= input.size()[[]0]",
            "+   2",
        ]
    )


def test_a_history_in_the_parameters_of_a_module_of_torch(project):
    result = project.run(
        text="""
        @pytest.mark.max_recompiles(0)
        def test_one():
            f = torch.compile(torch.nn.Linear(4, 4))
            for n in (4, 6, 1):
                f(torch.ones(n, 4))
        """
    )
    result.stdout.fnmatch_lines(
        [
            "  input (size of dim 0): 4, 6, 1",
            "  assumed at test_it.py:7  f(torch.ones(n, 4))",
            "  then 2 <= input.size()[[]0]  assumed at test_it.py:7  f(torch.ones(n, 4))",
        ]
    )


STRIDES = [
    ("dynamic=False", "torch.ones(4, 4)", "torch.ones(4, 6)", False),
    ("dynamic=False", "torch.ones(2, 4, 4)", "torch.ones(2, 5, 6)", False),
    ("dynamic=False", "torch.ones(4, 4)", "torch.ones(4, 0)", False),
    ("dynamic=False", "torch.ones(4, 4)", "torch.ones(6, 4).t()", True),  # transposed
    ("dynamic=False", "torch.ones(4, 4)", "torch.ones(4, 8)[:, :6]", True),  # part of a wider one
    ("dynamic=False", "torch.ones(4, 4)", "torch.ones(6, 8)[:, :4]", True),  # its stride isn't that size's
    ("dynamic=True", "torch.ones(2, 4, 4)", "torch.ones(2, 4, 6)", False),
    ("dynamic=True", "torch.ones(2, 4, 4)", "torch.ones(6, 4, 2).transpose(0, 2)", True),
]


@pytest.mark.parametrize(("option", "first", "second", "tells"), STRIDES)
def test_strides_are_shown_unless_they_follow_from_sizes(project, option, first, second, tells):
    project.write(
        f"""
        @pytest.mark.max_recompiles(0)
        def test_one(dynacheck):
            f = torch.compile(clean, {option})
            f({first})
            f({second})
            changes = dynacheck.report.recompiles[0].changes
            print("IN DATA", any("stride" in c.subject for c in changes))
        """
    )
    short, all_ = project.run().stdout.str(), project.run("-vv").stdout.str()

    def strides(text):
        return re.findall(r"^  x(?:\.stride\(\)| \(stride of).*$", text, re.MULTILINE)

    assert "IN DATA True" in short
    assert bool(strides(short)) == tells
    assert strides(all_)


def test_a_report_that_cant_be_made_changes_nothing_else(project, monkeypatch):
    from pytest_dynacheck import _report

    def fault(*args):
        raise KeyError("planted")

    monkeypatch.setattr(_report, "sections", fault)
    result = project.run(
        text="""
        @pytest.mark.max_graphs(0)
        def test_over():
            torch.compile(clean)(X)

        def test_other():
            pass
        """
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["1 graph, max_graphs(0)", "the report can't be made: KeyError: 'planted'"])


def test_setup_is_shown_and_not_counted(project):
    result = project.run(
        text="""
        @pytest.fixture
        def model():
            compiled = torch.compile(clean)
            compiled(X)
            return compiled

        @pytest.mark.max_recompiles(0)
        def test_one(model):
            model(X[:3])
        """
    )
    result.stdout.fnmatch_lines(["compiled in setup, not counted: graphs 1, cache entries 1, calls 1"])


def test_torchs_trace_stays_out_of_the_report(project):
    result = project.run(
        text="""
        import logging
        import torch._dynamo

        logging.getLogger("torch.__trace").setLevel(logging.DEBUG)

        @pytest.mark.max_graphs(0)
        def test_one():
            logging.getLogger("torch.__trace").debug("payload")
            torch.compile(clean)(X)
        """
    )
    result.assert_outcomes(failed=1)
    assert "payload" not in "\n".join(line for line in result.outlines if "__trace:" in line)


def test_torchs_trace_is_for_a_test_that_asks_for_it(project):
    project.run(
        text="""
        import logging
        import torch._dynamo

        def trace(caplog):
            logger = logging.getLogger("torch.__trace")
            caplog.set_level(logging.DEBUG, "torch.__trace")
            logger.addHandler(caplog.handler)
            logger.debug("payload")
            logger.removeHandler(caplog.handler)
            return [record.getMessage() for record in caplog.records]

        @pytest.mark.max_graphs(1)
        def test_one(caplog):
            torch.compile(clean)(X)
            kept = [h for h in logging.getLogger("torch.__trace").handlers if type(h).__module__ == "_pytest.logging"]
            assert bool(kept) == (tuple(map(int, pytest.__version__.split(".")[:2])) >= (9, 2))
            assert "payload" in trace(caplog)
        """
    ).assert_outcomes(passed=1)


def test_what_is_allowed_is_told_apart_from_what_is_not(project):
    result = project.run(
        text="""
        def masked(x, mask=None):
            return x + 1 if mask is None else x * mask

        @pytest.mark.dynacheck(max_recompiles=0, allow={"recompile:value:mask@*": 1})
        def test_one():
            f = torch.compile(masked)
            f(X), f(X, torch.ones(4)), f(X, torch.ones(1))
        """
    )
    result.stdout.fnmatch_lines(
        [
            "  allowed: recompile:value:mask@test_it.py:masked",
            "  allow with: recompile:size:mask@test_it.py:masked",
        ]
    )
