"""Fixtures of tests of the whole engine; folders whose tests need a part of it have their own."""

from __future__ import annotations

import logging
import signal
import sys

import dynacheck
import pytest
import torch
from dynacheck import config


class Inspecting:
    """A backend that keeps the graphs it was given and runs them as they are."""

    def __init__(self) -> None:
        self.graphs = []
        self.inputs = []

    def __call__(self, gm, example_inputs):
        self.graphs.append(gm)
        self.inputs.append([tuple(t.shape) if isinstance(t, torch.Tensor) else t for t in example_inputs])
        return gm.forward

    def operators(self, index=-1):
        """Names of the graph's operators, in order."""
        return [
            str(getattr(node.target, "__name__", node.target))
            for node in self.graphs[index].graph.nodes
            if node.op in ("call_function", "call_method")
        ]


@pytest.fixture
def engine():
    """The engine, clean before and after, whose faults are errors; torch's counters say that it translated nothing."""
    config.set_base(raise_internal_errors=True)
    dynacheck.reset()
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is not None:
        utils.counters.clear()
    yield dynacheck
    dynacheck.set_stance("default")
    dynacheck.logs()
    dynacheck.reset()
    config.reset_base()
    utils = sys.modules.get("torch._dynamo.utils")
    assert utils is None or not utils.counters["frames"]


@pytest.fixture
def backend(engine):
    return Inspecting()


@pytest.fixture
def seen(engine):
    """A Report that grows while the test runs."""
    with dynacheck.observe() as report:
        yield report
    assert not report.failures


@pytest.fixture
def logged(engine, caplog):
    """The messages of one artifact's logger."""
    caplog.set_level(logging.DEBUG, logger="dynacheck")

    def messages(artifact):
        return [r.getMessage() for r in caplog.records if r.name == f"dynacheck.{artifact}"]

    return messages


@pytest.fixture
def interrupts():
    """SIGINT raises KeyboardInterrupt, also where it was ignored when Python started (a job in the background)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def quiet():
    """One thread; no warning of a limit that a changing world reaches."""
    threads, level = torch.get_num_threads(), logging.root.manager.disable
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    yield
    torch.set_num_threads(threads)
    logging.disable(level)
