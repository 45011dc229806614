"""The callback: what it may return, raise, change; flags it sets; who is counted."""

import gc
import sys
import traceback
import weakref

import pytest
from dynacheck import _C


class Thing:
    pass


def only(func, action):
    """A callback that does `action(func, args, state)` for one function and skips the rest."""

    def callback(called, args, state):
        if called.__code__ is func.__code__:
            return action(called, args, state)
        state.skip = True
        return None

    return callback


def test_error_gives_the_frame_up(native, how):
    f = native.make("def f(a, *b): return a\n")["f"]

    def fail(*_):
        raise KeyError("from the callback")

    thing = Thing()
    alive = weakref.ref(thing)
    before = _C.hook_stats()["discarded"]
    with native.on(only(f, fail)):
        for _ in range(5):
            with pytest.raises(KeyError) as caught:
                f(thing, 1, 2)
            names = [e.name for e in traceback.extract_tb(caught.value.__traceback__)]
            assert names == ["test_error_gives_the_frame_up", "callback", "fail"]
            del caught
    assert _C.hook_stats()["discarded"] - before == 5
    del thing
    gc.collect()
    assert alive() is None
    assert f(3) == 3


@pytest.mark.parametrize("junk", [42, "entry", (), NotImplemented, True])
def test_junk_is_a_type_error(native, junk):
    f = native.make("def f(a): return a\n")["f"]
    with native.on(only(f, lambda *_: junk)), pytest.raises(TypeError, match="an Entry, None or False"):
        f(1)
    assert f(3) == 3


def test_entry_that_does_not_fit_is_a_value_error(native):
    ns = native.make("def f(a): return a\ndef other(a, b): return a\n")
    give = only(ns["f"], lambda *_: _C.Entry(None, ns["other"].__code__, None))
    with native.on(give), pytest.raises(ValueError, match="f has another number of arguments"):
        ns["f"](1)


def test_gc_in_callback_keeps_arguments(native, how):
    ns = native.make("def f(a): return 0\ndef r(a):\n    k = w = a\n    return a\n")

    def collect(func, args, state):
        del args
        gc.collect()
        return _C.Entry(None, ns["r"].__code__, None)

    for _ in range(10):
        _C.state(ns["f"].__code__).clear()
        with native.on(only(ns["f"], collect)):
            assert type(ns["f"](Thing())) is Thing


def test_hook_is_off_inside(native):
    ns = native.make("def f(a): return a\ndef g(a): return a\n")
    seen = []

    def look(func, args, state):
        seen.append(_C.hook_active())
        ns["g"](1)

    with native.on(only(ns["f"], look)):
        ns["f"](1)
        assert _C.hook_active()
    assert seen == [False] and _C.peek_state(ns["g"].__code__) is None


def test_mode_changes_inside_end_with_it(native):
    ns = native.make("def f(a): return a\ndef g(a): return a\n")

    def change(func, args, state):
        _C.set_callback(lambda *_: 1 / 0)
        _C.set_callback(None)
        _C.set_callback(False, _C.Region())

    callback = only(ns["f"], change)
    with native.on(callback):
        assert ns["f"](1) == 1
        assert _C.set_callback(callback) == (callback, None)
        assert ns["g"](2) == 2


def test_callback_reenters_the_same_code(native, how):
    ns = native.make("def f(a): return 0\ndef r(a):\n    k = w = z = a\n    return ('r', a)\n")
    depth = []

    def again(func, args, state):
        depth.append(1)
        if len(depth) < 4:
            with native.on(callback):
                assert ns["f"](99) == ("r", 99)
        return _C.Entry(None, ns["r"].__code__, None)

    callback = only(ns["f"], again)
    with native.on(callback):
        assert ns["f"](1) == ("r", 1)
    assert len(_C.state(ns["f"].__code__).entries) == 4


def test_skip_and_skip_recursive(native):
    ns = native.make("def inner(): return 1\ndef outer(): return inner()\n")
    calls = []

    def callback(func, args, state):
        calls.append(func.__name__)
        if func is ns["outer"]:
            state.skip_recursive = True
        else:
            state.skip = True

    with native.on(callback):
        ns["outer"](), ns["outer"]()
        assert calls == ["outer"]
        assert _C.hook_active()
        ns["inner"](), ns["inner"]()
        assert calls == ["outer", "inner"]


def test_run_only(native):
    ns = native.make("def f(): return 1\ndef g(): return 1\ndef r(): return 2\n")
    calls = []
    callback = only(ns["g"], lambda *_: calls.append("g"))
    _C.state(ns["g"].__code__).run_only = True
    native.serve(ns["f"], ns["r"])
    with native.on(callback):
        assert ns["g"]() == 1 and calls == []
    with native.on(False):
        assert ns["f"]() == 2 and ns["g"]() == 1
    assert _C.state(ns["g"].__code__).misses == 2


def test_existing_entry_may_be_returned(native):
    """What a second thread does that found the first one's entry after waiting for it."""
    ns = native.make("def f(a): return 0\ndef r(a): return ('r', a)\n")
    region = _C.Region()
    entry = native.serve(ns["f"], ns["r"], region)
    with native.on(only(ns["f"], lambda *_: entry)):  # another region: a miss
        assert ns["f"](1) == ("r", 1)
    state = _C.state(ns["f"].__code__)
    assert state.entries == (entry,) and (state.hits, state.misses, entry.hits) == (0, 1, 0)


def test_counts(native):
    ns = native.make("def f(a): return 0\ndef r(a): return ('r', a)\n")
    state = _C.state(ns["f"].__code__)
    hits, misses = _C.thread_counts()
    with native.on(only(ns["f"], lambda *_: _C.Entry(None, ns["r"].__code__, None))):
        for i in range(5):
            ns["f"](i)
        now = _C.thread_counts()
    assert (state.hits, state.misses, state.entries[0].hits) == (4, 1, 4)
    assert now[0] - hits == 4 and now[1] - misses >= 1
    assert native.run_in_thread(_C.thread_counts) == (0, 0)


def test_hit_observer(native, how):
    ns = native.make("def f(a): return 0\ndef r(a):\n    k = w = a\n    return ('r', a)\n")
    entry = native.serve(ns["f"], ns["r"])
    told = []

    def observer(hit, func):
        told.append((hit, func, _C.hook_active()))

    _C.set_hot_list(observer)
    with native.on(False):
        ns["f"](1)
    call = _C.HookedCall(ns["f"], None, run_only=True)
    assert call(2) == ("r", 2)
    assert told == [(entry, ns["f"], False)] * 2
    _C.set_hot_list(None)
    assert call(2) == ("r", 2) and len(told) == 2


def test_hit_observer_that_raises(native, how):
    ns = native.make("def f(a): return 0\ndef r(a): return a\n")
    native.serve(ns["f"], ns["r"])

    def observer(entry, func):
        raise LookupError

    _C.set_hot_list(observer)
    thing = Thing()
    alive = weakref.ref(thing)
    with native.on(False), pytest.raises(LookupError):
        ns["f"](thing)
    del thing
    gc.collect()
    assert alive() is None


def test_callback_is_dropped_with_its_extent(native):
    def make():
        def callback(func, args, state):
            state.skip = True

        return callback, weakref.ref(callback)

    callback, alive = make()
    with native.on(callback):
        (lambda: 1)()
    del callback
    gc.collect()
    assert alive() is None


def test_recursion_error_inside_the_callback(native):
    f = native.make("def f(a): return a\n")["f"]

    def dig(n=0):
        return dig(n + 1)

    with native.on(only(f, lambda *_: dig())):
        for _ in range(3):
            with pytest.raises(RecursionError):
                f(1)
    assert f(1) == 1 and sys.getrecursionlimit() > 100


def test_false_runs_what_is_below_with_existing_entries_only(native):
    ns = native.make(
        "def g(a): return a\ndef h(a): return a\ndef f(a): return g(a), h(a)\n"
        "def r(a): return 'entry'\ndef other(a): return g(a)\n"
    )
    native.serve(ns["h"], ns["r"].__code__)
    seen = []

    def callback(func, args, state):
        seen.append(func.__name__)
        return False if func.__name__ == "f" else None

    with native.on(callback):
        assert ns["f"](1) == (1, "entry")
        assert seen == ["f"]
        assert ns["other"](2) == 2
    assert seen == ["f", "other", "g"]
