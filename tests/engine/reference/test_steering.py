"""Stances, marks on dimensions and the other ways to steer compilation, and what each doesn't do."""

from __future__ import annotations

import operator

import dynacheck
import pytest
import torch


def scaled(x, n):
    return x * n


def outcomes(report):
    return [call.outcome for call in report.calls]


# -- stances


def test_fail_on_recompile_raises_instead_of_compiling_again(seen, backend):
    compiled = dynacheck.compile(scaled, backend=backend)
    compiled(torch.ones(4, 3), 2)
    with dynacheck.set_stance("fail_on_recompile"):
        compiled(torch.ones(4, 3), 2)
        with pytest.raises(dynacheck.RecompileError, match=r"scaled .*would be compiled again") as raised:
            compiled(torch.ones(4, 4), 2)
    assert "size=[4, 3], stride=[3, 1])  # now 4" in str(raised.value)
    compiled(torch.ones(4, 4), 2)  # afterwards as before
    assert outcomes(seen) == ["miss", "hit", "eager", "miss"]
    assert len(backend.graphs) == 2


def test_fail_on_recompile_fails_a_first_compile_too(backend):
    compiled = dynacheck.compile(scaled, backend=backend)
    with dynacheck.set_stance("fail_on_recompile"):
        with pytest.raises(dynacheck.RecompileError, match="would be compiled, but the stance"):
            compiled(torch.ones(3), 2)
    assert not backend.graphs


def test_eager_on_recompile_runs_eagerly_and_hits_stay_hits(seen, backend):
    compiled = dynacheck.compile(scaled, backend=backend)
    compiled(torch.ones(4), 2)
    with dynacheck.set_stance("eager_on_recompile"):
        torch.testing.assert_close(compiled(torch.ones(5), 2), torch.full((5,), 2.0))
        compiled(torch.ones(4), 2)
    assert outcomes(seen) == ["miss", "eager", "hit"]
    assert len(backend.graphs) == 1
    (eager,) = seen.eager_runs
    assert eager.why == "stance"


def test_force_eager_ignores_what_is_compiled(seen, backend):
    compiled = dynacheck.compile(scaled, backend=backend)
    compiled(torch.ones(4), 2)
    with dynacheck.set_stance("force_eager"):
        compiled(torch.ones(4), 2)
    compiled(torch.ones(4), 2)
    assert outcomes(seen) == ["miss", "eager", "hit"]


def test_a_stance_set_by_a_call_holds_until_the_default_comes_back(seen, backend):
    compiled = dynacheck.compile(scaled, backend=backend)
    dynacheck.set_stance("force_eager")
    compiled(torch.ones(4), 2)
    dynacheck.set_stance("default")
    compiled(torch.ones(4), 2)
    assert outcomes(seen) == ["eager", "miss"]


def test_a_stance_decorates_a_function(backend):
    compiled = dynacheck.compile(scaled, backend=backend)

    @dynacheck.set_stance("fail_on_recompile")
    def evaluate(x):
        return compiled(x, 2)

    with pytest.raises(dynacheck.RecompileError):
        evaluate(torch.ones(3))
    compiled(torch.ones(3), 2)
    torch.testing.assert_close(evaluate(torch.ones(3)), torch.full((3,), 2.0))


def test_torchs_own_stance_is_honoured(seen, backend):
    compiled = dynacheck.compile(scaled, backend=backend)
    compiled(torch.ones(4), 2)
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(torch.ones(4), 2)
        with pytest.raises(dynacheck.RecompileError):
            compiled(torch.ones(5), 2)
    with torch.compiler.set_stance("force_eager"):
        compiled(torch.ones(4), 2)
    assert outcomes(seen) == ["miss", "hit", "eager", "eager"]


# -- marks


def doubled(x):
    return x * 2


def batches(mark, sizes):
    for size in sizes:
        x = torch.ones(size, 4)
        mark(x)
        yield x


def torchs_mark(x):
    import torch._dynamo

    torch._dynamo.mark_dynamic(x, 0)


@pytest.mark.parametrize("mark", [lambda x: dynacheck.mark_dynamic(x, 0), torchs_mark], ids=["ours", "torch"])
def test_mark_dynamic_avoids_the_second_compile(seen, backend, mark):
    compiled = dynacheck.compile(doubled, backend=backend)
    for x in batches(mark, (8, 9, 10, 700)):
        torch.testing.assert_close(compiled(x), x * 2)
    assert outcomes(seen) == ["miss", "hit", "hit", "hit"]


def test_mark_dynamic_takes_bounds(seen, backend):
    compiled = dynacheck.compile(doubled, backend=backend)
    for x in batches(lambda x: dynacheck.mark_dynamic(x, 0, min=4, max=16), (8, 4, 16)):
        compiled(x)
    assert outcomes(seen) == ["miss", "hit", "hit"]
    compiled(torch.ones(17, 4))
    assert outcomes(seen)[-1] == "miss"


def test_a_mark_that_cannot_hold_is_an_error_with_both_lines(seen, backend):
    def fixed(x):
        if x.shape[0] == 8:
            return x + 1
        return x - 1

    compiled = dynacheck.compile(fixed, backend=backend)

    def mark(x):
        dynacheck.mark_dynamic(x, 0)

    with pytest.raises(dynacheck.ConstraintViolationError) as raised:
        for x in batches(mark, (8,)):
            compiled(x)
    line, marked = fixed.__code__.co_firstlineno + 1, mark.__code__.co_firstlineno + 1
    assert (
        f"x.size()[0] is marked dynamic (mark_dynamic(x, 0) at {__file__}:{marked}) "
        f"but was specialised to 8 at {__file__}:{line} (`if x.shape[0] == 8:`)" in str(raised.value)
    )
    assert not dynacheck.cache_entries(fixed)


def test_maybe_mark_dynamic_gives_way(seen, backend):
    def fixed(x):
        return x + 1 if x.shape[0] == 8 else x - 1

    compiled = dynacheck.compile(fixed, backend=backend)
    for x in batches(lambda x: dynacheck.maybe_mark_dynamic(x, 0), (8, 9, 10)):
        torch.testing.assert_close(compiled(x), fixed(x))
    assert outcomes(seen) == ["miss", "miss", "hit"]


def test_mark_static_keeps_sizes_constant(seen, backend):
    compiled = dynacheck.compile(doubled, backend=backend, dynamic=True)
    for x in batches(lambda x: dynacheck.mark_static(x, 0), (8, 9, 8)):
        compiled(x)
    assert outcomes(seen) == ["miss", "miss", "hit"]


def test_mark_unbacked_assumes_nothing_of_0_and_1(seen, backend):
    compiled = dynacheck.compile(doubled, backend=backend)
    for x in batches(lambda x: dynacheck.mark_unbacked(x, 0), (8, 1, 0, 2)):
        torch.testing.assert_close(compiled(x), x * 2)
    assert outcomes(seen) == ["miss", "hit", "hit", "hit"]


def test_the_value_of_an_unbacked_size_is_not_to_be_had(seen, backend):
    def branching(x):
        if x.shape[0] > 5:
            return x + 1
        return x - 1

    compiled = dynacheck.compile(branching, backend=backend)
    for x in batches(lambda x: dynacheck.mark_unbacked(x, 0), (8, 3)):
        torch.testing.assert_close(compiled(x), branching(x))
    (broke,) = seen.graph_breaks
    assert broke.line == branching.__code__.co_firstlineno + 1
    whole = dynacheck.compile(branching, backend="eager", fullgraph=True)
    with pytest.raises(dynacheck.Unsupported):
        for x in batches(lambda x: dynacheck.mark_unbacked(x, 0), (8,)):
            whole(x)


def test_dynamic_false_never_makes_symbols(seen, backend):
    compiled = dynacheck.compile(doubled, backend=backend, dynamic=False)
    for size in (4, 5, 6):
        compiled(torch.ones(size))
    assert outcomes(seen) == ["miss"] * 3


# -- escape hatches


@pytest.mark.parametrize("which", [dynacheck.disable, torch.compiler.disable], ids=["ours", "torch"])
def test_disable_splits_the_caller_and_leaves_the_function_alone(seen, backend, which):
    ran = []

    @which
    def logs(x):
        ran.append(float(x.sum()))
        return x * 2

    def fn(x):
        return logs(x + 1) - 1

    compiled = dynacheck.compile(fn, backend=backend)
    for _ in range(2):
        torch.testing.assert_close(compiled(torch.ones(3)), torch.full((3,), 3.0))
    assert ran == [6.0, 6.0]  # it ran with real values, each time
    assert [backend.operators(i) for i in range(2)] == [["add"], ["sub"]]
    assert [b.reason for b in seen.graph_breaks] == ["DC105"]


def test_graph_break_splits_and_fullgraph_refuses_it(seen, backend):
    def fn(x):
        x = x + 1
        dynacheck.graph_break()
        return x * 2

    dynacheck.compile(fn, backend=backend)(torch.ones(3))
    assert [backend.operators(i) for i in range(2)] == [["add"], ["mul"]]
    with pytest.raises(dynacheck.Unsupported) as raised:
        dynacheck.compile(fn, backend=backend, fullgraph=True)(torch.ones(3))
    assert f'File "{__file__}", line {fn.__code__.co_firstlineno + 2}, in {fn.__qualname__}' in str(
        raised.value
    )
    torch.testing.assert_close(fn(torch.ones(3)), torch.full((3,), 4.0))  # nothing outside


def test_error_on_graph_break_in_a_block(backend):
    def fn(x):
        x = x + 1
        print("Hi")
        return x

    compiled = dynacheck.compile(fn, backend=backend)
    with dynacheck.error_on_graph_break(True):
        with pytest.raises(dynacheck.Unsupported):
            compiled(torch.ones(3))
    torch.testing.assert_close(compiled(torch.ones(3)), torch.full((3,), 2.0))


def test_is_compiling(backend):
    def fn(x):
        return x + (1 if dynacheck.is_compiling() and torch.compiler.is_compiling() else 2)

    torch.testing.assert_close(dynacheck.compile(fn, backend=backend)(torch.zeros(3)), torch.ones(3))
    torch.testing.assert_close(fn(torch.zeros(3)), torch.full((3,), 2.0))


def test_disallow_in_graph_breaks_at_the_call(seen, backend):
    def fn(x):
        return torch.sinc(x + 1) * 3

    dynacheck.disallow_in_graph(torch.sinc)
    torch.testing.assert_close(dynacheck.compile(fn, backend=backend)(torch.ones(3)), fn(torch.ones(3)))
    assert [backend.operators(i) for i in range(2)] == [["add"], ["mul"]]
    assert seen.counts["graph_breaks"] == 1


def test_allow_in_graph_records_the_call_and_guards_nothing_in_it(seen, backend):
    factor = [2.0]

    @dynacheck.allow_in_graph
    def opaque(x):
        return x * factor[0]

    def fn(x):
        return opaque(x + 1) - 1

    compiled = dynacheck.compile(fn, backend=backend)
    torch.testing.assert_close(compiled(torch.ones(3)), torch.full((3,), 3.0))
    assert backend.operators() == ["add", "opaque", "sub"]
    factor[0] = 3.0
    compiled(torch.ones(3))
    assert outcomes(seen) == ["miss", "hit"]  # what it reads besides its arguments isn't guarded


def test_assume_constant_result_is_called_once_and_goes_stale(seen, backend):
    calls = []

    @dynacheck.assume_constant_result
    def factor():
        calls.append(1)
        return len(calls)

    def fn(x):
        return x * factor()

    compiled = dynacheck.compile(fn, backend=backend)
    for _ in range(3):
        torch.testing.assert_close(compiled(torch.ones(3)), torch.ones(3))
    assert (calls, outcomes(seen)) == ([1], ["miss", "hit", "hit"])


def test_substitute_in_graph_traces_another_function(seen, backend):
    def fn(x, items):
        return x * operator.countOf(items, 3)

    @dynacheck.substitute_in_graph(operator.countOf)
    def count_of(a, b, /):
        return sum(1 for item in a if item is b or item == b)

    compiled = dynacheck.compile(fn, backend=backend, fullgraph=True)
    torch.testing.assert_close(compiled(torch.ones(3), [3, 1, 3]), torch.full((3,), 2.0))
    assert outcomes(seen) == ["miss"]


def test_forbid_in_graph_is_an_error(backend):
    @dynacheck.forbid_in_graph
    def never(x):
        return x + 1

    with pytest.raises(dynacheck.Unsupported, match="never"):
        dynacheck.compile(lambda x: never(x) * 2, backend=backend)(torch.ones(3))


def test_custom_operators_are_recorded_as_they_are(seen, backend):
    @torch.library.custom_op("dynacheck_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)

    def fn(x):
        return twice(x + 1) - 1

    compiled = dynacheck.compile(fn, backend=backend, fullgraph=True)
    torch.testing.assert_close(compiled(torch.ones(3)), torch.full((3,), 3.0))
    assert len(backend.operators()) == 3


# -- scalars


def test_item_breaks(seen, backend):
    def fn(x):
        return x * x.sum().item()

    x = torch.ones(3)
    torch.testing.assert_close(dynacheck.compile(fn, backend=backend)(x), x * 3)
    assert [b.reason for b in seen.graph_breaks] == ["DC102"]


def test_capture_scalar_outputs_keeps_item_in_the_graph(seen, backend):
    def fn(x):
        return x * x.sum().item()

    with dynacheck.configured(capture_scalar_outputs=True):
        compiled = dynacheck.compile(fn, backend=backend, fullgraph=True)
        for scale in (1, 2):
            x = torch.ones(3) * scale
            torch.testing.assert_close(compiled(x), fn(x))
    assert outcomes(seen) == ["miss", "hit"]
    assert "item" in backend.operators()


def test_capture_scalar_outputs_does_not_help_where_python_branches(seen, backend):
    def fn(x):
        n = x.sum().item()
        if n > 0:
            return x + 1
        return x - 1

    with dynacheck.configured(capture_scalar_outputs=True):
        compiled = dynacheck.compile(fn, backend=backend)
        for sign in (1, -1):
            x = torch.ones(3) * sign
            torch.testing.assert_close(compiled(x), fn(x))
    (broke,) = seen.graph_breaks
    assert broke.line == fn.__code__.co_firstlineno + 2


@pytest.mark.parametrize("backend_name", ["eager", "aot_eager"])
def test_a_graph_may_need_sizes_alone(seen, backend_name):
    def fn(x):
        return torch.ones(x.shape[0])

    compiled = dynacheck.compile(fn, backend=backend_name, dynamic=True)
    for rows in (3, 4):
        torch.testing.assert_close(compiled(torch.zeros(rows)), torch.ones(rows))
    assert outcomes(seen) == ["miss", "hit"]


def test_capture_dynamic_output_shape_ops(seen, backend):
    def fn(x):
        return torch.nonzero(x) * 2

    x = torch.tensor([0, 1, 2])
    torch.testing.assert_close(dynacheck.compile(fn, backend=backend)(x), fn(x))
    assert [b.reason for b in seen.graph_breaks] == ["DC112"]
    with dynacheck.configured(capture_dynamic_output_shape_ops=True):
        compiled = dynacheck.compile(fn, backend="eager", fullgraph=True)
        for x in (torch.tensor([0, 1, 2]), torch.tensor([1, 1, 1])):
            torch.testing.assert_close(compiled(x), fn(x))
    assert outcomes(seen)[-1] == "hit"
