"""The same programs in compiled functions: one graph, one entry, the same results on miss and hit, errors by line."""

from __future__ import annotations

import traceback
from types import FunctionType
from typing import Any

import dynacheck
import pytest
import torch
from every_program import PROGRAMS


def _host(program: Any) -> Any:
    """A function of its own (code and all) that computes a tensor and runs the program."""

    def host(x: torch.Tensor) -> Any:
        y = x + 1
        try:
            result = ("value", program())
        except Exception as error:
            result = error
        return y * 2, result

    code = host.__code__.replace(co_name=f"host_{program.__name__}")
    return FunctionType(code, host.__globals__, None, None, host.__closure__)


def _shown(result: Any) -> Any:
    """A result, or what an exception is and the lines it has passed."""
    if not isinstance(result, Exception):
        return result
    passed = traceback.extract_tb(result.__traceback__)
    return type(result), str(result), [(entry.name, entry.lineno) for entry in passed]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda fn: fn.__name__)
def test_compiled(program: Any) -> None:
    host = _host(program)
    x = torch.ones(3)
    expected = host(x)
    with dynacheck.configured(split_more=True), dynacheck.observe() as report:
        compiled = dynacheck.compile(host, backend="eager", fullgraph=True)
        for _ in range(2):
            found = compiled(x)
            assert torch.equal(found[0], expected[0])
            assert _shown(found[1]) == _shown(expected[1])
    assert len(report.graphs) == 1
    assert len(report.cache_entries) == 1
    assert not report.graph_breaks and not report.skipped and not report.eager_runs
