"""Wrong arguments, failing backends, interrupts: one clear line, and a function that stays usable."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import dynacheck
import pytest
import torch
from dynacheck import _C
from dynacheck.graph.oracle import Oracle

pytestmark = pytest.mark.usefixtures("engine")


def f(x):
    return torch.relu(x + 1)


def one_line(error):
    text = str(error.value)
    assert "\n" not in text and len(text) < 400
    return text


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: dynacheck.compile(f, backend="inducter"), dynacheck.InvalidBackend, ["'inducter'", "inductor"]),
        (lambda: dynacheck.compile(f, backend=3), TypeError, ["backend", "3"]),
        (lambda: dynacheck.compile(3), TypeError, ["callable", "int"]),
        (lambda: dynacheck.compile(torch.ones(2)), TypeError, ["callable", "Tensor"]),
        (lambda: dynacheck.compile(f, dynamic="yes"), TypeError, ["dynamic", "'yes'"]),
        (lambda: dynacheck.compile(f, fullgraph=1), TypeError, ["fullgraph", "bool", "1"]),
        (lambda: dynacheck.compile(f, isolate_recompiles="no"), TypeError, ["isolate_recompiles", "bool", "'no'"]),
        (lambda: dynacheck.compile(f, options=3), TypeError, ["options", "dict", "3"]),
        (lambda: dynacheck.compile(f, backend="nothing at all like it"), dynacheck.InvalidBackend,
         ["there are check, ", "eager", "inductor", "inspect"]),
        (lambda: dynacheck.explain(3), TypeError, ["explain", "int"]),
        (lambda: dynacheck.cache_entries(3), TypeError, ["cache_entries", "int"]),
        (lambda: dynacheck.observe(3).__enter__(), TypeError, ["observe", "path", "3"]),
        (lambda: dynacheck.assume_constant_result(3), TypeError, ["assume_constant_result", "int"]),
        (lambda: dynacheck.mark_dynamic([4], 0), TypeError, ["mark_dynamic", "tensor", "list"]),
        (lambda: dynacheck.maybe_mark_dynamic([4], 0), TypeError, ["maybe_mark_dynamic", "tensor", "list"]),
        (lambda: dynacheck.mark_static("x"), TypeError, ["mark_static", "tensor", "str"]),
        (lambda: dynacheck.mark_unbacked(None, 0), TypeError, ["mark_unbacked", "tensor", "NoneType"]),
        (lambda: dynacheck.compile(f, recompile_limit=0), ValueError, ["recompile_limit", "at least 1"]),
        (lambda: dynacheck.compile(f, recompile_limit=-1), ValueError, ["recompile_limit", "at least 1"]),
        (lambda: dynacheck.compile(f, mode="default", options={}), RuntimeError, ["mode or options"]),
        (lambda: dynacheck.compile(f, shapes_spec={}), NotImplementedError,
         ["shapes_spec", "experiment", "mark_unbacked", "mark_dynamic"]),
        (lambda: dynacheck.mark_dynamic(torch.ones(2), 0, specialize_on=[lambda s: s == 8]), NotImplementedError,
         ["mark_dynamic", "specialize_on", "one graph serves all sizes"]),
        (lambda: dynacheck.mark_unbacked(torch.ones(2), 0, specialize_on=[lambda s: s == 8]), NotImplementedError,
         ["mark_unbacked", "specialize_on", "one graph serves all sizes"]),
        (lambda: dynacheck.compile(f, dynamic_shapes={}), NotImplementedError, ["dynamic_shapes", "mark_dynamic"]),
        (lambda: dynacheck.compile(f, fullgraf=True), TypeError, ["fullgraf"]),
        (lambda: dynacheck.disable(3), TypeError, ["disable", "int"]),
        (lambda: dynacheck.allow_in_graph("f"), TypeError, ["allow_in_graph", "str"]),
        (lambda: dynacheck.set_stance("eagr"), ValueError, ["'eagr'", "force_eager"]),
        (lambda: dynacheck.logs(guard=True), ValueError, ["'guard'", "guards"]),
        (lambda: dynacheck.configured(recompile_limits=3).__enter__(), TypeError,
         ["recompile_limits", "recompile_limit"]),
        (lambda: dynacheck.configured(recompile_limit="3").__enter__(), TypeError, ["recompile_limit", "int", "'3'"]),
        (lambda: dynacheck.configured(recompile_limit=-1).__enter__(), ValueError, ["recompile_limit", "-1"]),
        (lambda: setattr(dynacheck.config, "recompile_limit", -1), ValueError, ["recompile_limit", "-1"]),
        (lambda: setattr(dynacheck.config, "recompile_limits", 1), AttributeError, ["'recompile_limit'?"]),
        (lambda: dynacheck.config.recompile_limits, AttributeError, ["'recompile_limits'", "'recompile_limit'?"]),
        (lambda: dynacheck.mark_dynamic(torch.ones(2), 1), IndexError, ["mark_dynamic", "1"]),
        (lambda: dynacheck.mark_dynamic(torch.ones(2), 0, min=5, max=2), ValueError, ["5", "2"]),
        (lambda: dynacheck.error_on_graph_break("x"), TypeError, ["error", "'x'"]),
    ],
)  # fmt: skip
def test_wrong_arguments(call, error, words):
    with pytest.raises(error) as raised:
        call()
    text = one_line(raised)
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("DYNACHECK_RECOMPILE_LIMIT", "many", ["DYNACHECK_RECOMPILE_LIMIT='many'", "whole number"]),
        ("DYNACHECK_RECOMPILE_LIMIT", "-1", ["DYNACHECK_RECOMPILE_LIMIT='-1'", "from 0 on"]),
        ("DYNACHECK_ERROR_ON_RECOMPILE", "maybe", ["DYNACHECK_ERROR_ON_RECOMPILE='maybe'", "0 or 1"]),
        ("DYNACHECK_LOGS", "recompile", ["DYNACHECK_LOGS='recompile'", "recompiles"]),
    ],
)
def test_wrong_environment(variable, value, words):
    program = "import dynacheck\ndynacheck.compile(lambda x: x, backend='eager')\nimport torch\n"
    run = subprocess.run(
        [sys.executable, "-c", program + "dynacheck.compile(lambda x: x + 1, backend='eager')(torch.ones(2))"],
        env={**os.environ, variable: value},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 1
    last = run.stderr.strip().splitlines()[-1]
    assert [word for word in words if word not in last] == []


def test_settings_are_attributes_as_torchs_are():
    config = dynacheck.config
    compiled = dynacheck.compile(lambda x, text: x + len(text), backend="eager")
    assert config.recompile_limit == config.cache_size_limit == config.get("recompile_limit") == 8
    with dynacheck.observe() as report:
        config.cache_size_limit = 2
        try:
            assert config.recompile_limit == 2
            for text in ("a", "bb", "ccc"):
                compiled(torch.ones(2), text)
        finally:
            config.recompile_limit = 8
    assert [call.outcome for call in report.calls] == ["miss", "miss", "eager"]


# -- a Python or torch that the engine isn't made for


@pytest.mark.parametrize(
    ("pretend", "words"),
    [
        (
            "import torch; torch.__version__ = '2.10.1+cpu'",
            ["torch 2.11 or later", "not 2.10.1+cpu", "pip install"],
        ),
        ("import sys; sys.modules['torch'] = None", ["torch 2.11 or later", "there is none", "pip install"]),
        ("import sys; sys.version_info = (3, 15, 0)", ["CPython 3.11 to 3.14", "not 3.15"]),
    ],
)
def test_what_is_too_old_or_missing_is_told(pretend, words):
    program = f"{pretend}\nimport dynacheck\ndynacheck.BackendError, dynacheck.config.recompile_limit\ndynacheck.compile"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: dynacheck needs")
    assert [word for word in words if word not in last] == []


# -- backends that fail


@pytest.mark.parametrize("limit", [None, 2])
def test_a_backend_that_raises(limit):
    failing = True

    def backend(gm, example_inputs):
        if failing:
            raise KeyError("no kernel")
        return gm.forward

    with dynacheck.observe() as report:
        compiled = dynacheck.compile(f, backend=backend, recompile_limit=limit)
        for _ in range(3):
            with pytest.raises(dynacheck.BackendError) as raised:
                compiled(torch.ones(2))
        assert isinstance(raised.value.__cause__, KeyError)
        assert str(raised.value).splitlines()[0] == "backend 'backend' raised KeyError: 'no kernel'"
        assert "torch.relu(" in raised.value.graph_code
        assert raised.value.graph_code in str(raised.value)
        assert dynacheck.cache_entries(f) == ()
        assert not _C.state(f.__code__).entries
        failing = False
        for _ in range(2):
            torch.testing.assert_close(compiled(torch.ones(2)), f(torch.ones(2)))
    assert [call.outcome for call in report.calls][-2:] == ["miss", "hit"]
    assert len(dynacheck.cache_entries(f)) == 1
    assert report.counts["graphs"] == 1
    assert report.counts["recompiles"] == 0


def test_a_backend_that_raises_behind_a_break(capsys):
    calls = []

    def backend(gm, example_inputs):
        calls.append(gm)
        if len(calls) == 2:
            raise KeyError("no kernel")
        return gm.forward

    def fn(x):
        x = x + 1
        print("between")
        return x * 2

    compiled = dynacheck.compile(fn, backend=backend)
    with pytest.raises(dynacheck.BackendError):
        compiled(torch.ones(2))
    assert capsys.readouterr().out == "between\n"
    torch.testing.assert_close(compiled(torch.ones(2)), torch.full((2,), 4.0))
    assert len(calls) == 3  # the first half was a hit


def test_what_a_backend_returns_must_be_callable():
    with pytest.raises(dynacheck.BackendError, match="returned NoneType, which can't be called"):
        dynacheck.compile(f, backend=lambda gm, inputs: None)(torch.ones(2))
    assert dynacheck.cache_entries(f) == ()


# -- interrupts


def interrupt_main():
    signal.raise_signal(signal.SIGINT)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread"
)
@pytest.mark.parametrize("where", ["oracle", "backend", "graph"])
def test_an_interrupt_leaves_the_function_usable(where, monkeypatch, interrupts):
    armed = True

    def interrupt():
        nonlocal armed
        if armed:
            armed = False
            interrupt_main()

    if where == "oracle":
        ask = Oracle.call

        def call(self, *args, **kwargs):
            interrupt()
            return ask(self, *args, **kwargs)

        monkeypatch.setattr(Oracle, "call", call)

    def backend(gm, example_inputs):
        if where == "backend":
            interrupt()

        def run(*args):
            if where == "graph":
                interrupt()
            return gm(*args)

        return run

    def fn(x):
        x = x * 3
        print(end="")
        return torch.relu(x) + 1

    grad = torch.is_grad_enabled()
    compiled = dynacheck.compile(fn, backend=backend)
    with dynacheck.observe() as report:
        with pytest.raises(KeyboardInterrupt):
            compiled(torch.ones(2))
        assert torch.is_grad_enabled() == grad
        for _ in range(2):
            torch.testing.assert_close(compiled(torch.ones(2)), torch.full((2,), 4.0))
    assert report.calls[-1].outcome == "hit"
    assert not report.failures
    assert len(dynacheck.cache_entries(fn)) == 2

    def other(x):  # the translation lock is free for other threads too
        return x - 1

    results = []
    thread = threading.Thread(
        target=lambda: results.append(dynacheck.compile(other, backend="eager")(torch.ones(2)))
    )
    thread.start()
    thread.join(30)
    assert len(results) == 1 and len(dynacheck.cache_entries(other)) == 1
