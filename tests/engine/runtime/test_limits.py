"""Recompile limits: one warning, existing entries keep serving, all else runs as it is."""

from __future__ import annotations

import logging
import threading

import dynacheck
import pytest
import torch
from dynacheck import configured
from dynacheck.runtime.engine import engine as the_engine


class Counter(torch.nn.Module):
    def __init__(self, n=0):
        super().__init__()
        self.n = n

    def forward(self, x):
        return x + self.n


def test_the_limit_and_its_warning(backend, seen, caplog, x):
    model = Counter()
    compiled = dynacheck.compile(model, backend=backend)
    with configured(recompile_limit=3), caplog.at_level(logging.WARNING, "dynacheck"):
        for n in range(6):
            model.n = n
            torch.testing.assert_close(compiled(x), x + n)
        model.n = 1
        compiled(x)
    assert len(backend) == 3
    assert [c.outcome for c in seen.calls] == ["miss"] * 3 + ["eager"] * 3 + ["hit"]
    assert [c.eager for c in seen.calls][3] and not seen.calls[-1].eager
    assert [r.cause.split("@")[0] for r in seen.eager_runs] == ["eager:limit"] * 3
    assert seen.eager_runs[0].changes[0].source == "self.n"
    (warning,) = [r.getMessage() for r in caplog.records if "recompile_limit" in r.getMessage()]
    assert "dynacheck hit recompile_limit (3)" in warning
    assert "Counter.forward" in warning and "what kept changing: self.n" in warning
    assert seen.counts["cache_entries"] == 3


def test_what_a_refused_frame_calls_is_not_compiled_anew(backend, x):
    def inner(x):
        return x * 2

    def f(x, n):
        dynacheck.graph_break()
        return inner(x) + n

    class Box:
        def __init__(self, n):
            self.n = n

    class Net(torch.nn.Module):
        def forward(self, x):
            torch._dynamo.graph_break()
            return inner(x) + self.n

    net = Net()
    compiled = dynacheck.compile(net, backend=backend)
    with configured(recompile_limit=1):
        for net.n in (1, 2, 3):
            torch.testing.assert_close(compiled(x), x * 2 + net.n)
    assert len(backend) == 1  # `inner` is inlined in the first entry and left alone afterwards
    assert dynacheck.cache_entries(inner) == ()


def test_a_limit_of_its_own(backend, x):
    model = Counter()
    compiled = dynacheck.compile(model, backend=backend, recompile_limit=2)
    for model.n in range(5):
        compiled(x)
    assert len(backend) == 2


def test_the_limit_is_shared_by_compiles_of_one_function(backend, x):
    def f(x, flag):
        return x + 1 if flag else x - 1

    with configured(recompile_limit=2):
        for number in range(4):
            dynacheck.compile(f, backend="eager" if number == 0 else backend, dynamic=bool(number % 2))(
                x, True
            )
    assert len(dynacheck.cache_entries(f)) == 2


def test_isolated_compiles_have_limits_of_their_own(backend, x):
    def f(x, flag):
        return x + 1 if flag else x - 1

    compiles = [dynacheck.compile(f, backend=backend, isolate_recompiles=True) for _ in range(3)]
    with configured(recompile_limit=1):
        for compiled in compiles:
            compiled(x, True)
            compiled(x, False)
    assert len(backend) == 3
    with configured(accumulated_recompile_limit=3):
        dynacheck.compile(f, backend=backend, isolate_recompiles=True)(x, True)
    assert len(backend) == 3


def test_the_old_name_of_the_setting(backend, x):
    model = Counter()
    compiled = dynacheck.compile(model, backend=backend)
    with configured(cache_size_limit=1):
        for model.n in range(3):
            compiled(x)
    assert len(backend) == 1


def test_torchs_setting_holds(backend, x):
    import torch._dynamo.config as theirs

    model = Counter()
    compiled = dynacheck.compile(model, backend=backend)
    with theirs.patch(recompile_limit=2):
        for model.n in range(4):
            compiled(x)
    assert len(backend) == 2


@pytest.mark.parametrize("how", ["setting", "fullgraph"])
def test_reaching_the_limit_may_be_an_error(how, x):
    model = Counter()
    compiled = dynacheck.compile(model, backend="eager", fullgraph=how == "fullgraph")
    with configured(recompile_limit=1, fail_on_recompile_limit_hit=how == "setting"):
        compiled(x)
        model.n = 5
        with pytest.raises(dynacheck.FailOnRecompileLimitHit, match=r"hit recompile_limit \(1\)"):
            compiled(x)
        model.n = 0
        compiled(x)


def test_a_recompile_may_be_an_error(x):
    model = Counter()
    compiled = dynacheck.compile(model, backend="eager")
    with configured(error_on_recompile=True):
        compiled(x)
        compiled(x)
        model.n = 7
        with pytest.raises(dynacheck.RecompileError) as caught:
            compiled(x)
    text = str(caught.value)
    assert "Counter.forward" in text and "error_on_recompile" in text
    assert "self" in text and "== 0  # now 7" in text
    torch.testing.assert_close(compiled(x), x + 7)


def test_frames_that_never_have_operations_stop_being_looked_at(seen, x):
    def helper(n):
        return [n] * 2 if torch is None else n

    def f(x, items):
        total = 0
        for i in items:
            total += helper(i)
        return total

    compiled = dynacheck.compile(f, backend="eager")
    for i in range(20):
        assert compiled(x, [str(i)] and [i]) == i
    assert seen.counts["cache_entries"] == 0 and seen.counts["graphs"] == 0
    assert not seen.eager_runs


def test_a_limit_reached_while_waiting_for_the_lock_holds(monkeypatch, seen, x):
    waits = threading.Event()

    class Lock:
        """Tells when the second thread is about to wait."""

        def __init__(self, lock):
            self.lock = lock

        def __enter__(self):
            if threading.current_thread() is second:
                waits.set()
            return self.lock.__enter__()

        def __exit__(self, *exc):
            return self.lock.__exit__(*exc)

    def f(x, text):
        return x + len(text)

    def backend(gm, example_inputs):
        if threading.current_thread() is not second and not second.ident:
            second.start()
            assert waits.wait(60)
        return gm.forward

    compiled = dynacheck.compile(f, backend=backend, recompile_limit=1)
    results = []
    second = threading.Thread(target=lambda: results.append(compiled(x, "two")))
    monkeypatch.setattr(the_engine, "lock", Lock(the_engine.lock))
    torch.testing.assert_close(compiled(x, "a"), x + 1)
    second.join(60)
    torch.testing.assert_close(results[0], x + 3)
    assert seen.counts["cache_entries"] == 1
    assert sorted(call.outcome for call in seen.calls) == ["eager", "miss"]


def test_a_frame_without_operations_is_looked_at_as_often_as_the_limit_says(seen, x):
    def f(x, text):
        return len(text)

    compiled = dynacheck.compile(f, backend="eager", recompile_limit=3)
    assert [compiled(x, "a" * n) for n in range(6)] == list(range(6))
    assert [s.reason for s in seen.skipped] == ["DC304"] * 3
