"""Guard programs on frames: which entry serves, captured values, errors, guards that are Python code."""

import gc
import itertools
import weakref

import pytest
from dynacheck import _C

if not hasattr(_C, "GUARD_OPS"):
    pytest.skip("the guard program is a placeholder", allow_module_level=True)

LOCAL, FREE, CELL = (_C.GUARD_ACCESSORS[name] for name in ("LOCAL", "FREE", "CELL"))


def value(expected):
    return (_C.GUARD_OPS["VALUE"], (("CONST", expected),), None)


def length(expected):
    return (_C.GUARD_OPS["LENGTH"], (expected,), None)


class Python:
    """A guard that is a Python function of the value."""

    def __init__(self, fn):
        self.fn = fn

    def check(self, slots):
        return self.fn(slots[0])


def python(fn):
    return (_C.GUARD_OPS["PYCHECK"], (), Python(fn))


def local(index, *checks, slot=-1):
    return (LOCAL, (index,), checks, (), slot)


def free(index, *checks):
    return (FREE, (index,), (), ((CELL, (), checks, (), -1),), -1)


def program(*nodes, captures=()):
    slots = max([node[4] for node in nodes], default=-1) + 1
    return _C.GuardProgram((None, nodes, (), slots, tuple(captures)))


# The hook fills `captured`, the local at the index after the arguments.
CAPTURING = """
def f(a, *b, k=0): return 'original', a
def r(a, *b, k=0):
    captured
    x = y = z = w = a
    if 0: captured = None
    return captured, a, b, k
"""


def test_entry_by_values_of_every_kind_of_slot(native, how):
    """Arguments (also ones that become cells), *args, **kwargs and free variables select among 32 entries."""
    source = (
        "def outer(k):\n"
        "  def f(a, *r, b=0, **kw):\n"
        "    def h(): return a\n"
        "    return (%r, h(), k)\n"
        "  def change(value):\n"
        "    nonlocal k\n"
        "    k = value\n"
        "  return f, change\n"
    )

    def outer(tag):
        return native.make(source % (tag,))["outer"](1)

    f, change = outer("original")

    def callback(func, args, state):
        if func is not f:
            state.skip = True
            return None
        a, b, r, kw = args
        k = func.__closure__[0].cell_contents
        guards = program(
            local(0, value(a)),
            local(1, value(b)),
            local(2, length(len(r))),
            local(3, length(len(kw))),
            free(0, value(k)),
        )
        return _C.Entry(guards, outer(("new", a, b, len(r), len(kw), k))[0].__code__, None)

    with native.on(callback):
        for _ in range(3):
            for a, b, r, kw, k in itertools.product((1, 2), (0, 5), ((), (1, 2)), ({}, {"q": 1}), (1, 2)):
                change(k)
                assert f(a, *r, b=b, **kw) == (("new", a, b, len(r), len(kw), k), a, k)
    state = _C.state(f.__code__)
    assert (len(state.entries), state.hits, state.misses) == (32, 64, 32)


def test_captured_values_arrive(native, how):
    ns = native.make(CAPTURING)
    f, code = ns["f"], ns["r"].__code__
    assert code.co_varnames[code.co_argcount + 2] == "captured"
    state = _C.state(f.__code__)
    state.add(_C.Entry(program(local(0, slot=1), local(2, slot=0), captures=(1, 0)), code, None))
    thing = [1]
    with native.on(False):
        for _ in range(20):
            assert f(thing, 2, k=3) == ((thing, (2,)), thing, (2,), 3)
            # the slots are numbered in frame order: arguments, keyword-only, *args
    assert state.hits == 20


def test_captured_values_of_the_first_run(native, how):
    ns = native.make(CAPTURING)

    def callback(func, args, state):
        if func is not ns["f"]:
            state.skip = True
            return None
        return _C.Entry(program(local(0, slot=0), captures=(0,)), ns["r"].__code__, None)

    with native.on(callback):
        for i in range(3):
            assert ns["f"](i, k=9) == ((i,), i, (), 9)
    assert _C.state(ns["f"].__code__).hits == 2


def test_captured_values_are_released(native, how):
    class Thing:
        pass

    ns = native.make(CAPTURING)
    entry = _C.Entry(program(local(0, slot=0), captures=(0,)), ns["r"].__code__, None)
    _C.state(ns["f"].__code__).add(entry)
    thing = Thing()
    alive = weakref.ref(thing)
    with native.on(False):
        assert ns["f"](thing)[0] == (thing,)
    del thing
    assert alive() is None


def test_captured_values_need_a_local(native):
    ns = native.make("def f(a): return 0\ndef r(a): return a\n")
    entry = _C.Entry(program(local(0, slot=0), captures=(0,)), ns["r"].__code__, None)
    with pytest.raises(ValueError, match="no local after the arguments"):
        _C.state(ns["f"].__code__).add(entry)


def test_capturing_entry_must_pass_for_its_own_frame(native, how):
    ns = native.make(CAPTURING)

    def callback(func, args, state):
        if func is not ns["f"]:
            state.skip = True
            return None
        return _C.Entry(program(local(0, value(7), slot=0), captures=(0,)), ns["r"].__code__, None)

    with native.on(callback), pytest.raises(RuntimeError, match="guards of a new entry fail"):
        ns["f"](1)


def test_guard_that_raises_is_an_error_not_a_miss(native, how):
    class Thing:
        pass

    def fail(_):
        raise LookupError("a guard")

    ns = native.make("def f(a): return 0\ndef r(a):\n    k = w = a\n    return a\n")
    state = _C.state(ns["f"].__code__)
    state.add(_C.Entry(program(local(0, python(fail))), ns["r"].__code__, None))
    thing = Thing()
    alive = weakref.ref(thing)
    called = []
    with native.on(lambda *args: called.append(args)), pytest.raises(LookupError, match="a guard"):
        ns["f"](thing)
    del thing
    gc.collect()
    assert alive() is None
    assert not [args for args in called if args[0] is ns["f"]] and state.misses == 0


def test_python_guards_run_with_the_hook_off(native, how):
    seen = []

    def look(x):
        seen.append(_C.hook_active())
        return x == 1

    ns = native.make("def f(a): return 0\ndef r(a):\n    k = w = a\n    return ('r', a)\n")
    _C.state(ns["f"].__code__).add(_C.Entry(program(local(0, python(look))), ns["r"].__code__, None))
    with native.rewriting({}) as callback:
        assert ns["f"](1) == ("r", 1) and ns["f"](2) == 0
        assert _C.hook_active()
    assert seen == [False, False] and not callback.names() & {"look", "check"}


def test_python_guard_that_clears_the_state(native, how):
    ns = native.make("def f(a): return 0\ndef r(a):\n    k = w = a\n    return ('r', a)\n")
    state = _C.state(ns["f"].__code__)

    def clear(x):
        state.clear()
        gc.collect()
        return x == 1

    def fill():
        for _ in range(3):
            state.add(_C.Entry(program(local(0, python(clear))), ns["r"].__code__, None))

    with native.on(False):
        fill()
        assert ns["f"](1) == ("r", 1)
        fill()
        assert ns["f"](2) == 0
    assert state.entries == ()


def test_entry_that_dies_while_guards_are_checked_does_not_serve(native, how):
    ns = native.make("def f(a): return 0\ndef r(a):\n    k = w = a\n    return ('r', a)\n")
    last = native.serve(ns["f"], ns["r"])
    kill = python(lambda x: last.invalidate())
    _C.state(ns["f"].__code__).add(_C.Entry(program(local(0, kill)), ns["r"].__code__, None))
    with native.on(False):
        assert ns["f"](1) == 0


def test_entry_dies_with_an_object_that_its_guards_hold(native):
    class Thing:
        pass

    thing, told = Thing(), []
    ns = native.make("def f(a): return 0\ndef r(a): return ('r', a)\n")
    same = (_C.GUARD_OPS["IS"], (("WEAK", thing),), None)
    entry = _C.Entry(program(local(0, same)), ns["r"].__code__, None)
    entry.on_death(told.append)
    state = _C.state(ns["f"].__code__)
    state.add(entry)
    with native.on(False):
        assert ns["f"](thing) == ("r", thing) and ns["f"](Thing()) == 0
    del thing, same
    gc.collect()
    assert told == [entry] and not entry.alive and state.entries == ()


def test_alternating_values_and_a_new_phase(native):
    ns = native.make("def f(a): return 0\ndef r(a): return a\n")
    state = _C.state(ns["f"].__code__)
    entries = {}
    for v in (1, 2, 3):
        entries[v] = _C.Entry(program(local(0, value(v))), ns["r"].__code__.replace(co_name=f"r{v}"), None)
        state.add(entries[v])
    with native.on(False):
        for v in (1, 2) * 10:
            assert ns["f"](v) == v
        assert state.entries[0] is entries[3]
        ns["f"](1), ns["f"](1)
        assert state.entries[0] is entries[1]
