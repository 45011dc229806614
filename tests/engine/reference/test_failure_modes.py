"""The ways in which compiled models degrade, each with what a report says about it."""

from __future__ import annotations

import time

import dynacheck
import pytest
import torch


def outcomes(report):
    return [call.outcome for call in report.calls]


# -- recompile storm, then silent eager


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        return x * self.steps


SCALE = 0


def reads_a_global(x):
    return x * SCALE


def test_a_step_counter_recompiles_until_the_limit_and_then_runs_eagerly(seen, backend, capsys):
    model = Counter()
    compiled = dynacheck.compile(model, backend=backend)
    for step in range(1, 13):
        torch.testing.assert_close(compiled(torch.ones(2)), torch.full((2,), float(step)))
    assert outcomes(seen) == ["miss"] * 8 + ["eager"] * 4
    assert len(backend.graphs) == 8
    storm = {c.cause for c in seen.recompiles}
    (cause,) = storm
    assert cause.startswith("recompile:value:self.steps@") and cause.endswith(":Counter.forward")
    history = seen.history(seen.recompiles)
    assert history.values[:3] == ("0", "1", "2")
    assert history.note.startswith("only ever incremented at ")
    assert history.note.endswith(f":{Counter.forward.__code__.co_firstlineno + 1}")
    assert {run.cause.partition("@")[0] for run in seen.eager_runs} == {"eager:limit"}
    assert len(seen.eager_runs) == 4


def test_the_limit_is_said_once_with_function_limit_and_value(seen, backend, logged):
    dynacheck.logs(recompiles=True)
    compiled = dynacheck.compile(Counter(), backend=backend, recompile_limit=2)
    for _ in range(5):
        compiled(torch.ones(2))
    said = [text for text in logged("recompiles") if "recompile_limit" in text]
    assert len(said) == 1
    assert "hit recompile_limit (2)" in said[0]
    assert "function forward in " in said[0] or "Counter.forward" in said[0]
    assert "L['self'].steps" in said[0]


def test_a_global_that_changes_does_the_same(seen, backend, monkeypatch):
    compiled = dynacheck.compile(reads_a_global, backend=backend)
    for value in range(2, 12):
        monkeypatch.setitem(globals(), "SCALE", value)
        torch.testing.assert_close(compiled(torch.ones(2)), torch.full((2,), float(value)))
    assert outcomes(seen) == ["miss"] * 8 + ["eager"] * 2
    assert seen.recompiles[0].changes[0].source == "SCALE"


def test_entries_made_before_the_limit_keep_serving(seen, backend, monkeypatch):
    compiled = dynacheck.compile(reads_a_global, backend=backend, recompile_limit=2)
    for value in (2, 3, 4, 2, 3):
        monkeypatch.setitem(globals(), "SCALE", value)
        torch.testing.assert_close(compiled(torch.ones(2)), torch.full((2,), float(value)))
    assert outcomes(seen) == ["miss", "miss", "eager", "hit", "hit"]


def test_the_limit_can_be_an_error(backend):
    compiled = dynacheck.compile(Counter(), backend=backend)
    with dynacheck.configured(fail_on_recompile_limit_hit=True, recompile_limit=2):
        with pytest.raises(dynacheck.FailOnRecompileLimitHit, match="recompile_limit"):
            for _ in range(4):
                compiled(torch.ones(2))
    with dynacheck.configured(error_on_recompile=True):
        fresh = dynacheck.compile(reads_a_global, backend=backend)
        fresh(torch.ones(2))
        with pytest.raises(dynacheck.RecompileError):
            fresh(torch.ones(2, 2))


# -- graph count explodes


def deep(x):
    x = x + 1
    print("deep")
    return x * 2


def middle(x):
    return deep(x + 1) - 1


def top(x):
    return middle(x) * 3


def test_a_print_in_a_helper_splits_every_caller(seen, backend):
    x = torch.ones(2)
    torch.testing.assert_close(dynacheck.compile(top, backend=backend)(x), top(x))
    # top has no operator before the call: its first part is an entry without a graph
    assert seen.counts["graphs"] == 5
    assert sorted(backend.operators(i) for i in range(5)) == [["add"], ["add"], ["mul"], ["mul"], ["sub"]]
    (broke,) = seen.graph_breaks  # one place, the helper's line, with the calls that led there
    assert broke.line == deep.__code__.co_firstlineno + 2
    assert broke.times == 3
    assert broke.function == "deep"


# -- sizes 0 and 1


def doubled(x):
    return x * 2


@pytest.mark.parametrize("marked", [False, True])
def test_a_batch_of_one_has_an_entry_of_its_own(seen, backend, marked):
    compiled = dynacheck.compile(doubled, backend=backend)
    for size in (8, 9, 10, 1, 0, 11):
        x = torch.ones(size, 4)
        if marked:
            dynacheck.mark_dynamic(x, 0)
        torch.testing.assert_close(compiled(x), x * 2)
    first = ["miss", "hit", "hit"] if marked else ["miss", "miss", "hit"]
    assert outcomes(seen) == [*first, "miss", "miss", "hit"]
    one = seen.recompiles[-2].changes[0]
    assert (one.kind, one.now) == ("size", 1)
    assert one.hint.startswith("sizes 0 and 1 have entries of their own")


# -- dynamic in name only


def narrow(x):
    if 3 < x.shape[0] < 5:
        return x * 2
    return x * 3


def looked_up(x):
    return x * (2, 3, 5, 7, 11, 13, 17)[x.shape[0]]


@pytest.mark.parametrize("mark", [False, True])
@pytest.mark.parametrize("fn", [narrow, looked_up])
def test_an_entry_with_a_dynamic_size_that_serves_one_size_only(seen, backend, fn, mark):
    compiled = dynacheck.compile(fn, backend=backend)
    for size in (2, 4, 6, 4):
        x = torch.ones(size, 4)
        if mark:
            dynacheck.maybe_mark_dynamic(x, 0)
        torch.testing.assert_close(compiled(x), fn(x))
    assert outcomes(seen) == ["miss", "miss", "miss", "hit"]
    pinned = seen.recompiles[-1].changes[0]
    assert (pinned.kind, pinned.then, pinned.now) == ("size", "x.size()[0] == 4", 6)
    assert pinned.line == fn.__code__.co_firstlineno + 1
    assert "the entry serves one size only" in pinned.hint


@pytest.mark.parametrize("fn", [narrow, looked_up])
def test_a_mark_that_ends_up_pinned_is_an_error(backend, fn):
    x = torch.ones(4, 4)
    dynacheck.mark_dynamic(x, 0)
    with pytest.raises(dynacheck.ConstraintViolationError) as raised:
        dynacheck.compile(fn, backend=backend)(x)
    assert "mark_dynamic(x, 0)" in str(raised.value)
    assert f"specialised to 4 at {__file__}:{fn.__code__.co_firstlineno + 1}" in str(raised.value)


# -- duck shaping


def test_sizes_that_were_equal_are_taken_to_stay_equal(seen, backend):
    compiled = dynacheck.compile(doubled, backend=backend, dynamic=True)
    for shape in ((5, 5), (6, 6), (5, 6)):
        compiled(torch.ones(shape))
    assert outcomes(seen) == ["miss", "hit", "miss"]
    equality = seen.recompiles[0].changes[0]
    assert equality.kind == "expression"
    assert equality.then == "x.size()[1] == x.size()[0]"
    assert "equal" in equality.hint


def test_only_dynamic_true_shapes_like_ducks(seen, backend):
    compiled = dynacheck.compile(doubled, backend=backend)
    for shape in ((4, 4), (5, 5), (5, 6), (7, 9)):
        compiled(torch.ones(shape))
    assert outcomes(seen) == ["miss", "miss", "hit", "hit"]


# -- stale captures


def test_what_a_recorded_function_closes_over_goes_stale(seen):
    weight = torch.ones(3, requires_grad=True)

    @dynacheck.nonstrict_trace
    def scaled(x):
        return x * weight

    def fn(x):
        return scaled(x) + 1

    compiled = dynacheck.compile(fn, backend="eager")
    x = torch.ones(3)
    torch.testing.assert_close(compiled(x), torch.full((3,), 2.0), check_stride=False)
    assert not any("weight" in guard for entry in dynacheck.cache_entries(fn) for guard in entry.guards)
    weight = torch.full((4,), 5.0)  # another shape: nothing guards it
    with pytest.raises(RuntimeError, match="must match"):
        compiled(x)
    assert outcomes(seen) == ["miss", "hit"]


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_lowered_capture_is_a_constant_without_gradients(seen, dynamic):
    weight = torch.ones(3, requires_grad=True)

    @dynacheck.nonstrict_trace
    def scaled(x):
        return x * weight

    def fn(x):
        return scaled(x) + 1

    compiled = dynacheck.compile(fn, backend="aot_eager", dynamic=dynamic)
    torch.testing.assert_close(compiled(torch.ones(2, 3)), torch.full((2, 3), 2.0), check_stride=False)
    weight = torch.full((3,), 5.0)  # another tensor: not seen
    found = compiled(torch.ones(2, 3))
    torch.testing.assert_close(found, torch.full((2, 3), 2.0), check_stride=False)
    assert not found.requires_grad
    assert outcomes(seen) == ["miss", "hit"]


# -- long first step


def test_the_first_call_of_each_entry_carries_the_compile(seen):
    def slow(gm, example_inputs):
        time.sleep(0.05)
        return gm.forward

    compiled = dynacheck.compile(doubled, backend=slow)
    for size in (4, 4, 5, 5):
        compiled(torch.ones(size))
    assert outcomes(seen) == ["miss", "hit", "miss", "hit"]
    assert all(graph.seconds >= 0.05 for graph in seen.graphs)
    assert all(entry.seconds >= 0.05 for entry in seen.cache_entries)
    assert [graph.recompile for graph in seen.graphs] == [False, True]
