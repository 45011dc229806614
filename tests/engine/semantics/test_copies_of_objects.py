"""Copies of objects whose class has a `__getattribute__` of its own."""

import copy

import dynacheck
import pytest
import torch


class Aliased:
    """Answers to other names for its attributes, as configurations of models do."""

    aliases = {"width": "hidden"}

    def __init__(self):
        self.hidden, self.sizes = 4, [1, 2]

    def __getattribute__(self, name):
        if name != "aliases" and name in super().__getattribute__("aliases"):
            name = super().__getattribute__("aliases")[name]
        return super().__getattribute__(name)


class Remade(Aliased):
    """Says of itself how it is copied."""

    def __getattribute__(self, name):
        if name == "__reduce_ex__":
            return lambda protocol: (Aliased, ())
        return super().__getattribute__(name)


def deep(x, owner):
    made = copy.deepcopy(owner)
    made.sizes = [*getattr(made, "sizes", ()), 3]
    return x * made.width, made.sizes, owner.sizes


def shallow(x, owner):
    made = copy.copy(owner)
    return x * made.width, made is owner, getattr(made, "sizes", None) is owner.sizes


@pytest.mark.parametrize("fn", [deep, shallow])
@pytest.mark.parametrize(("cls", "breaks"), [(Aliased, 0), (Remade, 1)])
def test_copy(fn, cls, breaks):
    x = torch.ones(3)
    dynacheck.reset()
    with dynacheck.observe() as report:
        found = [dynacheck.compile(fn, backend="eager")(x, cls()) for _ in range(2)]
    for result in found:
        wanted = fn(x, cls())
        torch.testing.assert_close(result[0], wanted[0])
        assert result[1:] == wanted[1:]
    assert report.counts["graphs"] and report.counts["graph_breaks"] == breaks
