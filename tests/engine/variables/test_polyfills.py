"""Polyfills do what their originals do, run as plain Python."""

import inspect
import operator

import pytest
from dynacheck import handlers  # noqa: F401  (fills the registry)
from dynacheck.handlers.registry import polyfills

FOUND = {original: polyfill for original, polyfill in polyfills()}


def test_every_polyfill_is_plain_python_of_the_engine():
    assert len(FOUND) > 5
    for original, polyfill in FOUND.items():
        assert "handlers" in polyfill.__code__.co_filename
        try:
            wanted = inspect.signature(original)
        except ValueError:
            continue
        assert len(inspect.signature(polyfill).parameters) == len(wanted.parameters)


class Hinting:
    """An iterator that hints at how many items are left."""

    def __init__(self, hint):
        self.hint = hint

    def __length_hint__(self):
        return self.hint


class Sized:
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size


OBJECTS = [
    [1, 2],
    iter([1, 2]),
    5,
    Hinting(3),
    Hinting(NotImplemented),
    Hinting("x"),
    Hinting(-1),
    Sized(2),
    Sized("x"),
]


def outcome(fn, *args):
    try:
        return fn(*args)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("obj", OBJECTS, ids=lambda obj: type(obj).__name__)
def test_length_hint(obj):
    polyfill = FOUND[operator.length_hint]
    for args in ((obj,), (obj, 7), (obj, "y")):
        assert outcome(polyfill, *args) == outcome(operator.length_hint, *args)
