"""Tracebacks show the user's frames; -vv and --full-trace show all."""

from __future__ import annotations

import pytest

from pytest_dynacheck._tracebacks import is_internal

TEXT = """
def wrong(x):
    return x.view(7)

@pytest.mark.max_graphs(1)
def test_one():
    torch.compile(wrong, fullgraph=True)(X)

@pytest.mark.max_graphs(1)
def test_cause():
    def backend(gm, inputs):
        raise KeyError("mine")
    torch.compile(clean, backend=backend)(X)
"""


def files(result: pytest.RunResult) -> set[str]:
    return {
        line.split(":")[0]
        for line in result.outlines
        if ".py:" in line and not line.startswith(("FAILED", "E "))
    }


def test_internal_frames_are_left_out(project):
    result = project.run(text=TEXT)
    result.assert_outcomes(failed=2)
    assert not [name for name in files(result) if is_internal(name)]
    assert "test_it.py" in files(result)
    assert "KeyError: 'mine'" in result.stdout.str()


@pytest.mark.parametrize("option", ["-vv", "--full-trace"])
def test_all_frames_on_request(project, option):
    result = project.run(option, text=TEXT)
    assert [name for name in files(result) if is_internal(name)]


def test_what_is_internal():
    import dynacheck
    import torch._dynamo.eval_frame as eval_frame

    assert is_internal(dynacheck.__file__)
    assert is_internal(eval_frame.__file__)
    assert not is_internal(__file__)
