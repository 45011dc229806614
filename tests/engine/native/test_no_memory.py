"""Every allocation failing in turn: an exception or the right result, and all works afterwards."""

import pytest
from dynacheck import _C

testcapi = pytest.importorskip("_testcapi")
if not hasattr(testcapi, "set_nomemory"):
    pytest.skip("this build can't fail allocations", allow_module_level=True)


def sweep(action, check, reset=lambda: None, most=60):
    """Runs `action` with its n-th allocation failing, for every n until it makes fewer than that."""
    failed = 0
    for n in range(most):
        reset()
        testcapi.set_nomemory(n, n + 1)
        try:
            result = action()
        except MemoryError:
            failed += 1
            continue
        finally:
            testcapi.remove_mem_hooks()
        check(result)
    return failed


@pytest.mark.parametrize("forced", [0, 1])
def test_hits(native, forced):
    ns = native.make("def f(a, b): return 0\ndef r(a, b):\n    k = w = a\n    return a\n")
    code = ns["r"].__code__
    f = ns["f"]

    def reset():
        _C.state(f.__code__).clear()
        native.serve(f, code)

    def right(result):
        assert result == 1

    _C.force("fallback", forced)
    try:
        with native.on(False):
            failed = sweep(lambda: f(1, 2), right, reset)
            assert f(1, 2) == 1
    finally:
        _C.force("fallback", 0)
    assert failed or not forced


@pytest.mark.parametrize("forced", [0, 1])
def test_misses(native, forced):
    ns = native.make("def f(a, *b): return 0\ndef r(a, *b):\n    k = w = a\n    return a\n")
    f, code = ns["f"], ns["r"].__code__

    def callback(func, args, state):
        return _C.Entry(None, code, None) if func is f else None

    def right(result):
        assert result == 1

    _C.force("fallback", forced)
    try:
        with native.on(callback):
            for _ in range(2):
                assert sweep(lambda: f(1, 2), right, lambda: _C.state(f.__code__).clear())
                fresh = native.make("def f(a, *b): return 0\n")["f"]
                f = fresh
            assert f(1, 2) == 1
    finally:
        _C.force("fallback", 0)


@pytest.mark.parametrize("forced", [0, 1])
def test_captured_values(native, forced):
    if not hasattr(_C, "GUARD_OPS"):
        pytest.skip("the guard program is a placeholder")
    ns = native.make(
        "def f(a): return 0\ndef r(a):\n    captured\n    captured = captured[0]\n    return captured\n"
    )
    nodes = ((_C.GUARD_ACCESSORS["LOCAL"], (0,), (), (), 0),)
    f, code = ns["f"], ns["r"].__code__

    def reset():
        _C.state(f.__code__).clear()
        program = _C.GuardProgram((None, nodes, (), 1, (0,)))
        _C.state(f.__code__).add(_C.Entry(program, code, None))

    def right(result):
        assert result == 5

    _C.force("fallback", forced)
    try:
        with native.on(False):
            sweep(lambda: f(5), right, reset)
            reset()
            assert f(5) == 5
    finally:
        _C.force("fallback", 0)


def test_objects(native):
    ns = native.make("def f(a): return 0\ndef r(a): return a\n")

    def make():
        region = _C.Region(1)
        entry = _C.Entry(_C.GuardProgram(()), ns["r"].__code__, region, 2)
        state = _C.state(ns["f"].__code__)
        state.add(entry)
        state.add(_C.Entry(None, ns["r"].__code__, region))
        call = _C.HookedCall(ns["f"], False, region)
        result = (
            call(5),
            _C.HookOff(ns["f"])(5),
            state.entries,
            _C.states(),
            _C.hook_stats(),
            _C.thread_counts(),
        )
        del region, call
        return result[:2], entry.alive, state.entries

    def right(result):
        assert result == ((5, 0), False, ())

    def reset():
        _C.state(ns["f"].__code__).clear()

    assert sweep(make, right, reset) > 10
    reset()
    right(make())


def test_first_mode_of_a_thread(native):
    def in_thread():
        def first():
            testcapi.set_nomemory(n, n + 1)
            try:
                _C.set_callback(False)
            except MemoryError:
                return "failed"
            finally:
                testcapi.remove_mem_hooks()
            return _C.hook_active()

        return native.run_in_thread(first)

    results = set()
    for n in range(12):
        results.add(in_thread())
    assert results <= {"failed", True} and True in results
