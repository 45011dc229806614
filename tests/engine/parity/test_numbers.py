"""Sizes and numbers as values: each call gives what plain Python gives and makes the graphs that torch.compile makes,
with as many symbolic inputs."""

import contextlib
import math

import dynacheck
import pytest
import torch
import torch._dynamo
from torch.fx.experimental.symbolic_shapes import ConstraintViolationError


def counted(*shape):
    return torch.arange(float(math.prod(shape))).reshape(shape) + 1


def sized(*sizes):
    return [(counted(n, 4),) for n in sizes]


def marked(mark, *sizes, **options):
    calls = sized(*sizes)
    for (x,) in calls:
        mark(x, 0, **options)
    return calls


def scalars(*numbers):
    return [(torch.tensor([n, 2]), counted(9, 4)) for n in numbers]


def unbacked(*sizes, **options):
    return marked(torch._dynamo.decorators.mark_unbacked, *sizes, **options)


def checked(x):
    torch._check(x.shape[0] > 2)
    return x * 2 if x.shape[0] > 2 else x


def checked_item(t, x):
    n = t[0].item()
    torch._check(n >= 0)
    torch._check(n <= x.shape[0])
    return x[:n]


def checked_value(t, x):
    n = t[0].item()
    torch._check_value(n <= 9)
    return x * n


def checked_then_asked(t, x):
    n = t[0].item()
    torch._check(n >= 2)
    return x * n if n > 1 else x


def checked_sum(t, x):
    a, b = t[0].item(), t[1].item()
    torch._check(a + b <= x.shape[0])
    torch._check(a >= 0)
    torch._check(b >= 0)
    return x[: a + b]


def found_size(x):
    found = (x > 0).nonzero()
    return found.sum() * found.shape[0]


def found_checked(x):
    found = (x > 0).nonzero()
    torch._check(found.shape[0] > 2)
    return found * 2 if found.shape[0] > 2 else found


def found_returned(x):
    found = (x > 0).nonzero()
    return found, found.shape[0] * 2


def found_arange(x):
    found = x[x > 0]
    return torch.arange(found.shape[0]) + found


def counts(x):
    unique, count = torch.unique(x.long() % 3, return_counts=True)
    return unique * unique.shape[0] + count


def halves(x):
    n = x.shape[0]
    while n > 1:
        x = x + n
        n //= 2
    return x


SCALARS = {"capture_scalar_outputs": True}
SHAPES = {"capture_dynamic_output_shape_ops": True}
NEGATIVE = [(counted(n, 4) - 6,) for n in (3, 4)]
PROGRAMS = {
    "log2": (lambda x: x * math.log2(x.shape[0]), sized(4, 6, 7), {}),
    "sin": (lambda x: x * math.sin(x.shape[0]), sized(4, 6, 7), {}),
    "ceil": (lambda x: x[: math.ceil(x.shape[0] / 2)], sized(4, 6, 7), {}),
    "sym_max": (
        lambda x: x * torch.sym_max(x.shape[0], 5) * torch.sym_min(x.shape[0], 7),
        sized(4, 6, 9),
        {},
    ),
    "sym_int": (lambda x: x * torch.sym_int(x.shape[0] / 2), sized(4, 6, 9), {}),
    "sym_not": (lambda x: x + 1 if torch.sym_not(x.shape[0] > 5) else x - 1, sized(4, 6, 7), {}),
    "sym_max of numbers": (lambda x: x * torch.sym_max(3, 5) + torch.sym_float(x.shape[0]), sized(4, 6), {}),
    "halves": (halves, sized(4, 8, 16), {}),
    "range of a size": (lambda x: [x[i : i + 2].sum() for i in range(0, x.shape[0], 2)], sized(4, 6, 8), {}),
    "a key": (lambda x: x * {tuple(x.shape): 2}[tuple(x.shape)], sized(4, 6, 7), {}),
    "checked": (checked, sized(4, 6, 7), {}),
    "checked, unbacked": (checked, unbacked(4, 5), {}),
    "checked item": (checked_item, scalars(3, 4, 1), SCALARS),
    "checked item that fails": (checked_item, scalars(3, 12), SCALARS),
    "checked value": (checked_value, scalars(3, 4), SCALARS),
    "checked, then asked": (checked_then_asked, scalars(3, 4, 12), SCALARS),
    "checked sum": (checked_sum, scalars(3, 4), SCALARS),
    "found size": (found_size, NEGATIVE, SHAPES),
    "found, checked": (found_checked, NEGATIVE, SHAPES),
    "found, returned": (found_returned, NEGATIVE, SHAPES),
    "found, counted": (found_arange, NEGATIVE, SHAPES),
    "counts": (counts, NEGATIVE, SHAPES),
}


def plain(value):
    if isinstance(value, torch.Tensor):
        return value.dtype, value.tolist()
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def attempt(fn, args):
    try:
        return plain(fn(*args))
    except (RuntimeError, ValueError) as error:
        return type(error)


def history(compiler, name):
    """Per call: its result, and for each graph made how many inputs are symbols."""
    fn, calls, settings = PROGRAMS[name]
    made, found = [], []

    def backend(gm, inputs):
        made.append(sum(not isinstance(value, torch.Tensor) for value in inputs))
        return gm.forward

    with contextlib.ExitStack() as stack:
        for reset in (torch._dynamo.reset, dynacheck.reset):
            reset()
            stack.callback(reset)
        stack.enter_context(torch._dynamo.config.patch(**settings))
        compiled = compiler(fn, backend=backend)
        for args in calls:
            before = len(made)
            found.append((attempt(compiled, args), made[before:]))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers(name):
    fn, calls, _ = PROGRAMS[name]
    ours = history(dynacheck.compile, name)
    assert [result for result, _ in ours] == [attempt(fn, args) for args in calls]
    assert ours == history(torch.compile, name)
    assert ours[0][1], "nothing was translated"


@pytest.mark.parametrize("check", [torch._check, torch._check_value])
@pytest.mark.parametrize("message", [None, lambda: "too many"])
def test_a_check_that_fails_raises_what_plain_python_raises(check, message):
    def limited(t, x):
        n = t[0].item()
        check(n <= 9, message)
        return x * n

    dynacheck.reset()
    with dynacheck.configured(capture_scalar_outputs=True), dynacheck.observe() as seen:
        compiled = dynacheck.compile(limited, backend="eager")
        (good, bad) = scalars(3, 12)
        assert torch.equal(compiled(*good), limited(*good))
        with pytest.raises((RuntimeError, ValueError)) as expected:
            limited(*bad)
        with pytest.raises(expected.type) as raised:
            compiled(*bad)
    assert str(raised.value) == str(expected.value) and not seen.graph_breaks and len(seen.graphs) == 1


def test_a_size_that_is_known_to_be_one():
    def sizes(t):
        n = t[0].item()
        torch._check_is_size(n)
        torch._check_is_size(n, max=9)
        return torch.zeros(n)

    with dynacheck.configured(capture_scalar_outputs=True), dynacheck.observe() as seen:
        compiled = dynacheck.compile(sizes, backend="eager")
        for n in (3, 1, 0):
            assert compiled(torch.tensor([n])).shape == (n,)
    assert not seen.graph_breaks and len(seen.graphs) == 1


def pairs(*sizes):
    return [
        tuple(marked(torch._dynamo.decorators.mark_unbacked, n, shape_id="batch")[0][0] for n in both)
        for both in sizes
    ]


@pytest.mark.parametrize(
    ("fn", "calls", "text"),
    [
        (
            lambda x: x * 2,
            unbacked(4, 11, min=2, max=9),
            "x.size()[0] <= 9 doesn't hold: size of dim 0 of x is 11",
        ),
        (torch.add, pairs((4, 4), (5, 6)), "y.size()[0] == x.size()[0] doesn't hold: y.size()[0] is 6"),
        (checked, unbacked(4, 1), "3 <= x.size()[0] doesn't hold: size of dim 0 of x is 1"),
    ],
)
def test_sizes_that_marks_and_checks_rule_out(fn, calls, text):
    dynacheck.reset()
    compiled = dynacheck.compile((lambda x, y: torch.add(x, y)) if fn is torch.add else fn, backend="eager")
    good, bad = calls
    assert torch.equal(compiled(*good), fn(*good))
    with pytest.raises(dynacheck.ConstraintViolationError) as raised:
        compiled(*bad)
    assert str(raised.value).startswith(text)
    assert "marked unbacked are held to what marks and checks say" in str(raised.value)


@pytest.mark.parametrize("sizes", [(17,), (3,), (8, 17)])
def test_a_size_out_of_the_bounds_of_its_mark_is_an_error(sizes):
    """Torch's exception is what a test of torch's expects; ours says where the mark was made."""

    def call(compiled, marks):
        for size in sizes:
            marks.mark_dynamic(x := torch.ones(size, 4), 0, min=4, max=16)
            compiled(x)

    torch._dynamo.reset()
    dynacheck.reset()
    said = rf"\b{sizes[-1]}\b.*\b4\b.*\b16\b"
    for compiler, marks in ((torch, torch._dynamo), (dynacheck, dynacheck)):
        with pytest.raises(ConstraintViolationError, match=said) as raised:
            call(compiler.compile(lambda x: x * 2, backend="eager"), marks)
    line = call.__code__.co_firstlineno + 2
    assert str(raised.value).endswith(f"as marked by mark_dynamic(x, 0) at {__file__}:{line}")
