"""Compile regions: who shares entries, and how long they live."""

from __future__ import annotations

import copy
import functools
import gc
import weakref

import dynacheck
import torch
from dynacheck import _C
from dynacheck.backends import registry
from dynacheck.runtime.engine import engine as the_engine


def region_of(backend, dynamic=None, **keywords):
    return the_engine.regions.find(registry.find(backend, **keywords), dynamic)


def run(gm, example_inputs):
    return gm.forward


def test_what_shares_a_region():
    assert region_of("eager") is region_of("eager")
    assert region_of(run) is region_of(run)
    assert region_of(run) is not region_of(lambda gm, _: gm.forward)
    assert region_of("eager") is not region_of("inspect")
    assert region_of("eager", True) is not region_of("eager")
    assert region_of("aot_eager", options={"a": 1}) is not region_of("aot_eager", options={"a": 2})
    assert region_of("aot_eager", options={"a": 1}) is region_of("aot_eager", options={"a": 1})


def test_a_method_is_one_backend():
    class Owner:
        def backend(self, gm, example_inputs):
            return gm.forward

    owner = Owner()
    kept = region_of(owner.backend)
    assert region_of(owner.backend) is kept
    assert region_of(Owner().backend) is not kept


def test_entries_outlive_the_compiled_function_while_the_backend_lives(seen, backend, x):
    def f(x):
        return x + 1

    for _ in range(2):
        dynacheck.compile(f, backend=backend)(x)
        gc.collect()
    for _ in range(2):
        dynacheck.compile(f, backend="eager")(x)
        gc.collect()
    assert [c.outcome for c in seen.calls] == ["miss", "hit", "miss", "hit"]
    (recompile,) = seen.recompiles
    assert recompile.cause.startswith("recompile:region:")


def test_entries_die_with_the_backend(x):
    def f(x):
        return x + 1

    def make():
        def backend(gm, example_inputs):
            return gm.forward

        dynacheck.compile(f, backend=backend)(x)
        assert len(dynacheck.cache_entries(f)) == 1
        return weakref.ref(backend), weakref.ref(_C.state(f.__code__).entries[0].region)

    refs = make()
    gc.collect()
    assert [ref() for ref in refs] == [None, None]
    assert dynacheck.cache_entries(f) == ()


def test_a_wrapped_backend_does_not_take_over_regions():
    def inner(gm, example_inputs):
        return gm.forward

    region = region_of(inner)

    @functools.wraps(inner)
    def outer(gm, example_inputs):
        return inner(gm, example_inputs)

    assert region_of(outer) is not region
    assert region_of(inner) is region


def test_copies_of_a_backend_have_regions_of_their_own(backend):
    region = region_of(backend)
    assert region_of(copy.deepcopy(backend)) is not region
    assert region_of(copy.copy(backend)) is not region


def test_reset_keeps_compiled_functions_usable(backend, x):
    def f(x):
        return x + 1

    compiled = dynacheck.compile(f, backend=backend)
    other = dynacheck.compile(f, backend="eager")
    for _ in range(3):
        torch.testing.assert_close(compiled(x), x + 1)
        torch.testing.assert_close(other(x), x + 1)
        assert len(dynacheck.cache_entries(f)) == 2
        dynacheck.reset()
        assert dynacheck.cache_entries(f) == ()
    assert len(backend) == 3


def test_reset_from_within_a_compiled_call(x):
    def f(x):
        y = x + 1
        dynacheck.disable(dynacheck.reset)()
        return y * 2

    compiled = dynacheck.compile(f, backend="eager")
    for _ in range(3):
        torch.testing.assert_close(compiled(x), (x + 1) * 2)


def test_graphs_are_dropped_with_their_entries(backend, x):
    class Net(torch.nn.Module):
        def __init__(self, kind):
            super().__init__()
            self.kind = kind

        def forward(self, x):
            return x + (1 if self.kind is not None else 2)

    compiled = dynacheck.compile(Net(None), backend=backend)
    compiled(x)
    info = compiled._dynacheck_compile.job.region.key
    assert len(info.graphs) == 1
    _C.state(Net.forward.__code__).entries[0].invalidate()
    assert len(info.graphs) == 0


def test_isolated_compiles_share_nothing(seen, backend, x):
    def f(x, n):
        return x * n

    one = dynacheck.compile(f, backend=backend, isolate_recompiles=True)
    two = dynacheck.compile(f, backend=backend, isolate_recompiles=True)
    one(x, 2.0)
    two(x, 3.0)
    assert len(backend) == 2 and not seen.recompiles
    two(x, 4.0)
    two(x, 5.0)
    assert len(backend) == 3 and len(seen.recompiles) == 1


def test_no_growth_over_resets(x):
    def f(x):
        return x + 1

    compiled = dynacheck.compile(f, backend="eager")

    def cycle(n):
        for _ in range(n):
            compiled(x)
            dynacheck.reset()
        for _ in range(3):  # classes of graph modules go after the modules
            gc.collect()
        return len(gc.get_objects())

    cycle(5)
    before = cycle(3)
    assert cycle(20) - before < 50


def test_an_entry_that_ended_with_its_compile_counts_as_one_that_was_there(engine):
    def f(x):
        return x + 1

    with dynacheck.observe() as report:
        for _ in range(3):
            compiled = dynacheck.compile(f, backend=lambda graph, inputs: graph)
            compiled(torch.ones(2))
            del compiled
    assert [r.cause.partition("@")[0] for r in report.recompiles] == ["recompile:region:compile"] * 2
    assert (report.counts["cache_entries"], [entry.entry for entry in report.cache_entries]) == (3, [0, 1, 2])
