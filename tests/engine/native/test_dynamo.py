"""Beside torch's own frame hook: above it, below it, interleaved with it, in threads."""

import random
import sys
import threading
import types

import pytest
from dynacheck import _C

torch = pytest.importorskip("torch")

SOURCE = """
def f(a): return ('original', a)
def r(a):
    k1 = k2 = k3 = 1
    return ('r', a)
def sine(a): return torch.sin(a) + 1
def cosine(a):
    z = torch.cos(a)
    return z
"""


class Counter:
    """A backend that counts graphs and runs them as they are."""

    graphs = 0

    def __call__(self, module, inputs):
        self.graphs += 1
        return module.forward


@pytest.fixture
def x():
    return torch.ones(3)


@pytest.fixture(autouse=True)
def torch_hook_off():
    torch._dynamo.reset()
    yield
    torch._C._dynamo.eval_frame.set_eval_frame(None)
    torch._dynamo.reset()


@pytest.fixture
def made(native, monkeypatch):
    ns = native.make(SOURCE, torch=torch)
    module = types.ModuleType("made")  # torch 2.11 imports the module that a function's globals name
    vars(module).update(ns)
    monkeypatch.setitem(sys.modules, "made", module)
    return type("Made", (), {"__slots__": (), **{k: staticmethod(v) for k, v in ns.items() if callable(v)}})


@pytest.fixture
def hook():
    """torch's switch of its own hook: False is run-only, None is off."""
    return torch._C._dynamo.eval_frame.set_eval_frame


def evaluator():
    return _C.hook_stats()["evaluator"]


def test_ours_inside_a_torch_region(native, made, x):
    backend = Counter()

    @torch._dynamo.disable
    def body(a):
        with native.rewriting({made.f: made.r}):
            return made.f(a)

    def outer(a):
        y = torch.sin(a)
        z = body(y)
        return torch.cos(y), z

    compiled = torch.compile(outer, backend=backend)
    for _ in range(3):
        out, (who, _) = compiled(x)
        assert who == "r" and torch.equal(out, torch.cos(torch.sin(x)))
    assert backend.graphs >= 1 and evaluator() in ("default", "other")


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace")
def test_switching_ours_inside_a_frame_that_torch_compiles(native, made, x):
    """Whoever ends up below the other, frames don't go round in circles between the two."""
    callback = native.Rewriter({made.f.__code__: made.r.__code__})

    def outer(a):
        y = torch.sin(a)
        previous = _C.set_callback(callback)
        who, _ = made.f(1)
        _C.set_callback(*previous)
        return torch.cos(y), who

    compiled = torch.compile(outer, backend=Counter())
    for mode in (None, callback, False):
        with native.on(mode):
            for _ in range(3):
                out, who = compiled(x)
                assert torch.allclose(out, torch.cos(torch.sin(x))) and who in ("r", "original")
    assert evaluator() in ("default", "other")


@pytest.mark.parametrize("first_off", ["ours", "torch"])
def test_torch_on_in_two_threads(native, made, hook, first_off):
    """The second thread's switch puts torch's evaluator on ours, which sits on torch's: a cycle of two."""
    on, leave = threading.Event(), threading.Event()

    def other():
        hook(False)
        on.set()
        leave.wait()
        hook(None)

    def torch_off():
        leave.set()
        thread.join()

    thread = threading.Thread(target=other)
    thread.start()
    on.wait()
    with native.rewriting({made.f: made.r}):
        hook(False)
        results = [made.f(i) for i in range(3)]
        hook(None)
        results += [made.f(i) for i in range(3)]
        if first_off == "torch":
            torch_off()
        results += [made.f(0)]
    if first_off == "ours":
        torch_off()
    assert [who for who, _ in results] == ["r"] * 7
    assert made.f(1) == ("original", 1)
    assert evaluator() == "default"


def test_torch_inside_our_region(native, made, x):
    backend = Counter()
    compiled = torch.compile(made.sine, backend=backend)
    ns = native.make(
        "def f2(a): return None\ndef r2(a):\n  q = compiled(a)\n  w = compiled(a)\n  return q, w\n",
        compiled=compiled,
    )
    with native.rewriting({ns["f2"]: ns["r2"], made.f: made.r}):
        for _ in range(3):
            assert all(torch.allclose(out, torch.sin(x) + 1) for out in ns["f2"](x))
            assert made.f(1) == ("r", 1)
        assert evaluator() == "hook"
    assert backend.graphs == 1


def test_torch_first_and_not_nested(native, made, hook):
    """torch on, ours on, torch off: torch takes our hook down with it until the next switch."""
    callback = native.Rewriter({made.f.__code__: made.r.__code__})
    hook(False)
    try:
        with native.on(callback):
            assert made.f(1)[0] == "r"
            hook(None)
            assert made.f(1)[0] in ("r", "original")
            with native.on(callback):
                assert made.f(1)[0] == "r"
    finally:
        hook(None)


def test_ours_first_and_not_nested(native, made, hook):
    callback = native.Rewriter({made.f.__code__: made.r.__code__})
    _C.set_callback(callback)
    hook(False)
    assert made.f(1)[0] == "r"  # handed down by torch's
    _C.set_callback(None)
    assert made.f(1)[0] == "original"
    _C.set_callback(callback)
    assert made.f(1)[0] == "r"
    _C.set_callback(None)
    hook(None)
    assert made.f(1)[0] == "original" and evaluator() == "default"


def test_interleaved_at_random(native, made, hook, x):
    backend, choose = Counter(), random.Random(0)
    callback = native.Rewriter({made.f.__code__: made.r.__code__})
    compiled = torch.compile(made.sine, backend=backend)
    on = False
    for i in range(1500):
        k = choose.randrange(6)
        if k < 2:
            on = k == 0
            _C.set_callback(callback if on else None)
        elif k < 4:
            hook(False if k == 2 else None)
        elif k == 4 and i % 10 == 0:
            assert torch.allclose(compiled(x), torch.sin(x) + 1)
        else:
            who, value = made.f(i)
            assert value == i and (on or who == "original")
            if on:
                _C.set_callback(callback)
                assert made.f(i)[0] == "r"
    _C.set_callback(None)
    hook(None)
    made.f(1)
    assert evaluator() == "default"


def test_both_compile_the_same_function(native, made, x):
    backend = Counter()
    compiled = torch.compile(made.sine, backend=backend)
    both = _C.HookedCall(compiled, native.Rewriter({made.sine.__code__: made.cosine.__code__}))
    ours, theirs = torch.cos(x), torch.sin(x) + 1
    for _ in range(3):
        out = both(x)
        assert torch.allclose(out, ours) or torch.allclose(out, theirs)
    alone = _C.HookedCall(made.sine, native.Rewriter({made.sine.__code__: made.cosine.__code__}))
    assert torch.allclose(alone(x), ours) and torch.allclose(compiled(x), theirs)


def test_a_frame_that_both_want_on_torch_below(native, made, hook, x):
    """Ours on top hands a rewritten frame down to torch's evaluator, which compiles what it sees."""
    backend = Counter()
    compiled = torch.compile(made.sine, backend=backend)

    @torch._dynamo.disable
    def inner():
        with native.rewriting({made.sine: made.cosine}):
            return made.sine(x)

    assert torch.allclose(compiled(x), torch.sin(x) + 1)
    assert torch.allclose(torch.compile(lambda: inner(), backend=backend)(), torch.cos(x))


def test_errors_cross_both(native, made, x):
    ns = native.make("def f(a): return a\ndef r(a):\n    k = w = 1\n    raise KeyError('inside')\n")
    compiled = torch.compile(made.sine, backend=Counter())

    def body(a):
        compiled(a)
        return ns["f"](a)

    with native.rewriting({ns["f"]: ns["r"]}):
        for _ in range(3):
            with pytest.raises(KeyError, match="inside"):
                body(x)


def test_threads_of_both(native, made, x):
    compiled = torch.compile(made.sine, backend=Counter())
    compiled(x)
    callback = native.Rewriter({made.f.__code__: made.r.__code__})
    errors, lost = [], []

    def ours():
        for i in range(500):
            with native.on(callback):
                lost.append(made.f(i)[0] != "r")  # torch may take the evaluator away in another thread

    def theirs():
        for _ in range(500):
            assert torch.allclose(compiled(x), torch.sin(x) + 1)

    def guarded(work):
        try:
            work()
        except BaseException as error:
            errors.append(error)

    was = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=guarded, args=(work,)) for work in (ours, theirs, ours, theirs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(was)
    assert not errors and len(lost) == 1000
