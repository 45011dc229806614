"""What goes wrong: backends that raise, faults of the engine, interrupts, threads."""

from __future__ import annotations

import os
import signal
import threading

import dynacheck
import pytest
import torch
from dynacheck import _C, config, configured
from dynacheck.runtime import miss


def f(x, n=1):
    return x + n


def failing(gm, example_inputs):
    raise ZeroDivisionError("no code for this")


def test_a_backend_that_raises(seen, x):
    compiled = dynacheck.compile(f, backend=failing)
    for _ in range(2):
        with pytest.raises(dynacheck.BackendError) as caught:
            compiled(x)
        assert "backend 'failing' raised ZeroDivisionError: no code for this" in str(caught.value)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert "def forward" in caught.value.graph_code and "+ 1" in caught.value.graph_code
    assert dynacheck.cache_entries(f) == () and seen.counts["graphs"] == 0
    assert [type(e).__name__ for e in seen.failures] == ["BackendFailed"] * 2
    torch.testing.assert_close(dynacheck.compile(f, backend="eager")(x), x + 1)


def test_it_is_torchs_error_too(x):
    import torch._dynamo.exc as theirs

    with pytest.raises(theirs.BackendCompilerFailed, match="no code"):
        dynacheck.compile(f, backend=failing)(x)


def test_a_backend_that_gives_no_callable(x):
    with pytest.raises(dynacheck.BackendError, match="returned NoneType, which can't be called"):
        dynacheck.compile(f, backend=lambda gm, inputs: None)(x)


def test_errors_suppressed(seen, x):
    with configured(suppress_errors=True):
        torch.testing.assert_close(dynacheck.compile(f, backend=failing)(x), x + 1)
    assert [c.outcome for c in seen.calls] == ["eager"]


def broken(request):
    raise LookupError("a fault")


def test_a_fault_of_the_engine_raises_where_settings_say_so(monkeypatch, x):
    monkeypatch.setattr(miss, "translate", broken)
    with pytest.raises(dynacheck.InternalError, match="translating f: LookupError: a fault") as caught:
        dynacheck.compile(f, backend="eager")(x)
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_fault_of_the_engine_is_told_and_the_frame_runs_as_it_is(monkeypatch, seen, x):
    config.set_base(raise_internal_errors=False)
    monkeypatch.setattr(miss, "translate", broken)
    compiled = dynacheck.compile(f, backend="eager")
    for _ in range(2):
        torch.testing.assert_close(compiled(x), x + 1)
    (fault,) = seen.failures
    assert fault.error == "LookupError: a fault" and "in broken" in fault.traceback
    assert [r.why for r in seen.eager_runs] == ["fault", "skip"]


@pytest.mark.parametrize("where", ["translate", "backend"])
def test_an_interrupt_leaves_the_function_usable(monkeypatch, where, x, interrupts):
    graphs = []

    def backend(gm, example_inputs):
        if where == "backend" and not graphs:
            graphs.append(None)
            signal.raise_signal(signal.SIGINT)
        graphs.append(gm)
        return gm.forward

    compiled = dynacheck.compile(f, backend=backend)
    if where == "translate":
        original = miss.translate

        def interrupted(request):
            monkeypatch.setattr(miss, "translate", original)
            signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(miss, "translate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compiled(x)
    assert dynacheck.cache_entries(f) == () and not _C.hook_active()
    torch.testing.assert_close(compiled(x), x + 1)
    assert graphs[-1] is not None and len(dynacheck.cache_entries(f)) == 1


def test_a_first_call_in_many_threads_compiles_once(backend):
    def g(x):
        return (x * 2).relu()

    compiled = dynacheck.compile(g, backend=backend)
    barrier, wrong = threading.Barrier(6), []

    def work():
        x = torch.ones(3)
        barrier.wait()
        for _ in range(20):
            if not torch.equal(compiled(x), g(x)):
                wrong.append(x)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(backend) == 1 and not wrong


def test_a_backend_that_compiles_something_itself(x):
    def inner(x):
        return x * 3

    def backend(gm, example_inputs):
        dynacheck.compile(inner, backend="eager")(torch.ones(2))
        return gm.forward

    torch.testing.assert_close(dynacheck.compile(f, backend=backend)(x), x + 1)
    assert len(dynacheck.cache_entries(inner)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_does_not_wait_for_a_lock_of_its_parents(x):
    from dynacheck.runtime.engine import engine

    held, done = threading.Event(), threading.Event()

    def hold():
        with engine.lock:
            held.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        result = dynacheck.compile(f, backend="eager")(x)
        os._exit(0 if torch.equal(result, x + 1) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    done.set()
    thread.join()


def test_a_graph_that_raises_does_not_break_the_entry(x):
    def backend(gm, example_inputs):
        def run(*args):
            if args[0].sum() < 0:
                raise RuntimeError("at run time")
            return gm(*args)

        return run

    compiled = dynacheck.compile(f, backend=backend)
    compiled(x)
    with pytest.raises(RuntimeError, match="at run time"):
        compiled(-x)
    torch.testing.assert_close(compiled(x), x + 1)
    assert len(dynacheck.cache_entries(f)) == 1
