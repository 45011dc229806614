"""What operators warn of is told once a call, by the graph that runs, as in plain Python."""

from __future__ import annotations

import warnings

import dynacheck
import pytest
import torch
import torch.nn.functional as F

PROGRAMS = {
    "of a Python function": lambda x: F.mse_loss(x, x[0]),
    "of C++": lambda x: torch.cholesky(x.T @ x + torch.eye(4)),
    "of an attribute": lambda x: x[None].T.sum(),
    "of an output that is resized": lambda x: torch.add(x, 1, out=torch.empty(2)),
    "the user's own": lambda x: (warnings.warn("mine", stacklevel=1), x + 1)[1],
}


def told(fn, x):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fn(x)
    return [(warning.category, str(warning.message)) for warning in found]


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_call_tells_what_plain_python_tells(name):
    x = torch.ones(3, 4)
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        expected = told(PROGRAMS[name], x)
        compiled = dynacheck.compile(PROGRAMS[name], backend="eager")
        assert len(expected) == 1
        assert told(compiled, x) == expected == told(compiled, x)
        assert told(compiled, x[:2]) == told(PROGRAMS[name], x[:2])
    finally:
        torch.set_warn_always(always)
    assert dynacheck.cache_entries(PROGRAMS[name])


def test_a_warning_that_is_an_error_is_raised_by_the_call():
    def f(x):
        return F.l1_loss(x, x[:1])

    compiled = dynacheck.compile(f, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(UserWarning, match="different to the input size"):
                compiled(torch.ones(3, 4))
