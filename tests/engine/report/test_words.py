"""Values in the user's words, through the real engine."""

from __future__ import annotations

import dynacheck
import pytest
import torch
from dynacheck.records import Change

X = torch.arange(4.0)


@pytest.fixture(autouse=True)
def clean():
    dynacheck.reset()
    yield
    dynacheck.reset()


def causes(fn, *calls):
    """Subjects of all changes, per recompile."""
    compiled = dynacheck.compile(fn, backend="eager")
    with dynacheck.observe() as report, dynacheck.configured(raise_internal_errors=True):
        for call in calls:
            compiled(*call)
    return [[change.subject for change in record.changes] for record in report.recompiles], report


def test_the_result_of_a_broken_call_has_the_name_it_is_stored_under():
    def f(x):
        peak = x.max().item()
        return x / peak

    found, report = causes(f, (X,), (X + 1,))
    assert found == [["peak"]]
    assert report.recompiles[0].cause.startswith("recompile:value:peak@")
    assert report.recompiles[0].function.endswith("<locals>.f")
    assert report.recompiles[0].resume_line is not None


def test_a_value_that_is_not_stored_is_told_by_its_expression():
    def f(x):
        return x / x.max().item()

    found, _ = causes(f, (X,), (X + 1,))
    assert found == [["x.max().item()"]]


def test_breaks_tell_values_on_the_stack_by_their_expression():
    def f(x):
        return torch.nn.Parameter(x)._version

    with dynacheck.observe() as report:
        dynacheck.compile(f, backend="eager")(X)
    found = report.graph_breaks[-1].message
    assert found == "The attribute '_version' of torch.nn.Parameter(x) can't be modelled."


def test_an_assertion_that_breaks_is_told_as_one():
    scope = {}  # pytest rewrites the assertions of this file
    exec("def f(x):\n    assert x.sum() > 0, f'positive, not {x}'\n    return x + 1\n", scope)
    with dynacheck.observe() as report:
        dynacheck.compile(scope["f"], backend="eager")(X)
    assert report.graph_breaks[0].message.startswith("`assert` needs the value of a tensor")


def test_a_frame_that_raises_is_told_by_the_exceptions_name():
    def f(x):
        raise KeyError(x.shape)

    with dynacheck.observe() as report, pytest.raises(KeyError):
        dynacheck.compile(f, backend="eager")(X)
    assert report.graph_breaks[-1].message == "The frame ends by raising KeyError."


def test_a_method_on_the_stack_is_told_by_its_owner():
    def f(x, spent):
        y = x + 1
        spent.append(y.sum().item())
        return y * len(spent)

    found, _ = causes(f, *[(X, [1.0] * n) for n in (1, 2)])
    assert all("___stack" not in subject and "__self__" not in subject for row in found for subject in row)


def test_a_free_variable_is_told_by_its_name():
    def make(shift):
        return lambda x: x + shift

    def f(x, cb):
        return cb(x)

    found, _ = causes(f, (X, make(2)), (X, make(3)))
    assert found == [["shift of cb"]]


def test_breaks_in_the_rest_of_a_function_are_told_by_the_function():
    def f(x):
        dynacheck.graph_break()
        x = x + 1
        dynacheck.graph_break()
        return x * 2

    _, report = causes(f, (X,))
    assert {found.function for found in report.graph_breaks} == {f.__qualname__}


def test_another_compile_of_a_function_is_told():
    def f(x):
        return x + 1

    with dynacheck.observe() as report:
        dynacheck.compile(f, backend="eager")(X)
        dynacheck.compile(f, backend="aot_eager")(X)
    [change] = report.recompiles[0].changes
    assert (change.was, change.became) == (
        "the first compile of the function",
        "a compile with another backend, dynamic= or options",
    )


def test_modules_of_torch_are_told_by_their_name():
    linear = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout())
    compiled = dynacheck.compile(linear, backend="eager")
    with dynacheck.observe() as report:
        compiled(X)
        compiled.eval()(X)
    [record] = report.recompiles
    assert record.function == "Sequential.forward"
    assert record.cause.startswith("recompile:training:")
    assert record.cause.endswith("@torch/nn/modules/container.py:Sequential.forward")
    assert record.changes[0].text == "compiled(X)"  # not a line of the engine's


def test_enum_members_and_functions_are_named():
    import enum

    class Act(enum.Enum):
        RELU = 1
        TANH = 2

    def f(x, act):
        return x.relu() if act is Act.RELU else x.tanh()

    _, report = causes(f, (X, Act.RELU), (X, Act.TANH))
    [change] = report.recompiles[0].changes
    assert (change.was, change.became) == ("Act.RELU", "Act.TANH")


@pytest.mark.parametrize(
    ("kind", "then", "now", "subject", "was", "became"),
    [
        ("length", 1, 2, "len(x)", "1", "2"),
        ("keys", ["'a'"], ["'b'"], "keys of x", "['a']", "['b']"),
        ("type", "list", "tuple", "type of x", "list", "tuple"),
        ("dtype", torch.float32, torch.float64, "x.dtype", "torch.float32", "torch.float64"),
        ("expression", "n % 8 == 0", {"n": 9}, "n % 8 == 0", "holds", "n is 9"),
        ("value", "a", "b", "x", "'a'", "'b'"),
        ("value", "n == 4", 5, "x", "4", "5"),
        ("size", "8 <= x.size()[0]", 5, "x", "8 <= x.size()[0]", "5"),
        ("rank", 1, 2, "x.dim()", "1", "2"),
    ],
)
def test_how_changes_read(kind, then, now, subject, was, became):
    change = Change("x", kind, then, now)
    assert (change.subject, change.was, change.became) == (subject, was, became)


def test_arguments_read_as_they_are_given():
    def f(x, *more, **named):
        return x * len(more) * len(named)

    compiled = dynacheck.compile(f, backend="eager")
    with dynacheck.observe() as seen:
        for more, named in (((), {}), ((1,), {}), ((), {"a": 1, "b": 2})):
            compiled(X, *more, **named)
    told = [(c.subject, c.was, c.became) for record in seen.recompiles for c in record.changes[:1]]
    assert told == [
        ("the call's arguments", "(x)", "(x, 1 more)"),
        ("the call's arguments", "(x)", "(x, a=, b=)"),
    ]
    assert [record.cause.split(":")[1] for record in seen.recompiles] == ["length", "length"]


def test_what_is_behind_a_property_is_told_with_its_name():
    class Net(torch.nn.Module):
        _gain = 2.0

        @property
        def gain(self):
            return self._gain * 2

        def forward(self, x):
            return x * self.gain

    net = Net()
    compiled = dynacheck.compile(net, backend="eager")
    with dynacheck.observe() as seen:
        for net._gain in (2.0, 3.0):
            compiled(X)
    assert [change.subject for change in seen.recompiles[0].changes] == [
        "self._gain (behind the property gain)"
    ]


def test_what_is_said_of_sizes_asks_nothing_of_a_tensors_class():
    asked = []

    class Told(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    compiled = dynacheck.compile(lambda x: x + 1, backend=lambda gm, inputs: gm.forward)
    with dynacheck.observe() as seen:
        compiled(torch.ones(2, 3).as_subclass(Told))
        before = len(asked)
        compiled(torch.ones(4, 3).as_subclass(Told))
    assert seen.recompiles[0].changes[0].kind == "size"
    assert all("shape" not in str(func) and "size" not in str(func) for func in asked[before:]), asked
