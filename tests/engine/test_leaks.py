"""Whole programs in loops: neither allocated blocks nor resident memory grow."""

from __future__ import annotations

import gc
import logging
import resource
import sys
import weakref

import dynacheck
import pytest
import torch

pytestmark = pytest.mark.usefixtures("engine")


def resident():
    """Bytes of this process in memory; 0 where that isn't told."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def refuse(record):
    return False


def collect():
    """What a collection frees may be the last thing that kept more alive."""
    while gc.collect():
        pass


def grown(run, n):
    """(blocks per round, resident bytes) that n rounds add after a warm-up."""
    trace = logging.getLogger("torch.__trace")
    trace.addFilter(refuse)  # pytest keeps records, and torch makes some for each symbol
    try:
        run(max(5, n // 10))
        collect()
        blocks, memory = sys.getallocatedblocks(), resident()
        run(n)
        collect()
    finally:
        trace.removeFilter(refuse)
    return (sys.getallocatedblocks() - blocks) / n, resident() - memory


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(3))
        self.seen = {}

    def forward(self, x, items):
        for layer in self.layers:
            x = torch.relu(layer(x))
        items.append(x)
        self.seen["last"] = len(items)
        print(end="")
        return x * 2, {"items": items}


@pytest.mark.parametrize("n", [3_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_hits_of_a_program_with_a_break_and_effects(n):
    compiled = dynacheck.compile(Net(), backend=lambda gm, inputs: lambda *args: (args[0],) * 9)
    x = torch.ones(2, 3)

    def hits(n):
        for _ in range(n):
            compiled(x, [])

    blocks, memory = grown(hits, n)
    assert blocks < 0.01
    assert memory < 8 << 20
    assert dynacheck.cache_entries(Net)[0].hits > n


def test_hits_with_symbols():
    compiled = dynacheck.compile(lambda x: x + x.shape[0], backend="eager", dynamic=True)
    inputs = [torch.ones(n) for n in range(2, 40)]

    def hits(n):
        for i in range(n):
            compiled(inputs[i % len(inputs)])

    blocks, memory = grown(hits, 2_000)
    assert blocks < 0.01
    assert memory < 8 << 20


@pytest.mark.parametrize("n", [30, pytest.param(1_000, marks=pytest.mark.slow)])
def test_compiling_and_resetting(n):
    compiled = dynacheck.compile(Net(), backend="eager")

    def cycles(n):
        for i in range(n):
            for rows in (2, 3):
                compiled(torch.ones(rows, 3), [])
            dynacheck.reset()

    blocks, memory = grown(cycles, n)
    assert blocks < 20
    assert memory < 96 << 20


@pytest.mark.parametrize("n", [20, pytest.param(1_000, marks=pytest.mark.slow)])
def test_models_that_only_their_compiled_form_holds(n):
    """Models whose backend closes over them, compiled, called and dropped, without a cycle of the program's own."""
    refs = []

    def models(n):
        for _ in range(n):
            model = Net()

            def backend(gm, example_inputs, model=model):
                return lambda *args: (model, gm(*args))[1]

            dynacheck.compile(model, backend=backend)(torch.ones(2, 3), [])
            refs.append(weakref.ref(model))
            del model, backend
            if len(refs) % 5 == 0:
                gc.collect()  # until then they count to the limit

    blocks, memory = grown(models, n)
    assert [ref for ref in refs if ref() is not None] == []
    assert dynacheck.cache_entries(Net) == ()
    refs.clear()
    assert blocks < 20  # the weak references among them
    assert memory < 48 << 20


def test_frames_that_are_skipped_or_fail_keep_nothing():
    def skipped(x):
        for _ in range(2):
            print(end="")
        return x + 1

    def raises(x):
        raise KeyError(x + 1)

    def fails(gm, example_inputs):
        raise ValueError("no")

    class Local:
        pass

    def rounds(n):
        for _ in range(n):
            held = Local()
            held.x = torch.ones(3)
            refs.append(weakref.ref(held))
            dynacheck.compile(skipped, backend="eager")(held.x)
            for fn, backend in ((raises, "eager"), (lambda x: x + 1, fails)):
                try:
                    dynacheck.compile(fn, backend=backend)(held.x)
                except (KeyError, dynacheck.BackendError):
                    pass
            dynacheck.reset()

    refs = []
    blocks, memory = grown(rounds, 30)
    del refs[:-1]
    gc.collect()
    assert refs[0]() is None
    assert blocks < 20
    assert memory < 32 << 20
