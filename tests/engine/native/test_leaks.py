"""Loops that must not grow: allocated blocks, resident memory, total references where they are counted."""

import gc
import resource
import sys

import pytest
from dynacheck import _C


def resident():
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def hits(native, forced):
    ns = native.make(
        "def f(a, *b, **c): return a\n"
        "def r(a, *b, **c):\n  k1 = a; k2 = b; k3 = c\n  q = lambda: k1\n  return [k1, [k2, [k3, [1]]]]\n"
    )
    native.serve(ns["f"], ns["r"])

    def loop(n):
        _C.force("fallback", forced)
        with native.on(False):
            for i in range(n):
                ns["f"](i, 1, 2, z=3)
        _C.force("fallback", 0)

    return loop


def captured(native, forced):
    if not hasattr(_C, "GUARD_OPS"):
        pytest.skip("the guard program is a placeholder")
    ns = native.make(
        "def f(a): return 0\ndef r(a):\n    captured\n    captured = captured[0]\n    return captured\n"
    )
    nodes = ((_C.GUARD_ACCESSORS["LOCAL"], (0,), (), (), 0),)
    program = _C.GuardProgram((None, nodes, (), 1, (0,)))
    _C.state(ns["f"].__code__).add(_C.Entry(program, ns["r"].__code__, None))

    def loop(n):
        _C.force("fallback", forced)
        with native.on(False):
            for _ in range(n):
                ns["f"](object())
        _C.force("fallback", 0)

    return loop


def errors(native):
    f = native.make("def f(a, *b): return a\n")["f"]

    def fail(func, args, state):
        if func is f:
            raise KeyError
        state.skip = True

    def loop(n):
        with native.on(fail):
            for i in range(n):
                try:
                    f(object(), i)
                except KeyError:
                    pass

    return loop


def junk(native):
    f = native.make("def f(a): return a\n")["f"]

    def loop(n):
        with native.on(lambda func, args, state: 5 if func is f else None):
            for i in range(n):
                try:
                    f(i)
                except TypeError:
                    pass

    return loop


def code_and_entries(native):
    source = compile("def f(a): return a\ndef r(a):\n  b = c = a\n  return b", "<made>", "exec")

    def loop(n):
        with native.on(False):
            for i in range(n):
                ns = {}
                exec(source, ns)
                code = ns["f"].__code__.replace(co_name=f"f{i % 7}")
                region = _C.Region(i)
                entry = _C.Entry(_C.GuardProgram(()), ns["r"].__code__, region if i % 2 else None, object())
                entry.on_death(lambda e: None)
                _C.state(code).add(entry)
                _C.state(code).data = [entry]
                type(ns["f"])(code, {})(1)

    return loop


def wrappers(native):
    ns = native.make("def f(a): return a\n")

    def loop(n):
        for i in range(n):
            region = _C.Region()
            call = _C.HookedCall(ns["f"], native.Rewriter({}), region)
            call.attribute = call
            call(i), _C.HookOff(ns["f"])(i)
            _C.set_callback(*_C.set_callback(False, region))

    return loop


def threads(native):
    def loop(n):
        for _ in range(n // 20):
            native.run_in_thread(lambda: _C.set_callback(False, _C.Region()))

    return loop


LOOPS = {
    "hits in place": (lambda native: hits(native, 0), 20000),
    "hits by fallback": (lambda native: hits(native, 1), 10000),
    "captured values in place": (lambda native: captured(native, 0), 10000),
    "captured values by fallback": (lambda native: captured(native, 1), 10000),
    "callback raises": (errors, 5000),
    "callback returns junk": (junk, 5000),
    "code and entries": (code_and_entries, 1500),
    "wrappers": (wrappers, 4000),
    "threads": (threads, 2000),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loop_does_not_grow(native, name):
    make, n = LOOPS[name]
    loop = make(native)
    loop(n // 5 + 50)
    gc.collect()
    grown = []
    for _ in range(3):
        before = sys.getallocatedblocks(), resident(), getattr(sys, "gettotalrefcount", int)()
        loop(n)
        gc.collect()
        after = sys.getallocatedblocks(), resident(), getattr(sys, "gettotalrefcount", int)()
        grown.append([b - a for a, b in zip(before, after)])
    blocks, memory, references = (min(column) for column in zip(*grown))
    assert blocks < 50 and memory < 1 << 20 and references < 50, grown
