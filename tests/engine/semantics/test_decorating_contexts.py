"""Context managers that decorate functions inside of compiled code: results are plain Python's."""

import dynacheck
import pytest
import torch

x = torch.ones(3, 3, requires_grad=True)


def with_autocast(x):
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def inner(value, scale=2):
        return (value @ value) * scale

    return inner(x), inner(x, scale=3), x @ x, inner.__name__


def with_no_grad(x):
    inner = torch.no_grad()(lambda value: value * 2)
    return inner(x), inner(x) + x


def with_inference_mode(x):
    @torch.inference_mode()
    def inner(value):
        return value.sum()

    return inner(x).item() * 2


def nested(x):
    @torch.no_grad()
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def inner(value):
        return value @ value

    return inner(x), x @ x


def raising(x):
    @torch.no_grad()
    def inner(value):
        raise ValueError("inside")

    try:
        inner(x)
    except ValueError as error:
        return x * 2, str(error)


def escaping(x):
    @torch.no_grad()
    def inner(value):
        return value * 2

    return inner(x), inner


@pytest.mark.parametrize("fn", [with_autocast, with_no_grad, with_inference_mode, nested, raising, escaping])
def test_decorated_in_the_frame(fn, seen):
    compiled = dynacheck.compile(fn, backend="eager")
    for _ in range(2):
        wanted, found = fn(x), compiled(x)
        parts = (wanted, found) if isinstance(wanted, tuple) else ((wanted,), (found,))
        for one, other in zip(*parts, strict=True):
            if callable(one) and not isinstance(one, torch.Tensor):
                one, other = one(x), other(x)
            if isinstance(one, torch.Tensor):
                torch.testing.assert_close(one, other)
                assert one.requires_grad == other.requires_grad and one.dtype == other.dtype
            else:
                assert one == other
        assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
    assert seen.graphs


def made_before_a_break(x):
    made = torch.set_grad_enabled(False)
    y = x + 1
    print(end="")
    with made:
        pass
    return y, x + 1, vars(made)


def entered_twice(x):
    made = torch.no_grad()
    with made, made:
        y = x + 1
    return y, x + 1, made.prev


def entered_twice_over_a_break(x):
    made = torch.no_grad()
    with made, made:
        print(end="")
    return x + 1, made.prev


def given(x):
    with torch.no_grad():
        GIVEN.__enter__()
        y = x + 1
        GIVEN.__exit__(None, None, None)
        z = x + 1
    return y, z, x + 1


def escapes(x):
    return x + 1, vars(torch.set_grad_enabled(False)), vars(torch.enable_grad())


GIVEN = torch.set_grad_enabled(False)
torch.set_grad_enabled(True)


@pytest.mark.parametrize(
    "fn", [made_before_a_break, entered_twice, entered_twice_over_a_break, given, escapes]
)
def test_what_leaving_grad_modes_restores(fn):
    """A manager restores what it found when it was made or last entered, as its attribute says."""

    def found(call):
        try:
            result = call(x)
            grad = [v.requires_grad if isinstance(v, torch.Tensor) else v for v in result]
            return grad, torch.is_grad_enabled()
        finally:
            torch.set_grad_enabled(True)

    dynacheck.reset()
    with dynacheck.observe() as report:
        assert found(dynacheck.compile(fn, backend="eager")) == found(fn)
    assert report.graphs
