"""The backend that compares another one with the graph run as it is."""

from __future__ import annotations

import dynacheck
import pytest
import torch
from dynacheck.backends.check import GraphMismatch


def wrong(how):
    def backend(gm, example_inputs):
        def run(*args):
            out = list(gm(*args))
            if how == "value":
                out[0] = out[0] + 1e-2
            elif how == "dtype":
                out[0] = out[0].double()
            elif how == "input":
                args[0].add_(1)
            return out

        return run

    return backend


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("value", "output 0: Tensor-likes are not close"),
        ("dtype", "output 0: dtype"),
        ("input", "input 0 after"),
    ],
)
def test_differences_are_found(how, words):
    compiled = dynacheck.compile(lambda x: x * 2, backend="check", options={"backend": wrong(how)})
    with pytest.raises(GraphMismatch, match=words):
        compiled(torch.ones(3))


def test_tolerances():
    options = {"backend": wrong("value"), "rtol": 0.1, "atol": 0.1}
    torch.testing.assert_close(
        dynacheck.compile(lambda x: x * 2, backend="check", options=options)(torch.ones(3)),
        torch.full((3,), 2.01),
    )


def test_random_numbers_are_the_same_and_drawn_once():
    def f(x):
        return torch.dropout(x, 0.5, True)

    torch.manual_seed(1)
    wanted = [f(torch.ones(20)), f(torch.ones(20))]
    torch.manual_seed(1)
    compiled = dynacheck.compile(f, backend="check", options={"backend": "eager"})
    for one in wanted:
        torch.testing.assert_close(compiled(torch.ones(20)), one)
