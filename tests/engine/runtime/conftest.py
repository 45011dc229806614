"""Every test starts and ends with a clean engine; faults of the engine are errors."""

from __future__ import annotations

import dynacheck
import pytest
import torch
from dynacheck import config


@pytest.fixture(autouse=True)
def engine():
    config.set_base(raise_internal_errors=True)
    dynacheck.reset()
    yield dynacheck
    dynacheck.set_stance("default")
    dynacheck.reset()
    config.reset_base()


class Counting:
    """A backend that keeps the graphs it was given."""

    def __init__(self) -> None:
        self.graphs = []

    def __call__(self, gm, example_inputs):
        self.graphs.append(gm)
        return gm.forward

    def __len__(self) -> int:
        return len(self.graphs)


@pytest.fixture
def backend():
    return Counting()


@pytest.fixture
def seen():
    """A Report that grows while the test runs."""
    with dynacheck.observe() as report:
        yield report


@pytest.fixture
def x():
    return torch.ones(3)
