"""Attributes that a frame stores and deletes before a break: what is written afterwards is what plain Python leaves."""

import types

import dynacheck
import pytest
import torch


class Strict(type):
    """A metaclass whose hooks aren't to run again when effects are written."""

    calls = 0

    def __delattr__(cls, name):
        Strict.calls += 1
        super().__delattr__(name)


def stored_and_deleted(x, owner):
    owner.new = 2
    del owner.new
    dynacheck.graph_break()
    return x + 1


def deleted(x, owner):
    owner.kept = 3
    del owner.kept
    dynacheck.graph_break()
    return x + hasattr(owner, "kept")


def deleted_and_stored(x, owner):
    owner.new = 2
    del owner.new
    owner.new = 4
    dynacheck.graph_break()
    return x * owner.new


def a_class():
    return type("Made", (), {"kept": 1})


def a_watched_class():
    return Strict("Made", (), {"kept": 1})


def an_object():
    made = a_class()()
    made.kept = 5
    return made


def a_module():
    made = types.ModuleType("made")
    made.kept = 1
    return made


@pytest.mark.parametrize("fn", [stored_and_deleted, deleted, deleted_and_stored])
@pytest.mark.parametrize("make", [a_class, a_watched_class, an_object, a_module])
def test_as_plain(fn, make):
    compiled, x = dynacheck.compile(fn, backend="eager"), torch.ones(3)
    plain, traced = make(), make()
    dynacheck.reset()
    with dynacheck.observe() as report:
        for _ in range(2):
            Strict.calls = 0
            wanted = fn(x, plain)
            hooks, Strict.calls = Strict.calls, 0
            torch.testing.assert_close(compiled(x, traced), wanted)
            assert Strict.calls == hooks
            assert {n for n in vars(traced) if n in ("new", "kept")} == {
                n for n in vars(plain) if n in ("new", "kept")
            }
    assert report.counts["graphs"]
