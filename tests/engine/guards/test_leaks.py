"""Checks leave nothing behind: blocks, references, weak references of guarded objects."""

import gc
import sys
import weakref

import pytest
import torch
from dynacheck import _C
from dynacheck.guards import AmbientState, Is, PyCheck, TypeIs, ValueIs, build_program, install
from dynacheck.sources import CAttr, FrameView, Root
from torch import nn

LOOPS = 20_000


def growth(fn, n=LOOPS, rounds=3):
    """Memory blocks gained by n calls, after a warm-up: the least of several rounds.

    A leak gains in every round; what only fills a free list, a type's cache or a set of watched
    dicts up to its limit, as the first thousand new modules of a process do, doesn't.
    """
    for _ in range(200):
        fn()
    gained = []
    for _ in range(rounds):
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(n):
            fn()
        gc.collect()
        gained.append(sys.getallocatedblocks() - before)
    return min(gained)


def net():
    return nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Dropout()))


def test_passing_and_failing_checks(modules, shortcut):
    x, model = torch.ones(2, 4), net()
    compiled = modules.program(model, x, AmbientState.now())
    frame, wrong = modules.frame(model, x), modules.frame(model, torch.ones(2, 5))
    refs = sys.getrefcount(x), sys.getrefcount(model), sys.getrefcount(model[0].weight)
    assert growth(lambda: compiled.check(frame)) < 50
    assert growth(lambda: compiled.check(wrong)) < 50
    assert growth(lambda: compiled.program.captured(frame.args, frame.func)) < 50
    assert (sys.getrefcount(x), sys.getrefcount(model), sys.getrefcount(model[0].weight)) == refs


def test_changing_state(modules):
    x, model = torch.ones(2, 4), net()
    compiled, frame = modules.program(model, x), modules.frame(model, x)
    count = iter(range(10**9))

    def step():
        model.step = next(count)
        model.eval()
        compiled.check(frame)
        model.train()
        compiled.check(frame)

    assert growth(step, 2000) < 50


def test_new_models(modules):
    x = torch.ones(2, 4)
    compiled = modules.program(net(), x)

    def step():
        frame = modules.frame(net(), x)
        compiled.check(frame)
        compiled.check(frame)

    assert growth(step, 1000) < 100


def test_getters_and_python_checks(guarded):
    x = torch.ones(2, requires_grad=True)
    root = Root(guarded.frame(x))
    install(root.local("x", 0).child(CAttr("grad")), ValueIs(None), None)
    install(root.local("x", 0), PyCheck(lambda t: True, (), ""), None)
    compiled = build_program(root, None, (root.local("x", 0).child(CAttr("data")),))
    frame = guarded.frame(x)
    assert growth(lambda: compiled.program.captured(frame.args, frame.func)) < 50


def test_errors(guarded):
    compiled = guarded.program([1], PyCheck(lambda v: v.missing, (), ""), at=lambda n: n.item(0))

    def step():
        with pytest.raises(AttributeError):
            compiled.check(guarded.frame([1]))

    assert growth(step, 2000) < 50


def test_building_programs(modules):
    x, model = torch.ones(2, 4), net()

    def step():
        compiled = modules.program(model, x, AmbientState.now())
        assert compiled.check(modules.frame(model, x))

    assert growth(step, 150) < 100


def test_building_fails_halfway():
    ops, accessors = _C.GUARD_OPS, _C.GUARD_ACCESSORS
    good = (ops["KEYS"], ((("CONST", 1), ("WEAK", nn.Linear)),), None)
    bad = (ops["TENSOR"], (1, 2), None)
    node = (accessors["LOCAL"], (0,), (good, good, bad), (), 0)

    def step():
        with pytest.raises((TypeError, ValueError)):
            _C.GuardProgram((None, ((accessors["LOCAL"], (0,), (good,), (node,), -1),), (), 1, ()))

    assert growth(step, 2000) < 50


def test_programs_die_with_their_owner(guarded):
    class Thing:
        pass

    thing = Thing()
    compiled = guarded.program(thing, Is(thing), TypeIs(Thing))
    assert len(weakref.getweakrefs(thing)) == 2  # the guard's and the program's
    del compiled
    gc.collect()
    assert not weakref.getweakrefs(thing)


def test_cycles_through_python_checks_are_collected(guarded):
    class Owner:
        def look(self, value):
            return True

    owner = Owner()
    owner.compiled = guarded.program(1, PyCheck(owner.look, (), ""))
    ref = weakref.ref(owner)
    del owner
    gc.collect()
    assert ref() is None


def test_death_is_told_once():
    class Thing:
        pass

    def f(x):
        return x

    things = [Thing(), Thing()]
    root = Root(FrameView(f, (1,)))
    for thing in things:
        install(root.local("x", 0), Is(thing), None)
    compiled = build_program(root, None)
    told = []
    entry = _C.Entry(compiled.program, f.__code__, None, None)
    entry.on_death(told.append)
    things.clear()
    gc.collect()
    assert told == [entry] and not entry.alive and not compiled.program.alive


@pytest.mark.slow
def test_a_million_checks(modules):
    x, model = torch.ones(2, 4), net()
    compiled, frame = modules.program(model, x, AmbientState.now()), modules.frame(model, x)
    assert growth(lambda: compiled.check(frame), 1_000_000) < 50
