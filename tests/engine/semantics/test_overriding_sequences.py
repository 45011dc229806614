"""Subclasses of sequences with methods of their own: what C code reads of them by its own rule, and what it asks them for."""

import collections

import dynacheck
import pytest
import torch


class ListOf3(list):
    def __getitem__(self, index):
        return 3


class TupleOf3(tuple):
    def __getitem__(self, index):
        return 3


class DequeOf3(collections.deque):
    def __getitem__(self, index):
        return 3


class DictOf3(dict):
    def __getitem__(self, key):
        return 3


class Named(collections.namedtuple("Named", "a b")):
    __slots__ = ()

    def count(self, value):
        return 99

    def __len__(self):
        return 7

    def __getitem__(self, index):
        return 3

    def __eq__(self, other):
        return True

    def index(self, value):
        return super().index(value) + 1


class Renaming(collections.namedtuple("Renaming", "a b")):
    __slots__ = ()

    def _replace(self, **changes):
        return changes

    def __repr__(self):
        return "renamed"


BODIES = {
    "list": (ListOf3([1, 2]), "list(v), [i for i in v], tuple(v), sum(v), v[0], len(v), v == [1, 2]"),
    "tuple": (TupleOf3([1, 2]), "list(v), [i for i in v], [*v], sum(v), v[0], len(v), v == (1, 2)"),
    "deque": (DequeOf3([1, 2]), "list(v), [i for i in v], [*v], sum(v), v[0], len(v)"),
    "dict": (DictOf3({1: 2}), "list(v), {**v}, dict(v), v.get(1), list(v.items()), v[1]"),
    "named": (Named(1, 2), "v.count(1), len(v), v[0], list(v), v == 3, v.index(2), v.a, 55 in v"),
    "made": (None, "(lambda v: (v.count(1), len(v), v[0], list(v), v == 3, v.index(2), v.a))(Named(1, 2))"),
    "renaming": (
        Renaming(1, 2),
        "v._replace(a=3), repr(v), str(v), f'{v}', len(v), v + (3,), v.__getnewargs__()",
    ),
    "renaming made": (
        None,
        "Renaming(1, 2)._replace(a=3), repr(Renaming(1, 2)), Renaming(1, 2).__getnewargs__()",
    ),
    "deleted from": ((1, 2), "[message(lambda: v.__delitem__), called(v)]"),
}


def message(call):
    try:
        call()
    except (TypeError, AttributeError) as error:
        return str(error)


def called(v):
    found = []
    for owner, key in (
        (v, 0),
        (v, "a"),
        ("text", 0),
        ("text", "a"),
        (5, 0),
        (range(3), 0),
        (type.__dict__, "a"),
    ):
        try:
            del owner[key]
        except TypeError as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize("name", BODIES)
def test_body(name, engine, seen):
    value, text = BODIES[name]
    scope = {"Named": Named, "Renaming": Renaming, "message": message, "called": called}
    exec(f"def program(x, v):\n    return x + 1, {text}", scope)
    program = scope["program"]
    compiled = dynacheck.compile(program, backend="eager")
    for _ in range(2):
        assert repr(compiled(torch.ones(2), value)) == repr(program(torch.ones(2), value))
    assert seen.cache_entries
