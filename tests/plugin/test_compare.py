"""`compare=True` and `--dynacheck-compare`: compiled calls held against eager ones on copies."""

from __future__ import annotations

import textwrap

import pytest
from dynacheck import versions

from pytest_dynacheck._compare import Comparison

GOOD = {
    "function": "def test_one():\n    f = torch.compile(clean)\n    f(X), f(X[:2])\n",
    "module": "def test_one():\n    f = torch.compile(Counting())\n    f(X), f(X)\n    assert f.steps == 2\n",
    "module_compile": "def test_one():\n    m = Scaled()\n    m.compile()\n    m(X)\n",
    "random": """
        def test_one():
            torch.manual_seed(0)
            f = torch.compile(lambda x: torch.dropout(x, 0.5, True))
            a, b = f(X), f(X)
            assert not torch.equal(a, b)
            torch.manual_seed(0)
            assert torch.equal(torch.dropout(X, 0.5, True), a)
        """,
    "arguments_written": """
        def test_one():
            x = X.clone()
            torch.compile(lambda x: x.add_(1))(x)
            assert torch.equal(x, X + 1)
        """,
    "closure_written": """
        def test_one():
            seen = []

            def f(x):
                seen.append(len(seen))
                return x + 1

            compiled = torch.compile(f)
            compiled(X), compiled(X)
            assert seen == [0, 1]
        """,
    "hook_added_later": """
        def test_one():
            m = torch.nn.Sequential(torch.nn.Linear(4, 4))
            f = torch.compile(m)
            f(X)
            m[0].register_forward_hook(lambda module, args, out: out * 2)
            f(X)
        """,
    "hook_that_writes": """
        calls, kept = [], []

        def test_one():
            m = torch.nn.Sequential(torch.nn.Linear(4, 4))
            count = 0

            def hook(module, args, out):
                nonlocal count
                count += 1
                calls.append(count)
                kept.append(out)
                return out * count

            m[0].register_forward_hook(hook)
            f = torch.compile(m)
            f(X), f(X)
            assert count == 2 and calls == [1, 2] and len(kept) == 2
        """,
    "another_modules_variables": """
        import helpers

        def test_one():
            class Steps(torch.nn.Module):
                total = 0

                def forward(self, x):
                    Steps.total += 1
                    return helpers.note(x) * helpers.state.n + Steps.total

            f = torch.compile(Steps())
            for n in (1, 2, 3):
                assert torch.equal(f(X), (X + n) * n + n)
                assert helpers.count == helpers.state.n == Steps.total == n and helpers.log == list(range(n))
                assert helpers.seen.tolist() == [n, n]
        """,
    "training_step": """
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)

        def step(x):
            loss = model(x).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach()

        def test_one():
            import copy
            other = copy.deepcopy(model)
            torch.compile(step)(X)
            assert torch.allclose(other.bias - 0.5, model.bias)
            torch.compile(step)(X)
            assert torch.allclose(other.bias - 0.5 - 0.95, model.bias)
        """,
    "raises": """
        def bad(x):
            raise ValueError("no")

        def test_one():
            f = torch.compile(lambda x: bad(torch.relu(x)))
            with pytest.raises(ValueError):
                f(X)
        """,
    "nested": """
        def test_one():
            inner = torch.compile(clean)
            torch.compile(lambda x: inner(x) * 2)(X)
        """,
    "backward": """
        def test_one():
            m = torch.nn.Linear(4, 4)
            f = torch.compile(m)
            for _ in range(2):
                f(X).sum().backward()
            assert m.weight.grad is not None
        """,
    "printing": """
        def test_one(capsys):
            torch.compile(printing)(X)
            assert capsys.readouterr().out == "seen\\n"
        """,
}
HELPERS = """
import torch


class State:
    def __init__(self):
        self.n = 0


count, log, seen, state = 0, [], torch.zeros(2), State()


def note(x):
    global count
    log.append(count)
    count += 1
    state.n += 1
    seen.add_(1)
    return x + count
"""


WRONG_UNDER_TORCH = {"hook_added_later"}  # it doesn't notice
if not versions.torch_since(2, 12):
    WRONG_UNDER_TORCH.add("another_modules_variables")  # what is written to a class before a break is lost


@pytest.mark.parametrize("engine", ["bundled", "torch"])
@pytest.mark.parametrize("name", GOOD)
def test_equal_sides_pass_and_see_nothing_of_it(project, name, engine):
    allow = "['eager:*', 'nothing-compiled']"
    project.pytester.makepyfile(helpers=HELPERS)
    mark = f"pytestmark = pytest.mark.dynacheck(compare=True, max_graphs=9, allow={allow})\n"
    project.pytester.makeconftest(
        "def pytest_runtest_logreport(report):\n"
        "    if report.when == 'call':\n"
        "        print('compared:', report.dynacheck['compared'])\n"
    )
    result = project.run("-s", f"--dynacheck-engine={engine}", text=mark + textwrap.dedent(GOOD[name]))
    if name in WRONG_UNDER_TORCH and engine == "torch":
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["call 2 of * differs from eager: result: Tensor-likes are not close*"])
        return
    result.assert_outcomes(passed=1)
    (line,) = [line for line in result.outlines if "compared: {" in line]
    assert "'calls': 0" not in line
    assert "'not_compared': {}" in line


FAULTY = """
import dynacheck

class Wrong:
    def __init__(self, change):
        self.change = change

    def __call__(self, gm, inputs):
        return lambda *args: self.change(gm(*args))
"""


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("lambda out: (out[0] + 1,)", "result: Tensor-likes are not close"),
        ("lambda out: (out[0].double(),)", "result: dtype torch.float32 in eager, torch.float64 compiled"),
        ("lambda out: (out[0].detach(),)", "result: requires_grad True in eager, False compiled"),
        ("lambda out: (out[0].t(),)", "result: stride (2, 1) in eager, (1, 2) compiled"),
    ],
)
def test_faults_of_a_backend_are_found(project, change, text):
    result = project.run(
        text=FAULTY
        + f"""
class Net(torch.nn.Linear):
    def forward(self, x):
        return torch.relu(self.weight * x)

@pytest.mark.dynacheck(compare=True)
def test_one():
    torch.compile(Net(2, 2), backend=Wrong({change}))(torch.eye(2) + 1)
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"call 1 of Net differs from eager: {text.replace('[', '[[]')}*"])
    result.stdout.fnmatch_lines(["dynacheck: 1 test, 1 differing from eager (*"])


def test_lost_and_stale_writes_are_found():
    import torch

    total, x = [0], torch.ones(2)

    def f(x):
        total[0] += 1
        return x + total[0]

    comparison = Comparison()
    right = comparison.around(f, lambda x: f(x))
    right(x), right(x)
    assert comparison.difference is None
    stale = comparison.around(f, lambda x: x + 3 + 0 * len(total))  # forgets to write
    stale(x)
    assert comparison.difference is not None
    assert comparison.difference.endswith("variable total[0]: 3 in eager, 2 compiled")
    assert comparison.difference.startswith("call 3 of ")


def test_what_cannot_be_copied_is_counted(project):
    result = project.run(
        "--dynacheck-compare",
        text="""
        import threading

        class Locked:
            def __init__(self):
                self.lock = threading.Lock()

        def f(x, owner):
            return x + 1

        @pytest.mark.max_graphs(1)
        def test_one():
            torch.compile(f)(X, Locked())
        """,
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["dynacheck: 1 compiled calls were not compared with eager"])


def test_the_option_and_the_marker(project):
    body = """
    @pytest.mark.dynacheck({more})
    def test_one():
        torch.compile(clean, backend=lambda gm, inputs: lambda *args: (gm(*args)[0] + 1,))(X)

    def test_not_under_test():
        torch.compile(clean, backend=lambda gm, inputs: lambda *args: (gm(*args)[0] + 1,))(X)
    """
    project.run(text=body.format(more="")).assert_outcomes(passed=2)
    project.run("--dynacheck-compare", text=body.format(more="")).assert_outcomes(passed=1, failed=1)
    project.run("--dynacheck-compare", text=body.format(more="compare=False")).assert_outcomes(passed=2)
    result = project.run("--dynacheck-compare", text="def test_one():\n    pass\n")
    result.stdout.fnmatch_lines(["dynacheck: --dynacheck-compare met no test under test"])
