"""`explain` counts what torch's counts, and says what each graph calls, where it broke and what is assumed."""

from __future__ import annotations

import dynacheck
import pytest
import torch
import torch._dynamo


def whole(x):
    return torch.relu(x + 1) * 2


def broken(x):
    y = x + 1
    torch._dynamo.graph_break()
    y = y.sin()
    if y.sum() > 0:
        return y * 2
    return y - 1


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.by = torch.nn.Linear(3, 3), 0.5

    def forward(self, x):
        return broken(self.layer(x)) * self.by


@pytest.mark.parametrize("make", [lambda: whole, lambda: broken, Net], ids=["whole", "broken", "module"])
def test_it_counts_what_torchs_counts(make):
    torch.manual_seed(0)
    fn, x = make(), torch.ones(2, 3)
    ours = dynacheck.explain(fn)(x)
    torch._dynamo.reset()
    theirs = torch._dynamo.explain(fn)(x)
    torch._dynamo.reset()
    assert (ours.graph_count, ours.op_count) == (theirs.graph_count, theirs.op_count)
    assert ours.ops_per_graph == theirs.ops_per_graph
    places = {
        (reason.user_stack[-1].filename, reason.user_stack[-1].lineno) for reason in theirs.break_reasons
    }
    assert {(found.path, found.line) for found in ours.break_reasons} == places
    assert ours.graph_break_count == len(places)
    assert ours.out_guards and len(ours.compile_times.splitlines()) == len(ours.report.cache_entries)


def test_it_says_where_and_why():
    told = str(dynacheck.explain(broken)(torch.ones(3)))
    first = broken.__code__.co_firstlineno
    for part in ("Graph Count: 3", "Graph Break Count: 2", "DC", f'File "{__file__}", line {first + 2}, in broken',
                 f'File "{__file__}", line {first + 4}, in broken'):  # fmt: skip
        assert part in told, told


def test_entries_that_are_there_do_not_count_and_stay():
    compiled = dynacheck.compile(whole, backend="eager")
    compiled(torch.ones(3))
    assert dynacheck.explain(whole, torch.ones(3)).graph_count == 1
    with dynacheck.observe() as seen:
        compiled(torch.ones(3))
    assert [call.outcome for call in seen.calls] == ["hit"]
