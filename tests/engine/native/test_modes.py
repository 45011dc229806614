"""When the hook is on: set_callback, HookedCall, HookOff, threads."""

import copy
import functools
import gc
import pickle
import sys
import threading
import types
import weakref

import pytest
from dynacheck import _C

PAIR = "def f(a): return ('original', a)\ndef r(a):\n    k = w = a\n    return ('r', a)\n"


def test_set_callback_returns_what_was_set():
    def callback(*_):
        return None

    region = _C.Region()
    assert _C.set_callback(callback, region) == (None, None)
    assert _C.hook_stats()["evaluator"] == "hook" and _C.hook_stats()["users"] == 1
    assert _C.set_callback(False) == (callback, region)
    assert _C.set_callback(callback=False, region=region) == (False, None)
    assert _C.set_callback(None) == (False, region)
    assert _C.set_callback(None) == (None, None)
    assert _C.hook_stats()["evaluator"] == "default"


def test_hooked_call(native, how):
    ns = native.make("def f(a, *b, k=0): return _C.hook_active(), _C.current_region(), a, b, k\n")
    region = _C.Region()
    callback = native.Rewriter({})
    call = _C.HookedCall(ns["f"], callback, region)
    for _ in range(3):
        assert call(1, 2, k=3) == (True, region, 1, (2,), 3)
        assert not _C.hook_active() and _C.hook_stats()["evaluator"] == "default"
    assert callback.names() == {"f"} and call.__wrapped__ is ns["f"]


def test_hooked_call_restores_on_error(native):
    ns = native.make("def f(a): return 1 // a\n")
    call = _C.HookedCall(ns["f"], native.Rewriter({}))
    with native.on(False):
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                call(0)
            assert _C.set_callback(False) == (False, None)
    with pytest.raises(ZeroDivisionError):
        call(0)
    with pytest.raises(TypeError):
        call()
    assert not _C.hook_active()


def test_hooked_call_run_only(native):
    ns = native.make(PAIR)
    native.serve(ns["f"], ns["r"])
    callback = native.Rewriter({})
    assert _C.HookedCall(ns["f"], callback, None, True)(1) == ("r", 1)
    assert _C.HookedCall(ns["f"], False)(1) == ("r", 1)
    assert _C.HookedCall(ns["f"], None)(1) == ("original", 1)
    assert callback.seen == []

    inside = _C.HookedCall(lambda: _C.set_callback(*_C.set_callback(None)), callback, run_only=True)
    inside()  # restoring what was set there doesn't turn run-only into on
    assert callback.seen == []


def test_hooked_call_for_whole_frames(native, how):
    """Entries that split the frame serve neither it nor what it calls, but for calls with another mode."""
    ns = native.make(
        "def f(a): return ('original', a)\n"
        "def r(a):\n    k = w = a\n    return ('r', a)\n"
        "def s(a):\n    k = w = a\n    return ('split', a)\n"
        "def outer(a): return f(a)\n"
    )
    native.serve(ns["f"], ns["r"])
    _C.state(ns["f"].__code__).add(_C.Entry(None, ns["s"].__code__, None, splits=True))
    whole = _C.HookedCall(ns["outer"], False, whole=True)
    parts = _C.HookedCall(ns["outer"], False)
    for _ in range(3):
        assert whole(1) == ("r", 1) and parts(1) == ("split", 1)

    def mixed():
        return ns["f"](1), parts(1), _C.HookOff(ns["f"])(1), ns["f"](1)

    assert [who for who, _ in _C.HookedCall(mixed, False, whole=True)()] == ["r", "split", "original", "r"]


def test_hook_off(native, how):
    ns = native.make(PAIR + "def g(a): return f(a), _C.hook_active(), _C.current_region()\n")
    native.serve(ns["f"], ns["r"])
    off = _C.HookOff(ns["g"])
    assert off(1) == (("original", 1), False, None)
    with native.on(False):
        assert off(1) == (("original", 1), False, None)
        assert _C.hook_stats()["evaluator"] == "hook"  # only the thread's own switch
        assert ns["f"](1) == ("r", 1)
        again = _C.HookedCall(ns["f"], None, run_only=True)
        assert _C.HookOff(lambda: (again(1), ns["f"](1)))() == (("r", 1), ("original", 1))


def test_mode_changes_inside_end_with_the_call(native):
    with native.on(False):
        _C.HookOff(lambda: _C.set_callback(lambda *_: 1 / 0))()
        assert _C.set_callback(False) == (False, None)
        _C.HookedCall(lambda: _C.set_callback(None), False)()
        assert _C.set_callback(False) == (False, None)


def test_wrappers_bind_as_methods(native):
    class Module:
        def __init__(self):
            self.k = 5

        @functools.partial(_C.HookedCall, callback=False)
        def forward(self, x):
            return self.k + x, _C.hook_active()

        @_C.HookOff
        def off(self, x):
            return self.k + x

    module = Module()
    assert module.forward(1) == (6, True) and Module.forward(module, 2) == (7, True)
    assert module.off(1) == 6 and isinstance(Module.off, _C.HookOff)


def test_wrappers_are_like_functions():
    def f(x):
        "doc"
        return x

    call = _C.HookedCall(f, None)
    call.__name__, call.__doc__, call.mark = f.__name__, f.__doc__, 1
    assert (call.__name__, call.__doc__, call.mark) == ("f", "doc", 1)
    assert copy.copy(call) is call and copy.deepcopy([call])[0] is call
    assert weakref.ref(call)() is call


def test_wrappers_pickle_by_name(native, monkeypatch):
    module = types.ModuleType("made_for_pickling")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec("def f(x): return x", module.__dict__)
    call = _C.HookedCall(module.f, None)
    call.__module__ = module.__name__
    module.f = call
    assert pickle.loads(pickle.dumps(call)) is call
    module.f = None
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(call)


def test_wrappers_are_collected():
    def f(x):
        return x

    region = _C.Region()
    alive = weakref.ref(region)
    call = _C.HookedCall(f, lambda *_: call, region)  # noqa: F821
    f.call = call
    off = _C.HookOff(f)
    f.off = off
    del call, off, f, region
    gc.collect()
    assert alive() is None


def test_wrapper_deleted_while_it_runs(native):
    holder = {}

    def f(x):
        del holder["call"]
        gc.collect()
        return x

    holder["call"] = _C.HookedCall(f, False)
    assert holder["call"](5) == 5


def test_threads_have_their_own_mode(native):
    ns = native.make(PAIR)
    native.serve(ns["f"], ns["r"])
    with native.on(False):
        assert native.run_in_thread(lambda: (ns["f"](1), _C.hook_active())) == (("original", 1), False)
        assert ns["f"](1) == ("r", 1)


def test_thread_that_ends_while_on_gives_back(native):
    def callback(*_):
        return None

    alive = weakref.ref(callback)
    native.run_in_thread(lambda callback=callback: _C.set_callback(callback))
    del callback
    gc.collect()
    assert alive() is None and _C.hook_stats()["evaluator"] == "default"


def test_many_threads_with_a_tiny_switch_interval(native, how):
    ns = native.make(PAIR)
    errors = []

    def callback(func, args, state):
        if func is ns["f"]:
            return _C.Entry(None, ns["r"].__code__, None)
        state.skip = True

    def work(hooked):
        try:
            for i in range(150):
                if hooked:
                    _C.set_callback(callback)
                assert ns["f"](i) == ("r" if hooked else "original", i)
                if hooked and i % 3:
                    _C.set_callback(None)
        except BaseException as error:
            errors.append(error)

    was = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(was)
    assert not errors


def test_entries_change_under_running_threads(native):
    """One thread adds, removes and kills entries while others hit."""
    ns = native.make(PAIR)
    state = _C.state(ns["f"].__code__)
    stop, errors = threading.Event(), []

    def hit():
        try:
            with native.on(False):
                while not stop.is_set():
                    assert ns["f"](1)[1] == 1
        except BaseException as error:
            errors.append(error)

    was = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=hit) for _ in range(3)]
    try:
        for thread in threads:
            thread.start()
        for i in range(300):
            entries = [native.serve(ns["f"], ns["r"]) for _ in range(3)]
            entries[0].invalidate()
            state.remove(entries[1])
            if i % 3 == 0:
                state.clear()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(was)
    assert not errors
