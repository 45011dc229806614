"""What happens when the last reference to a value goes: `__del__`, the `finally` of a suspended generator, weak
references that die. Truth is plain Python, with the order of all that is logged."""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import dynacheck
import pytest
import torch

LOG: list[Any] = []


def log(*what: Any) -> None:
    LOG.append(what[0] if len(what) == 1 else what)


class Handle:
    def __init__(self, name: Any) -> None:
        self.name = name

    def __del__(self) -> None:
        log("closed", self.name)


class Derived(Handle):
    pass


class Linked(Handle):
    def __init__(self, name: Any, other: Any = None) -> None:
        super().__init__(name)
        self.other = other


class Saved(Handle):
    kept: list[Any] = []

    def __del__(self) -> None:
        log("kept")
        Saved.kept.append(self)


class Plain:
    pass


def numbers(*values: Any):
    try:
        yield from values
    finally:
        log("numbers end")


def in_with():
    with scope("of a generator"):
        yield 1
        yield 2


def without_block():
    yield 1
    yield 2


@contextlib.contextmanager
def scope(name: Any):
    log("enter", name)
    try:
        yield name
    finally:
        log("exit", name)


PROGRAMS: dict[str, Callable[[torch.Tensor], Any]] = {}


def program(fn: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
    PROGRAMS[fn.__name__] = fn
    return fn


@program
def dropped_by_del(x):
    h = Handle(1)
    y = x + 1
    del h
    log("after")
    return y * 2


@program
def dropped_at_the_end(x):
    first, second = Handle("a"), Derived("b")
    log("before")
    return x + len(first.name + second.name)


@program
def rebound(x):
    for i in range(3):
        h = Handle(i)
        x = x + h.name
    h = None
    log("after")
    return x


@program
def never_bound(x):
    Handle(1)
    log("after")
    return x + Handle(2).name


@program
def held_by_another(x):
    a = Linked("inner")
    b = Linked("outer", a)
    del a
    log("still held")
    del b
    log("gone")
    return x + 1


@program
def held_by_containers(x):
    found = [Handle(1), {"k": (Handle(2),)}]
    found.pop(0)
    log("one")
    found.clear()
    log("both")
    return x + len(found)


@program
def held_by_a_closure(x):
    h = Handle(3)

    def add(y):
        return y + h.name  # noqa: F821

    y = add(x)
    del h
    log("after")
    return y


@program
def held_by_a_method(x):
    method = Plain.__new__
    bound = Named(4).plus
    y = bound(x)
    bound = method
    log("after")
    return y


class Named(Handle):
    def plus(self, y):
        return y + self.name


@program
def in_a_callee(x):
    def inner(y):
        h = Handle("callee")
        log("in")
        return y + len(h.name)

    y = inner(x)
    log("out")
    return y


@program
def returned_by_a_callee(x):
    def made():
        return Handle(5)

    h = made()
    y = x + h.name
    h = None
    log("after")
    return y


@program
def given_to_a_callee(x):
    def read(h, y):
        log("reads")
        return y + h.name

    y = read(Handle(6), x)
    log("after")
    return y


@program
def held_while_a_builtin_runs(x):
    def double(h):
        done = h.name * 2
        log("doubled")
        return done

    values = list(map(double, (Handle(1),)))
    log("after")
    return x + sum(values)


@program
def kept_by_its_own_finalizer(x):
    h = Saved(7)
    del h
    log(len(Saved.kept), Saved.kept[-1].name)
    Saved.kept.clear()
    log("cleared")
    return x + 1


@program
def returned(x):
    return x + 1, Handle("r")


@program
def stored_in_a_global(x):
    LOG.append(Handle("g"))
    y = x + 1
    LOG.pop()
    log("after")
    return y


@program
def copied(x):
    h = Handle("c")
    twin = copy.copy(h)
    del h
    log("one")
    del twin
    log("both")
    return x + 1


@program
def unused_over_a_break(x):
    h = Handle("h")
    y = x + 1
    torch._dynamo.graph_break()
    log("after")
    return y * 2


@program
def used_over_a_break(x):
    h = Handle(8)
    torch._dynamo.graph_break()
    return x + h.name


@program
def of_a_caught_exception(x):
    def fails():
        h = Handle("f")
        raise ValueError(h.name)

    try:
        fails()
    except ValueError:
        log("handler")
    log("after")
    return x + 1


@program
def loop_left(x):
    for i in numbers(1, 2, 3):
        x = x + i
        break
    log("after")
    return x


@program
def loop_left_by_return(x):
    for i in numbers(1, 2, 3):
        if i == 2:
            log("returns")
            return x + i
    return x


@program
def loop_left_by_an_exception(x):
    try:
        for i in numbers(1, 2):
            raise KeyError(i)
    except KeyError:
        log("handler")
    return x + 1


@program
def loop_of_a_callee_left_by_an_exception(x):
    def fails():
        for i in numbers(1, 2):
            raise KeyError(i)

    try:
        fails()
    except KeyError:
        log("handler")
    return x + 1


@program
def generator_rebound(x):
    it = numbers(1, 2)
    x = x + next(it)
    it = None
    log("after")
    return x


@program
def generator_never_started(x):
    it = numbers(1, 2)
    del it
    log("after")
    return x + 1


@program
def generator_finished(x):
    it = numbers(1, 2)
    total = sum(it)
    log("summed")
    return x + total


@program
def generator_in_with(x):
    it = in_with()
    x = x + next(it)
    log("next")
    del it
    log("after")
    return x


@program
def generator_without_block(x):
    it = without_block()
    x = x + next(it)
    del it
    log("after")
    return x


@program
def generator_in_zip(x):
    pairs = zip([1], numbers(1, 2), strict=False)
    for a, b in pairs:
        x = x + a + b
    pairs = None
    log("after")
    return x


@program
def generator_asked_for_one(x):
    found = next(n for n in numbers(1, 2, 3) if n > 1)
    log("found", found)
    return x + found


@program
def any_of_a_generator(x):
    found = any(n > 1 for n in numbers(1, 2, 3))
    log("found", found)
    return x + found


@program
def delegating(x):
    def outer():
        try:
            yield from numbers(1, 2)
        finally:
            log("outer end")

    it = outer()
    x = x + next(it)
    it = None
    log("after")
    return x


@program
def generator_held_by_a_closure(x):
    it = numbers(1, 2)

    def step():
        return next(it)

    x = x + step()
    log("stepped")
    return x + step()


@program
def unpacked(x):
    a, *_ = numbers(1, 2)
    log("after")
    return x + a


@program
def with_left_by_return(x):
    with scope("a") as name:
        for _ in numbers(1, 2):
            return x + len(name)
    return x


@program
def exit_stack(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(scope("s"))
        it = numbers(1, 2)
        x = x + next(it)
    log("after")
    return x


@program
def reduced(x):
    total = functools.reduce(lambda a, b: a + b, numbers(1, 2, 3))
    log("after")
    return x + total


@program
def list_let_go(x):
    held = [Handle(1), Handle(2), (Handle(3), Handle(4))]
    log("made")
    held = None
    log("after")
    return x + 1


@program
def dict_let_go(x):
    held = {"a": Handle(1), "b": [Handle(2), Handle(3)], "c": Handle(4)}
    log("made")
    held = None
    log("after")
    return x + 1


@program
def attributes_let_go(x):
    held = Plain()
    held.first, held.second = Handle(1), [Handle(2), Handle(3)]
    log("made")
    del held
    log("after")
    return x + 1


@program
def list_of_linked(x):
    held = [Linked(1, Handle(2)), Linked(3, [Handle(4), Handle(5)])]
    log("made")
    held = 0
    log("after")
    return x + held


@program
def returned_from(x):
    def inner(y):
        first = [Handle(1), Handle(2)]
        second = Handle(3)
        log("inner", len(first), second.name)
        return y + 1

    x = inner(x)
    log("after")
    return x


@program
def weak_reference(x):
    p = Plain()
    ref = weakref.ref(p)
    log("alive", ref() is p)
    del p
    log("dead", ref() is None)
    return x + 1


@program
def weak_reference_of_a_returned_object(x):
    p = Plain()
    ref = weakref.ref(p)
    return x + 1, p, ref() is p


@program
def weak_reference_returned_alone(x):
    ref = weakref.ref(Plain())
    return x + 1, ref() is None, ref


@program
def weak_parent(x):
    parent, child = Plain(), Plain()
    parent.child = child
    child.parent = weakref.ref(parent)
    log(child.parent() is parent)
    parent = None
    log(child.parent() is None)
    return x + 1


@program
def weak_reference_over_a_break(x):
    p = Plain()
    ref = weakref.ref(p)
    torch._dynamo.graph_break()
    return x + (ref() is not None)


@program
def weakly_referenced_in_a_cycle(x):
    p = Plain()
    p.me = p
    ref = weakref.ref(p)
    del p
    log("alive", ref() is not None)
    return x + 1


def shown(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(shown(v) for v in value)
    if isinstance(value, weakref.ref):
        return "dead" if value() is None else "alive"
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return value if isinstance(value, (int, str)) else type(value).__name__


def ran(fn: Callable[[torch.Tensor], Any]) -> list[Any]:
    gc.collect()
    LOG.clear()
    for _ in range(2):
        result = fn(torch.ones(2))
        log("returned", shown(result))
        result = None
        log("dropped")
    return list(LOG)


SPLIT = {name for name in PROGRAMS if name.endswith("over_a_break")}


@pytest.mark.parametrize("name", PROGRAMS)
def test_finalizers(name: str) -> None:
    fn = PROGRAMS[name]
    expected = ran(fn)
    gc.disable()
    try:
        with dynacheck.observe() as report:
            found = ran(dynacheck.compile(fn, backend="eager", fullgraph=name not in SPLIT))
    finally:
        gc.enable()
    assert found == expected
    assert report.graphs and not report.skipped


class Bad:
    def __del__(self) -> None:
        raise ValueError("at the end")


def raises_at_the_end(x):
    bad = Bad()
    y = x + 1
    del bad
    return y * 2


def ignores_its_end(x):
    def stubborn():
        try:
            yield 1
        finally:
            yield 2

    it = stubborn()
    x = x + next(it)
    it = None
    return x


@pytest.mark.parametrize("fn", [raises_at_the_end, ignores_its_end])
def test_what_python_only_prints_leaves_the_frame_to_it(fn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(str(unraisable.exc_value)))
    with dynacheck.observe() as report:
        result = dynacheck.compile(fn, backend="eager")(torch.ones(2))
    once = list(told)
    assert torch.equal(result, fn(torch.ones(2)))
    assert len(once) == 1 and told == once * 2
    assert [found.reason for found in report.graph_breaks] == ["DC131"] and len(report.skipped) == 1


def plain(x, r):
    return x + r.n


def broken(x, r):
    y = x + r.n
    torch._dynamo.graph_break()
    return y * r.n


def broken_in_a_loop(x, r):
    for _ in range(2):
        x = x + r.n
        torch._dynamo.graph_break()
    return x


def raising(x, r):
    y = x + r.n
    raise ValueError(y)


def restarted(x, r):
    if x.shape[0] > r.n:
        return x * 2
    return x + r.n


def without_operations(x, r):
    return r.n


VALUES_GO = [plain, broken, broken_in_a_loop, raising, restarted, without_operations]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("fn", VALUES_GO)
def test_a_first_call_keeps_nothing_of_the_callers(fn: Any, dynamic: bool | None) -> None:
    """Arguments go with the call, without a run of the garbage collector."""
    compiled = dynacheck.compile(fn, backend="eager", dynamic=dynamic)

    def call() -> tuple[Any, Any]:
        r, x = Plain(), torch.ones(3)
        r.n = 2
        with contextlib.suppress(ValueError):
            compiled(x, r)
        return weakref.ref(r), weakref.ref(x)

    gc.collect()
    gc.disable()
    try:
        with dynacheck.observe() as report:
            found = [ref() for _ in range(2) for ref in call()]
    finally:
        gc.enable()
    assert len(report.calls) == 2 and found == [None] * 4
