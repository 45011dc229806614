"""dynacheck.check: compiled against eager, with faults planted on the compiled side."""

from __future__ import annotations

import pytest
import torch

from pytest_dynacheck import Args
from pytest_dynacheck._check import compare

X = torch.arange(4.0)


class Affine(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))
        self.register_buffer("seen", torch.zeros(()))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.seen += 1
        return x * self.weight


def run(fn, calls, compile, **options):
    compare(fn, calls, compile, **{"grad": False, "rtol": None, "atol": None, **options})


def fault(change):
    """A compile that changes what the function does."""
    return lambda fn: lambda *args, **kwargs: change(fn, *args, **kwargs)


def test_equal_sides():
    run(Affine(), [X, (X,), Args(x=X)], lambda m: m, grad=True)
    run(lambda a, b=1: {"s": [a + b, "text"]}, [(X, 2), Args(X, b=3)], lambda f: f)


def detached(m, x):
    return m(x).detach()


def counted_twice(m, x):
    m.calls += 1
    return m(x)


def other_grad(m, x):
    out = m(x)
    return out * 1 if x.shape[0] > 10 else (out.detach() + (m.weight * 2 * x - (m.weight * 2 * x).detach()))


@pytest.mark.parametrize(
    ("change", "text", "grad"),
    [
        (lambda m, x: m(x) + 1, "call 1 *: result: *Tensor-likes are not close", False),
        (lambda m, x: m(x).double(), "result: dtype torch.float32 in eager, torch.float64 compiled", False),
        (detached, "result: requires_grad True in eager, False compiled", False),
        (lambda m, x: [m(x)], "result: Tensor in eager, list compiled", False),
        (lambda m, x: m(x)[:2], "result: shape", False),
        (counted_twice, "attribute calls: 1 in eager, 2 compiled", False),
        (lambda m, x: (m(x), m.seen.add_(1))[0], "buffer seen", False),
        (lambda m, x: m(x.add_(1)) - 1, "arguments*", False),
        (lambda m, x: 1 / 0, "eager returns, compiled raises ZeroDivisionError", False),
        (other_grad, "gradient of parameter weight", True),
    ],
)
def test_faults_are_found(change, text, grad):
    with pytest.raises(AssertionError, match=text.replace("*", ".*")):
        run(Affine(), [X], fault(change), grad=grad)


def test_the_call_is_named():
    calls = []

    def late(m, x):
        calls.append(1)
        return m(x) + (len(calls) == 3)

    with pytest.raises(AssertionError, match=r"^call 3 Args\("):
        run(Affine(), [X, X, X, X], fault(late))


def test_random_numbers_are_the_same_on_both_sides():
    run(lambda x: torch.nn.functional.dropout(x, 0.5), [X, X], lambda f: f)


def test_exceptions_are_compared():
    def bad(x):
        raise ValueError("no")

    run(bad, [X], lambda f: f)
    with pytest.raises(AssertionError, match="eager raises ValueError: no, compiled returns"):
        run(bad, [X], lambda f: lambda x: x)


def test_strides_are_compared():
    square = torch.ones(2, 3)
    with pytest.raises(AssertionError, match=r"result: stride \(1, 3\) in eager, \(2, 1\) compiled"):
        run(lambda x: x.t(), [square], lambda f: lambda x: f(x).contiguous())


def test_arguments_are_cloned_for_each_side():
    def write(x):
        return x.add_(1)

    given = X.clone()
    run(write, [given], lambda f: f)
    assert torch.equal(given, X)


@pytest.mark.parametrize("calls", [X, {"x": X}, Args(X), "x", 3], ids=lambda calls: type(calls).__name__)
def test_one_call_is_no_list_of_calls(calls):
    with pytest.raises(TypeError, match=f"takes a list of calls, not {type(calls).__name__}"):
        run(lambda x: x + 1, calls, lambda f: f)


def test_what_cant_be_called_is_refused():
    with pytest.raises(TypeError, match="takes a function or a module, not int"):
        run(3, [X], lambda f: f)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"grad": "yes"}, "grad takes True or False, not 'yes'"),
        ({"rtol": "a", "atol": 0}, "rtol takes a number from 0 on, not 'a'"),
        ({"rtol": 0, "atol": -1}, "atol takes a number from 0 on, not -1"),
        ({"rtol": 0.1}, "takes both rtol and atol, or neither"),
    ],
)
def test_wrong_options_are_refused(options, text):
    with pytest.raises(TypeError, match=text):
        run(lambda x: x + 1, [X], lambda f: f, **options)


def test_through_the_fixture(project):
    project.run(
        text="""
        from pytest_dynacheck import Args

        def test_one(dynacheck):
            dynacheck.check(Scaled(), [X, X + 1, Args(x=X)])
            dynacheck.check(clean, [X, X[:3]], grad=True)
            assert dynacheck.report.counts["recompiles"] == 1
        """
    ).assert_outcomes(passed=1)


def test_what_the_plugin_calls_is_told_at_the_tests_line(project):
    for engine in ("bundled", "torch"):
        result = project.run(
            f"--dynacheck-engine={engine}",
            text="""
            @pytest.mark.dynacheck(max_recompiles=0, compare=True)
            def test_one(dynacheck):
                dynacheck.check(clean, [X, X[:2]])
            """,
        )
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["clean (programs.py:*) compiled again: *, triggered at test_it.py:5"])
