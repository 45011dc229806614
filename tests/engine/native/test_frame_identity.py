"""What a rewritten frame looks like from outside: tracebacks, frame objects, the stack, exceptions."""

import faulthandler
import gc
import sys
import threading
import traceback
import weakref

import pytest
from dynacheck import _C

pytestmark = pytest.mark.usefixtures("how")


def test_getframe_and_callers(native):
    ns = native.make(
        """
import inspect
def f(a): return a
def r(a):
    fr = sys._getframe()
    assert inspect.currentframe() is fr and fr.f_locals["a"] == a and fr.f_globals is globals()
    names = []
    while fr:
        names.append(fr.f_code.co_name)
        fr = fr.f_back
    return names
"""
    )
    with native.rewriting({ns["f"]: ns["r"]}):
        for _ in range(3):
            assert ns["f"](1)[:2] == ["r", "test_getframe_and_callers"]


def test_traceback_names_and_lines(native):
    ns = native.make("def f(a): return a\ndef r(a):\n    k = w = 1\n    raise ValueError(a)\n")
    with native.rewriting({ns["f"]: ns["r"]}):
        for _ in range(3):
            with pytest.raises(ValueError, match="boom") as caught:
                ns["f"]("boom")
            entries = traceback.extract_tb(caught.value.__traceback__)
            assert [e.name for e in entries] == ["test_traceback_names_and_lines", "r"]
            assert entries[-1].lineno == 4


def test_try_finally_and_with(native):
    ns = native.make(
        """
log = []
class CM:
    def __enter__(self): log.append('in'); return self
    def __exit__(self, *a): log.append(a[0]); return True
def f(a): return 0
def r(a):
    try:
        with CM() as c:
            q = w = e = 1
            raise KeyError(a)
        return 'swallowed'
    finally:
        log.append('finally')
"""
    )
    native.serve(ns["f"], ns["r"])
    with native.on(False):
        assert ns["f"](1) == "swallowed"
    assert ns["log"] == ["in", KeyError, "finally"]


def test_frame_object_outlives_the_call(native):
    ns = native.make(
        "def f(a, b): return 0\n"
        "def r(a, b):\n"
        "    keep = [a, b]\n"
        "    other = lambda: a\n"
        "    q1 = q2 = q3 = q4 = q5 = q6 = 1\n"
        "    return sys._getframe(), other\n"
    )

    class Thing:
        pass

    thing = Thing()
    alive = weakref.ref(thing)
    with native.rewriting({ns["f"]: ns["r"]}):
        for i in range(20):
            frame, other = ns["f"](thing, i)
            assert frame.f_locals["a"] is thing and frame.f_locals["b"] == i and other() is thing
            assert frame.f_locals["keep"] == [thing, i] and frame.f_code.co_name == "r"
    del thing
    assert alive() is not None
    del frame, other
    gc.collect()
    assert alive() is None


def test_frame_clear(native):
    ns = native.make("def f(a): return 0\ndef r(a):\n    k = w = a\n    return sys._getframe()\n")
    with native.rewriting({ns["f"]: ns["r"]}):
        for _ in range(3):
            frame = ns["f"]([1])
            assert frame.f_locals["a"] == [1]
            frame.clear()
            assert frame.f_locals == {}


def test_faulthandler_and_current_frames(native, tmp_path):
    out = (tmp_path / "stack.txt").open("w+")
    ns = native.make(
        "def f(a): return 0\n"
        "def r(a):\n    k = w = 1\n    faulthandler.dump_traceback(out)\n    return sys._current_frames()\n",
        faulthandler=faulthandler,
        out=out,
    )
    with native.rewriting({ns["f"]: ns["r"]}):
        frames = ns["f"](1)
    assert frames[threading.get_ident()].f_code.co_name in ("r", "test_faulthandler_and_current_frames")
    out.seek(0)
    text = out.read()
    out.close()
    assert "in r\n" in text and "in test_faulthandler_and_current_frames" in text


def test_stack_seen_from_another_thread(native):
    inside, leave = threading.Event(), threading.Event()
    ns = native.make(
        "def f(a): return 0\n"
        "def r(a):\n    k = w = 1\n    inside.set()\n    while not leave.wait(0.001): pass\n    return 7\n",
        inside=inside,
        leave=leave,
    )
    results = []

    def work():
        with native.rewriting({ns["f"]: ns["r"]}):
            results.append(ns["f"](1))

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    frame, names = sys._current_frames()[thread.ident], []
    while frame:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    leave.set()
    thread.join()
    assert results == [7] and names.index("r") < names.index("work")


def test_collection_inside_rewritten_frames(native):
    ns = native.make(
        "def f(a, n=0): return ('original', a)\n"
        "def r(a, n=0):\n"
        "    k1 = k2 = k3 = k4 = k5 = a\n"
        "    if n: return f(a, n - 1)\n"
        "    gc.collect()\n"
        "    return ('new', a)\n"
    )

    class Thing:
        pass

    was = gc.get_threshold()
    gc.set_threshold(1)
    try:
        with native.rewriting({ns["f"]: ns["r"]}):
            for _ in range(20):
                thing = Thing()
                thing.itself = thing
                assert ns["f"](thing, 2) == ("new", thing)
    finally:
        gc.set_threshold(*was)


def test_entry_removed_while_it_runs(native):
    ns = native.make(
        "def f(a): return 0\n"
        "def r(a):\n    k = w = 1\n    _C.state(f.__code__).clear()\n    gc.collect()\n    return (k, a)\n"
    )
    native.serve(ns["f"], ns.pop("r"))
    gc.collect()
    with native.on(False):
        assert ns["f"](3) == (1, 3)
    assert ns["f"](3) == 0


def test_function_code_replaced_while_it_runs(native):
    ns = native.make(
        "def f(a): return 0\n"
        "def g(a): return 'g'\n"
        "def r(a):\n    k = w = z = 1\n    f.__code__ = g.__code__\n    gc.collect()\n    return (k, a)\n"
    )
    native.serve(ns["f"], ns["r"])
    with native.on(False):
        assert ns["f"](3) == (1, 3)
        assert ns["f"](3) == "g"


def test_signal_handler_that_raises(native):
    import signal

    ns = native.make("def f(a): return a\n")

    def handler(*_):
        raise TimeoutError

    was = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0)
    try:
        with pytest.raises(TimeoutError), native.rewriting({ns["f"]: native.big("a", "a")}):
            while True:
                ns["f"](1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, was)
        _C.set_callback(None)
