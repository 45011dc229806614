"""The constant that runs a graph, and entries that split a frame."""

from __future__ import annotations

import functools
import gc
import weakref

import pytest
from dynacheck import _C


def test_a_graph_runs_with_the_hook_off(native):
    seen = []

    def graph(x):
        seen.append(_C.hook_active())
        return (x + 1,)

    owner = _C.GraphOwner(graph)
    call = owner.call
    assert owner.call is call and owner.fn is graph and call.__wrapped__ is graph
    ns = native.make("def f(a): return call(a)\n", call=call)
    with native.on(lambda *_: None):
        assert ns["f"](1) == (2,)
    assert seen == [False]
    with pytest.raises(TypeError, match="no keyword"):
        call(x=1)


def test_a_call_does_not_own_its_graph(native):
    class Model:
        pass

    model = Model()

    def graph(x, model=model):
        return x

    owner = _C.GraphOwner(graph)
    model.owner = owner  # a cycle that the collector can see
    call, gone = owner.call, weakref.ref(model)
    code = native.make("def f(a): return call(a)\n", call=call)["f"].__code__
    code = code.replace(co_consts=(*code.co_consts, call))
    del model, graph, owner
    gc.collect()
    assert gone() is None
    assert call.__wrapped__ is None
    with pytest.raises(ReferenceError, match="region"):
        call(1)


def test_a_call_may_die_first():
    owner = _C.GraphOwner(lambda: 1)
    call = owner.call
    del call
    assert owner.call() == 1
    with pytest.raises(TypeError, match="callable"):
        _C.GraphOwner(3)


def test_entries_that_split_do_not_serve_calls_that_want_the_whole_frame(native):
    ns = native.make("def f(a): return a\ndef r(a): return 'split'\n")
    f = ns["f"]
    _C.state(f.__code__).add(_C.Entry(None, ns["r"].__code__, None, None, True))
    missed = []

    def callback(func, args, state):
        missed.append(func.__name__)

    assert _C.HookedCall(f, callback)(1) == "split"
    assert _C.HookedCall(f, callback, whole=True)(1) == 1
    assert missed == ["f"]


def test_a_graph_that_goes_while_it_runs(native):
    holder = {}

    class Graph:
        def __call__(self, x):
            holder.clear()
            gc.collect()
            return self, x

    for mode in (False, None):
        holder["owner"] = _C.GraphOwner(Graph())
        call = holder["owner"].call
        with native.on(mode):
            assert type(call(5)[0]) is Graph
        assert call.__wrapped__ is None


def test_a_frame_is_run_again(native):
    """Where code raises Rerun the call is made in the frame's place: no traceback and no caller sees the first run."""
    told = []

    def after(returned):
        told.append(returned)
        return errors.pop() if errors else None

    errors = []
    ns = native.make(
        "def f(a): return a\ndef g(a): raise Rerun(partial(again, a), after)\ndef again(a): return a + 1\n",
        Rerun=_C.Rerun, partial=functools.partial, after=after,
    )  # fmt: skip
    region = _C.Region()
    _C.state(ns["f"].__code__).add(_C.Entry(None, ns["g"].__code__, region))
    call = _C.HookedCall(ns["f"], False, region)
    assert call(1) == 2
    with pytest.raises(TypeError, match="unsupported operand") as raised:
        call(None)
    assert [entry.name for entry in raised.traceback][1:] == ["again"]
    assert raised.value.__context__ is None
    errors.append(KeyError("instead"))
    with pytest.raises(KeyError, match="instead"):
        call(1)
    assert told == [True, False, True]


def test_rerun_of_another_form_is_an_error(native):
    ns = native.make("def f(a): return a\ndef g(a): raise Rerun(1)\n", Rerun=_C.Rerun)
    region = _C.Region()
    _C.state(ns["f"].__code__).add(_C.Entry(None, ns["g"].__code__, region))
    with pytest.raises(TypeError, match="Rerun"):
        _C.HookedCall(ns["f"], False, region)(1)
