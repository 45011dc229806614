"""Debuggers, profilers, coverage and monitoring see a rewritten frame as an ordinary one."""

import bdb
import cProfile
import io
import os
import pstats
import sys

import pytest
from dynacheck import _C

pytestmark = pytest.mark.usefixtures("how")


def interesting(code, func):
    return code.co_filename == "<rewritten>" or code is func.__code__ or code.co_name == "<discarded>"


def test_settrace_and_setprofile(native):
    f = native.make("def f(a): return a\n")["f"]
    events = []

    def tracer(frame, event, arg):
        if interesting(frame.f_code, f):
            events.append((frame.f_code.co_name, event))
            return tracer

    def profiler(frame, event, arg):
        if interesting(frame.f_code, f):
            events.append((frame.f_code.co_name, event))

    with native.rewriting({f: native.big("a", "('r', a)")}):
        for i in range(3):
            sys.settrace(tracer)
            result = f(i)
            sys.settrace(None)
            assert result == ("r", i)
            assert events[0] == ("r", "call") and events[-1] == ("r", "return")
            assert sum(event == "line" for _, event in events) >= 62 and {name for name, _ in events} == {"r"}
            events.clear()
            sys.setprofile(profiler)
            f(i)
            sys.setprofile(None)
            assert events == [("r", "call"), ("r", "return")]
            events.clear()


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="sys.monitoring is new in 3.12")
def test_monitoring(native):
    monitoring = sys.monitoring
    names = (
        "PY_START PY_RETURN PY_UNWIND PY_THROW PY_RESUME PY_YIELD RAISE RERAISE EXCEPTION_HANDLED "
        "STOP_ITERATION LINE INSTRUCTION JUMP BRANCH CALL"
    ).split()
    wanted = 0
    for name in names:
        wanted |= getattr(monitoring.events, name, 0)
    f = native.make("def f(a):\n    return a\n")["f"]
    g = native.make("def g(a): return a\n")["g"]
    events = []

    def fail(func, args, state):
        if func is g:
            raise KeyError(1)
        state.skip = True

    def record(name):
        def callback(code, *_):
            if interesting(code, f) or code is g.__code__:
                events.append((code.co_name, name))

        return callback

    monitoring.use_tool_id(3, "test")
    try:
        for name in names:
            if hasattr(monitoring.events, name):
                monitoring.register_callback(3, getattr(monitoring.events, name), record(name))
        with native.rewriting({f: native.big("a", "('r', a)")}):
            for i in range(3):
                monitoring.set_events(3, wanted)
                result = f(i)
                monitoring.set_events(3, 0)
                assert result == ("r", i)
                seen = [e for e in events if e[1] in ("PY_START", "PY_RETURN", "PY_UNWIND", "RAISE", "LINE")]
                assert seen[0] == ("r", "PY_START") and seen[-1] == ("r", "PY_RETURN")
                assert {name for name, _ in events} == {"r"}
                events.clear()
        with native.on(fail):
            monitoring.set_events(3, wanted)
            with pytest.raises(KeyError):
                g(1)
            monitoring.set_events(3, 0)
        assert events == []
    finally:
        monitoring.set_events(3, 0)
        for name in names:
            if hasattr(monitoring.events, name):
                monitoring.register_callback(3, getattr(monitoring.events, name), None)
        monitoring.free_tool_id(3)


RECURSIVE = (
    "def f(a, n=0): return ('original', a)\n"
    "def r(a, n=0):\n    k1 = k2 = k3 = k4 = a\n    if n: return f(a, n - 1)\n    return ('r', a)\n"
)


def test_cprofile(native):
    ns = native.make(RECURSIVE)
    profile = cProfile.Profile()
    with native.rewriting({ns["f"]: ns["r"]}):
        profile.enable()
        for _ in range(5):
            ns["f"](1, 3)
        profile.disable()
    out = io.StringIO()
    pstats.Stats(profile, stream=out).print_stats()
    (line,) = (line for line in out.getvalue().splitlines() if "(r)" in line)
    assert line.split()[0].startswith("20")


def test_bdb(native):
    ns = native.make(RECURSIVE)
    lines = []

    class Debugger(bdb.Bdb):
        def user_line(self, frame):
            lines.append((frame.f_code.co_name, frame.f_lineno))
            self.set_step()

    def go():
        with native.rewriting({ns["f"]: ns["r"]}):
            return ns["f"](5)

    assert Debugger().runcall(go) == ("r", 5)
    assert [n for name, n in lines if name == "r"] == [3, 4, 5]


CORES = ["ctrace", "pytrace", *(["sysmon"] if sys.version_info >= (3, 12) else [])]


@pytest.mark.parametrize("core", CORES)
def test_coverage(native, core, tmp_path, monkeypatch):
    coverage = pytest.importorskip("coverage")
    path = tmp_path / "covered.py"
    path.write_text(
        "def f(a):\n    return ('o', a)\n"
        "def r(a):\n    k1 = k2 = k3 = a\n    if a:\n        return ('r', a)\n    return 0\n"
    )
    monkeypatch.setenv("COVERAGE_CORE", core)
    measure = coverage.Coverage(data_file=None, include=[str(path)])
    measure.start()
    try:
        ns = {}
        exec(compile(path.read_text(), str(path), "exec"), ns)
        with native.rewriting({ns["f"]: ns["r"]}):
            for _ in range(3):
                assert ns["f"](1) == ("r", 1)
    finally:
        measure.stop()
    assert sorted(measure.get_data().lines(os.path.realpath(path))) == [1, 3, 4, 5, 6]


def test_tracing_changes_nothing_for_the_callback(native):
    """The callback's own frames are traced; the frame that it gives up is not."""
    f = native.make("def f(a): return a\n")["f"]
    names = []

    def fail(func, args, state):
        raise KeyError

    def tracer(frame, event, arg):
        names.append(frame.f_code.co_name)

    with native.on(fail):
        sys.settrace(tracer)
        try:
            f(1)
        except KeyError:
            pass
        sys.settrace(None)
        _C.set_callback(None)
    assert "fail" in names and not {"f", "<discarded>"} & set(names)
