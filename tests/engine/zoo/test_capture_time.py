"""First calls with a backend that compiles nothing, against torch.compile's: processor time, in one process, in turns."""

import math
import time

import dynacheck
import pytest
import torch
from bench_capture import nothing, programs

pytestmark = pytest.mark.slow
ROUNDS = 3


def first_call(compile_, reset, model, args):
    reset()
    compiled = compile_(model, backend=nothing)
    start = time.process_time()
    compiled(*args)
    return time.process_time() - start


def test_first_calls_take_at_most_a_quarter_of_torchs():
    """The geometric mean over models; none is slower than torch's."""
    sides = (torch.compile, torch._dynamo.reset), (dynacheck.compile, dynacheck.reset)
    ratios = {}
    with torch.no_grad():
        for name, model, args in programs():
            for compile_, reset in sides:
                first_call(compile_, reset, model, args)  # what a process does once
            rounds = [[first_call(*side, model, args) for side in sides] for _ in range(ROUNDS)]
            theirs, ours = map(min, zip(*rounds))
            ratios[name] = ours / theirs
    torch._dynamo.reset()
    assert len(ratios) >= 3
    assert max(ratios.values()) < 1, ratios
    assert math.exp(sum(map(math.log, ratios.values())) / len(ratios)) <= 1 / 4, ratios
