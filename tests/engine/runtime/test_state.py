"""Ambient state is what it was after a translation: done, broken, failed."""

from __future__ import annotations

import random

import dynacheck
import pytest
import torch


def snapshot():
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_default_dtype(),
        torch.get_rng_state().tolist(),
        random.getstate(),
        torch.are_deterministic_algorithms_enabled(),
    )


def plain(x):
    return torch.dropout(x, 0.5, True) + torch.rand(3)


def with_grad_off(x):
    with torch.no_grad():
        return x * 2


def breaking(x):
    y = torch.rand(3) + x
    print(end="")
    return y * torch.rand(3)


@pytest.mark.parametrize("fn", [plain, with_grad_off, breaking])
def test_what_a_first_call_leaves_is_what_plain_python_leaves(fn, x):
    torch.manual_seed(0)
    random.seed(0)
    wanted = fn(x)
    after = snapshot()
    compiled = dynacheck.compile(fn, backend="eager")
    for _ in range(2):
        torch.manual_seed(0)
        random.seed(0)
        torch.testing.assert_close(compiled(x), wanted)
        assert snapshot() == after


def test_a_backend_may_change_anything(x):
    def backend(gm, example_inputs):
        torch.manual_seed(123)
        random.seed(5)
        torch.set_grad_enabled(False)
        torch.set_autocast_enabled("cpu", True)
        torch.set_default_dtype(torch.float64)
        torch.use_deterministic_algorithms(True)
        return gm.forward

    before = snapshot()
    dynacheck.compile(lambda x: x + 1, backend=backend)(x)
    assert snapshot() == before


def test_a_backend_may_change_anything_and_raise(x):
    def backend(gm, example_inputs):
        torch.manual_seed(123)
        torch.set_grad_enabled(False)
        raise ValueError

    before = snapshot()
    with pytest.raises(dynacheck.BackendError):
        dynacheck.compile(lambda x: x + 1, backend=backend)(x)
    assert snapshot() == before


def test_modes_in_force_are_part_of_the_entry(backend, x):
    compiled = dynacheck.compile(lambda x: x @ x.T, backend=backend)
    y = torch.ones(3, 3)
    compiled(y)
    with torch.no_grad():
        compiled(y)
    with torch.autocast("cpu", torch.bfloat16):
        assert compiled(y).dtype is torch.bfloat16
    compiled(y)
    assert len(backend) == 3
