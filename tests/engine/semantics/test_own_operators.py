"""Operators of the user's that raise because of values, in a `try` that catches just that: as plain Python."""

from __future__ import annotations

import dynacheck
import pytest
import torch

RAISES = {"missing": NotImplementedError, "attribute": AttributeError, "value": ValueError}


@torch.library.custom_op("dynacheck_tests::picky", mutates_args=())
def picky(x: torch.Tensor, kind: str) -> torch.Tensor:
    if x.sum() < 0:
        raise RAISES[kind](f"no {kind}")
    return x * 2


@picky.register_fake
def _(x, kind):
    return torch.empty_like(x)


def missing(x):
    try:
        y = picky(x, "missing")
    except NotImplementedError as error:
        return x - 1, str(error)
    return y + 1, ""


def attribute(x):
    try:
        y = picky(x, "attribute")
    except (AttributeError, ImportError):
        y = x - 1
    return y + 1


def behind_a_write(x):
    x.mul_(2)
    try:
        y = picky(x, "missing")
    except NotImplementedError:
        y = x - 1
    return y + 1


def not_caught(x):
    try:
        y = picky(x, "value")
    except NotImplementedError:
        y = x - 1
    return y + 1


def outcome(fn, value):
    x = torch.full((2,), value)
    try:
        return repr(fn(x)), x.tolist()
    except ValueError as error:
        return str(error), x.tolist()


@pytest.mark.parametrize("fn", [missing, attribute, behind_a_write, not_caught], ids=lambda fn: fn.__name__)
def test_as_plain_python(fn, engine, seen):
    compiled = dynacheck.compile(fn, backend="eager")
    for value in (1.0, -1.0, 1.0, -1.0):
        assert outcome(compiled, value) == outcome(fn, value)
    assert {b.reason for b in seen.graph_breaks} == ({"DC121"} if fn is behind_a_write else set())
    assert seen.graphs or fn is behind_a_write
