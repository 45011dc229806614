"""Frames that are left alone: disabled functions, ambient modes, given-up code, code without tensors."""

from __future__ import annotations

import importlib
from collections import OrderedDict, namedtuple
from types import SimpleNamespace

import dynacheck
import numpy as np
import pytest
import torch
from dynacheck.runtime.relevance import concerns_tensors
from torch.utils._python_dispatch import TorchDispatchMode


def helper(x):
    return x * 2


def test_disable(backend, x):
    @dynacheck.disable(reason="it writes a file")
    def disabled(x):
        """Doubles."""
        return helper(x)

    def f(x):
        return disabled(x + 1) + 1

    compiled = dynacheck.compile(f, backend=backend)
    with dynacheck.observe() as report:
        torch.testing.assert_close(compiled(x), (x + 1) * 2 + 1)
    assert len(backend) == 2
    (broke,) = report.graph_breaks
    assert broke.reason == "DC105" and "it writes a file" in broke.message
    assert dynacheck.cache_entries(helper) == ()
    assert disabled.__doc__ == "Doubles."
    with pytest.raises(TypeError, match="disable takes a callable"):
        dynacheck.disable(3)


def test_disable_only_the_frame(backend, x):
    def shallow(x):
        return helper(x)

    assert dynacheck.disable(shallow, recursive=False) is shallow
    compiled = dynacheck.compile(lambda x: shallow(x + 1), backend=backend)
    torch.testing.assert_close(compiled(x), (x + 1) * 2)
    assert len(dynacheck.cache_entries(helper)) == 1
    assert dynacheck.cache_entries(shallow) == ()


def test_a_disabled_module(backend, x):
    net = dynacheck.disable(torch.nn.Sequential(torch.nn.Linear(3, 3)))
    compiled = dynacheck.compile(lambda x: net(x) + 1, backend=backend)
    compiled(x)
    assert dynacheck.cache_entries(torch.nn.Linear) == ()


@pytest.mark.parametrize("recursive", [True, False])
def test_what_torch_disabled(backend, recursive, x):
    disabled = torch.compiler.disable(lambda x: helper(x), recursive=recursive)
    compiled = dynacheck.compile(lambda x: disabled(x + 1) + 1, backend=backend)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), (x + 1) * 2 + 1)
    assert len(backend) == (2 if recursive else 3)  # before, after; without recursion the function itself too


def test_a_disabled_function_stays_disabled_when_compiled(backend, x):
    disabled = dynacheck.disable(helper)
    torch.testing.assert_close(dynacheck.compile(disabled, backend=backend)(x), x * 2)
    assert len(backend) == 0


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("first", ["mode", "vmap"])
def test_a_first_call_under_a_mode_does_not_make_it_eager_for_good(backend, seen, first, x):
    compiled = dynacheck.compile(lambda x: x * 2, backend=backend)
    if first == "mode":
        with Mode():
            compiled(x)
    else:
        torch.vmap(compiled)(x)
    assert len(backend) == 0
    compiled(x)
    assert len(backend) == 1
    assert [c.outcome for c in seen.calls] == ["eager", "miss"]
    assert seen.skipped[0].reason == "DC306"


def test_modules_that_the_user_lists(backend, seen, tmp_path, monkeypatch, x):
    (tmp_path / "listed_pack").mkdir()
    for name in ("listed_pack/__init__", "listed_pack/inner", "listed_alone", "listed_not"):
        (tmp_path / f"{name}.py").write_text("def double(x):\n    y = x * 2\n    return y + 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    names = ("listed_pack", "listed_pack.inner", "listed_alone", "listed_not")
    one, inner, alone, other = (importlib.import_module(name) for name in names)

    def f(x):
        y = x + 1
        return alone.double(inner.double(other.double(y))) + one.double(y)

    compiled = dynacheck.compile(f, backend=backend)
    with dynacheck.configured(skip_modules="listed_pack, listed_alone"):
        for _ in range(2):
            torch.testing.assert_close(compiled(x), f(x))
    assert len(seen.graph_breaks) == 1 and {b.reason for b in seen.graph_breaks} == {"DC106"}
    assert "the module listed_pack, which skip_modules lists" in seen.graph_breaks[0].message
    assert len(backend) == 2  # up to the first call, and what goes on behind the last
    for module in (one, inner, alone):
        assert dynacheck.cache_entries(module.double) == ()
    assert sorted(s.file.rpartition("/")[2] for s in seen.left_alone) == [
        "__init__.py",
        "inner.py",
        "listed_alone.py",
    ]
    assert {s.reason for s in seen.left_alone} == {"DC303"}
    torch.testing.assert_close(compiled(x), f(x))
    assert len(backend) == 3 and len(backend.graphs[-1].graph.nodes) > 10  # not listed any more: one graph
    with (
        dynacheck.configured(skip_modules="listed_not"),
        pytest.raises(dynacheck.Unsupported, match="listed_not"),
    ):
        dynacheck.compile(f, backend=backend, fullgraph=True)(x)


def test_whether_a_frame_concerns_tensors():
    """As torch decides it: torch's own function is asked about the same frames."""
    from torch._dynamo.convert_frame import has_tensor_in_frame

    t = torch.ones(1)
    pair = namedtuple("pair", "a b")

    class Box:
        def __init__(self, value):
            self.value = value

    def plain(a, b=3):
        return a

    def closes_over(a):
        return t

    def names_torch(a):
        return torch.ones(a)

    def asked(function, values):
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        frame = SimpleNamespace(
            f_code=function.__code__,
            f_globals=function.__globals__,
            f_locals=dict(enumerate([*values, *cells])),
        )
        return has_tensor_in_frame(frame)

    loop = []
    loop.append(loop)
    tensors = (
        t,
        [t],
        {"a": (1, t)},
        pair(1, t),
        torch.nn.Linear(1, 1),
        torch.nn.Linear,
        np.ones(1),
        np.float32(1),
    )
    others = (
        1,
        "a",
        [1, 2],
        {"a": 1},
        {t: 1},
        {1, 2},
        Box(3),
        Box(t),
        loop,
        None,
        int,
        torch.Tensor,
        OrderedDict(a=t),
    )
    for values, wanted in ((tensors, True), (others, False)):
        for value in values:
            assert concerns_tensors(plain, (value, 3)) is asked(plain, (value, 3)) is wanted, value
    for function in (closes_over, names_torch):
        assert concerns_tensors(function, (1,)) and asked(function, (1,))


def test_a_helper_without_tensors_breaks_nothing(seen, x):
    def note(text):
        print(text, end="")

    def f(x):
        for _ in range(2):
            x = x + 1
            note("")
        return x

    dynacheck.compile(f, backend="eager")(x)
    assert len(seen.graph_breaks) == 1


def test_fullgraph_after_a_break_was_compiled(x):
    def f(x):
        y = x + 1
        print(end="")
        return y

    dynacheck.compile(f, backend="eager")(x)
    with pytest.raises(dynacheck.Unsupported) as caught:
        dynacheck.compile(f, backend="eager", fullgraph=True)(x)
    assert "print" in str(caught.value) and f"line {f.__code__.co_firstlineno + 2}" in str(caught.value)


def test_error_on_graph_break(x):
    def f(x):
        print(end="")
        return x + 1

    compiled = dynacheck.compile(f, backend="eager")
    with dynacheck.error_on_graph_break(True), pytest.raises(dynacheck.Unsupported):
        compiled(x)
    strict = dynacheck.compile(f, backend="eager", fullgraph=True)
    with dynacheck.error_on_graph_break(False):
        strict(x)
    compiled(x)
