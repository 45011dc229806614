"""Stances: by function, context manager, decorator, and through torch."""

from __future__ import annotations

import sys
import threading

import dynacheck
import pytest
import torch
from dynacheck import set_stance


def f(x, n=1):
    return x + n


@pytest.fixture
def compiled(backend):
    return dynacheck.compile(f, backend=backend)


def test_force_eager(compiled, backend, seen, x):
    compiled(x)
    with set_stance("force_eager"):
        torch.testing.assert_close(compiled(x, 2), x + 2)
        compiled(x)
    compiled(x)
    assert len(backend) == 1
    assert [c.outcome for c in seen.calls] == ["miss", "eager", "eager", "hit"]
    assert [r.cause.split("@")[0] for r in seen.eager_runs] == ["eager:stance"] * 2
    assert [r.message for r in seen.eager_runs] == ["the stance is force_eager"] * 2


def test_force_eager_runs_modules_and_c_functions(backend, x):
    net = torch.nn.Linear(3, 2)
    with set_stance("force_eager"):
        dynacheck.compile(net, backend=backend)(x)
        dynacheck.compile(torch.relu, backend=backend)(x)
    assert len(backend) == 0


@pytest.mark.parametrize("watched", [False, True])
def test_eager_on_recompile(compiled, backend, watched, x):
    compiled(x)
    observers = [dynacheck.observe()] if watched else []
    reports = [o.__enter__() for o in observers]
    with set_stance("eager_on_recompile"):
        torch.testing.assert_close(compiled(x, 2), x + 2)
        torch.testing.assert_close(compiled(x), x + 1)
        torch.testing.assert_close(dynacheck.compile(lambda x: x - 1, backend=backend)(x), x - 1)
    for observer in observers:
        observer.__exit__(None, None, None)
    for report in reports:
        assert [c.outcome for c in report.calls] == ["eager", "hit", "eager"]
        assert [r.why for r in report.eager_runs] == ["stance", "stance"]
        assert [r.message for r in report.eager_runs] == ["the stance is eager_on_recompile"] * 2
        assert [[(c.source, c.then, c.now) for c in r.changes] for r in report.eager_runs] == [
            [("n", 1, 2)],
            [],
        ]
    assert len(backend) == 1


def test_fail_on_recompile(compiled, backend, x):
    compiled(x)
    with set_stance("fail_on_recompile"):
        compiled(x)
        with pytest.raises(dynacheck.RecompileError, match="would be compiled again") as caught:
            compiled(x, 2)
        with pytest.raises(dynacheck.RecompileError, match="would be compiled, but the stance"):
            dynacheck.compile(lambda x: x - 1, backend=backend)(x)
    assert "L['n'] == 1  # now 2" in str(caught.value)
    assert isinstance(caught.value, RuntimeError)
    torch.testing.assert_close(compiled(x, 2), x + 2)


def test_the_error_tells_everything_that_differs():
    def several(x, n, s):
        return x * n + len(s)

    compiled = dynacheck.compile(several, backend="eager")
    compiled(torch.ones(3), True, "a")
    compiled(torch.ones(4, 1), 2, "b")
    with set_stance("fail_on_recompile"), pytest.raises(dynacheck.RecompileError) as caught:
        compiled(torch.ones(4, 5, requires_grad=True), 3, "cd")
    line = several.__code__.co_firstlineno + 1
    place = f"  # return x * n + len(s)  # {__file__}:{line} in {several.__qualname__}"
    said = str(caught.value).splitlines()[1:]
    assert said and all(text.endswith(place) for text in said)
    nearest, further = (
        [text.strip().removesuffix(place) for text in said if f"entry {n}: " in text] for n in (1, 0)
    )
    assert len(nearest) == len(further) == 3
    assert nearest[0].endswith("# now True (requires_grad), 5 (size of dim 1), 5 (stride of dim 0)"), nearest
    assert nearest[1:] == ["- entry 1: L['n'] == 2  # now 3", "- entry 1: L['s'] == 'b'  # now 'cd'"]
    assert further[1:] == ["- entry 0: L['n'] is True  # now 3", "- entry 0: L['s'] == 'a'  # now 'cd'"]


def test_frames_without_operations_do_not_fail(backend, seen, x):
    def nothing(x, n):
        return [x, n]

    compiled = dynacheck.compile(nothing, backend=backend)
    compiled(x, 1)
    with set_stance("fail_on_recompile"):
        assert compiled(x, 2) == [x, 2]
        assert compiled(x, "a") == [x, "a"]


def test_eager_then_compile(backend, seen, x):
    def g(x, n):
        return x * n

    compiled = dynacheck.compile(g, backend=backend)
    with set_stance("eager_then_compile"):
        for size in (4, 5, 6):
            torch.testing.assert_close(compiled(torch.ones(size), 2), torch.full((size,), 2.0))
    assert [c.outcome for c in seen.calls] == ["eager", "miss", "hit"]
    assert len(backend) == 1


def test_as_a_function_it_holds_in_every_thread(compiled, backend, x):
    set_stance("force_eager")
    compiled(x)
    thread = threading.Thread(target=compiled, args=(x,))
    thread.start()
    thread.join()
    assert len(backend) == 0
    set_stance("default")
    compiled(x)
    assert len(backend) == 1


def test_as_a_context_manager_it_holds_in_this_context_only(compiled, backend, x):
    with set_stance("force_eager"):
        thread = threading.Thread(target=compiled, args=(x,))
        thread.start()
        thread.join()
        assert len(backend) == 1
        compiled(x, 3)
        assert len(backend) == 1


def test_nested_and_decorated(compiled, backend, x):
    @set_stance("force_eager")
    def eager(n):
        return compiled(x, n)

    eager(5)
    assert len(backend) == 0
    with set_stance("fail_on_recompile"):
        eager(6)
        with set_stance("default"):
            compiled(x)
        with pytest.raises(dynacheck.RecompileError):
            compiled(x, 7)
    assert len(backend) == 1


def test_force_backend(compiled, backend, x):
    graphs = []

    def other(gm, example_inputs):
        graphs.append(gm)
        return gm.forward

    with set_stance("default", force_backend=other):
        compiled(x)
        compiled(x)
    assert (len(graphs), len(backend)) == (1, 0)
    compiled(x)
    assert (len(graphs), len(backend)) == (1, 1)


def test_a_stance_set_through_torch_holds(compiled, backend, x):
    with torch.compiler.set_stance("force_eager"):
        compiled(x)
        with set_stance("fail_on_recompile"), pytest.raises(dynacheck.RecompileError):
            compiled(x)
    assert len(backend) == 0
    torch.compiler.set_stance("force_eager")
    try:
        compiled(x)
        assert len(backend) == 0
    finally:
        torch.compiler.set_stance("default")
    compiled(x)
    assert len(backend) == 1


def test_bad_stances():
    with pytest.raises(ValueError, match="unknown stance 'eager'; there are default, force_eager"):
        set_stance("eager")
    with pytest.raises(ValueError, match="force_backend"):
        set_stance("force_eager", force_backend="eager")


def frames_of_a_call(compiled, x):
    """What runs in Python at a call."""
    ran = []
    sys.setprofile(
        lambda frame, event, arg: ran.append(frame.f_code.co_qualname) if event == "call" else None
    )
    try:
        compiled(x)
    finally:
        sys.setprofile(None)
    return ran


def test_a_stance_of_torchs_that_says_the_same_costs_no_call_more(compiled, x):
    """torch makes an object per `set_stance`: one that says `default` is as good as the first."""
    torch.compile(f, backend="eager")(x)
    compiled(x)
    for change in (
        lambda: None,
        lambda: torch.compiler.set_stance("default"),
        torch.compiler.set_stance("force_eager")(lambda: compiled(x)),
    ):
        change()
        compiled(x)  # the first looks
        assert "Compile.__call__" not in frames_of_a_call(compiled, x)
    with torch.compiler.set_stance("default", force_backend="eager"):
        compiled(x)
        assert "Compile.__call__" in frames_of_a_call(compiled, x)
