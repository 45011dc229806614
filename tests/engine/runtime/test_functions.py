"""What `compile` makes of functions, methods and other callables."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import weakref

import dynacheck
import pytest
import torch


@dynacheck.compile(backend="eager")
def decorated(x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
    """Scales."""
    return x * scale


def test_it_is_a_plain_function(x):
    def f(x, /, y, *rest, k=3, **more):
        """Adds."""
        return x + y + k

    f.note = "kept"
    compiled = dynacheck.compile(f, backend="eager")
    assert inspect.isfunction(compiled)
    assert inspect.signature(compiled) == inspect.signature(f)
    assert (compiled.__name__, compiled.__qualname__, compiled.__doc__) == (
        f.__name__,
        f.__qualname__,
        "Adds.",
    )
    assert compiled.__module__ == f.__module__ and compiled.__wrapped__ is f and compiled.note == "kept"
    compiled.own = 1
    assert not hasattr(f, "own")
    assert weakref.ref(compiled)() is compiled
    assert copy.deepcopy(compiled) is compiled
    torch.testing.assert_close(compiled(x, 1.0, k=2), f(x, 1.0, k=2))


def test_a_decorated_function_pickles_by_name(x):
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    torch.testing.assert_close(decorated(x), x * 2)


def test_methods(backend, x):
    class Box:
        def __init__(self, by):
            self.by = by

        @dynacheck.compile(backend=backend)
        def scaled(self, x):
            return x * self.by

        @classmethod
        def make(cls, x):
            return x + 1

    box = Box(3)
    torch.testing.assert_close(box.scaled(x), x * 3)
    bound = dynacheck.compile(Box(4).scaled, backend=backend)
    torch.testing.assert_close(bound(x), x * 4)
    torch.testing.assert_close(dynacheck.compile(Box.make, backend=backend)(x), x + 1)
    assert len(backend) == 3


def test_callables_without_a_frame_of_their_own(backend, x):
    class Adder:
        def __init__(self, n):
            self.n = n

        def __call__(self, x):
            return x + self.n

    torch.testing.assert_close(dynacheck.compile(torch.relu, backend=backend)(-x), torch.zeros(3))
    torch.testing.assert_close(dynacheck.compile(Adder(2), backend=backend)(x), x + 2)
    partial = functools.partial(lambda a, b: a * b, torch.full((3,), 3.0))
    torch.testing.assert_close(dynacheck.compile(partial, backend=backend)(x), x * 3)
    assert len(backend) == 3


def test_compiled_twice_is_compiled_as_what_it_was(backend, x):
    def f(x):
        return x + 1

    once = dynacheck.compile(f, backend="inspect")
    twice = dynacheck.compile(once, backend=backend)
    assert twice.__wrapped__ is f
    torch.testing.assert_close(twice(x), x + 1)
    assert len(backend) == 1


def test_what_torch_compiled_is_compiled_as_what_it_was(backend, x):
    def f(x):
        return x + 1

    theirs = torch.compile(f, backend="eager")
    assert dynacheck.compile(theirs, backend=backend)(x).tolist() == [2.0, 2.0, 2.0]
    assert len(backend) == 1


def test_generator_functions_stay_as_they_are(backend, seen, x):
    def f(x):
        yield x + 1
        yield x + 2

    assert [t[0].item() for t in dynacheck.compile(f, backend=backend)(x)] == [2.0, 3.0]
    assert len(backend) == 0 and [c.outcome for c in seen.calls] == ["eager"]


def test_disable_keyword():
    def f(x):
        return x

    assert dynacheck.compile(f, disable=True) is f
    assert dynacheck.compile(disable=True)(f) is f


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"full_graph": True}, TypeError, "full_graph"),
        ({"fullgraph": 1}, TypeError, "fullgraph must be bool"),
        ({"dynamic": "yes"}, TypeError, "dynamic must be bool or NoneType"),
        ({"backend": 3}, TypeError, "backend must be a name or a callable, not 3"),
        ({"backend": "egaer"}, dynacheck.InvalidBackend, "did you mean 'eager'"),
        ({"mode": 1}, TypeError, "mode must be str"),
        ({"mode": "default", "options": {}}, RuntimeError, "mode or options"),
        ({"recompile_limit": 0}, ValueError, "at least 1"),
        ({"recompile_limit": "8"}, TypeError, "recompile_limit must be int"),
        ({"shapes_spec": object()}, NotImplementedError, "mark_dynamic"),
    ],
)
def test_bad_arguments(keywords, error, words):
    with pytest.raises(error, match=words):
        dynacheck.compile(lambda x: x, **{"backend": "eager", **keywords})


@pytest.mark.parametrize("what", [3, "f", [1]])
def test_what_cannot_be_called(what):
    with pytest.raises(TypeError, match="takes a callable or an nn.Module"):
        dynacheck.compile(what, backend="eager")


def test_exceptions_are_plain_pythons(x):
    def f(x, n):
        y = x + 1
        if n > 2:
            raise KeyError("n")
        return y

    compiled = dynacheck.compile(f, backend="eager")
    compiled(x, 1)
    for _ in range(2):
        with pytest.raises(KeyError, match="n") as caught:
            compiled(x, 3)
        assert caught.traceback[-1].lineno + 1 == f.__code__.co_firstlineno + 3
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'n'"):
        compiled(x)


def test_compiled_callables_are_collected(backend):
    class Model:
        def forward(self, x):
            return x + 1

    def make():
        model = Model()
        model.compiled = dynacheck.compile(model.forward, backend=lambda gm, _: lambda *a, m=model: gm(*a))
        model.compiled(torch.ones(2))
        return weakref.ref(model)

    gone = [make() for _ in range(5)]
    gc.collect()
    assert [ref() for ref in gone] == [None] * 5
