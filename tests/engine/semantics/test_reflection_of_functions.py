"""What functions, bound methods, tensors and enums made in the frame tell of themselves, against plain Python."""

from __future__ import annotations

import enum
from typing import Any

import dynacheck
import pytest
import torch


def given(a, b=2):
    """Documented."""
    return a + b


given.mark = 3


class Thing:
    number = 4

    def method(self, more=0):
        return self.number + more


THING = Thing()

ROWS = """
given.__dict__
given.__dict__ is given.__dict__
given.__call__(1), (lambda: 5).__call__()
THING.method.__call__(1), Thing.method.__call__(THING, 2)
given.__eq__(given), given.__eq__(len), given == given
THING.method == THING.method, THING.method.__hash__ == THING.method.__hash__
type(given.__call__), type(THING.method.__eq__), type(given.__sizeof__)
given.__hash__() == hash(given)
repr(given), str(given), f'{given}'
given.__doc__, THING.method.__name__, given.__builtins__['len']([1])
THING.method.__dict__, given.mark
x.__module__, x.__doc__, x.__array_priority__
[(e.name, e.value) for e in enum.Enum('E', 'A B')]
enum.Enum('E', ['A', 'B'], start=0).B.value
enum.IntEnum('E', 'A B').B + 1
enum.Flag('F', 'A B C').C.value
enum.Enum('E', {'A': 'x'})('x').name
enum.Enum('E', 'A').__module__, enum.Enum('E', 'A').__name__
repr(enum.Enum('E', 'A').A), enum.Enum('E', 'A').__members__.keys()
""".strip().splitlines()


def made(body: str) -> Any:
    scope = {**globals(), "enum": enum}
    exec(body, scope)
    return scope["f"]


@pytest.mark.parametrize("row", ROWS)
def test_row(row: str) -> None:
    fn = made(f"def f(x):\n    y = x + 1\n    return y, ({row})")
    compiled = dynacheck.compile(fn, backend="eager", fullgraph=True)
    with dynacheck.observe() as report:
        for _ in range(2):
            assert repr(compiled(torch.ones(2))) == repr(fn(torch.ones(2)))
    assert len(report.graphs) == 1 and report.recompiles == ()


def test_an_enum_that_leaves_is_the_class_of_its_members() -> None:
    fn = made("def f(x):\n    E = enum.Enum('E', 'A B')\n    return x + 1, E, E.A, list(E)")
    for _ in range(2):
        _, cls, member, members = dynacheck.compile(fn, backend="eager", fullgraph=True)(torch.ones(2))
        assert (
            isinstance(member, cls)
            and member is cls.A
            and members == [cls.A, cls.B]
            and cls.__module__ == __name__
        )


def test_what_is_written_into_the_dict_of_a_function_is_its_attribute() -> None:
    def target():
        return 1

    def f(x):
        names = target.__dict__
        names["kept"] = 5
        found = target.kept
        del names["kept"]
        names["last"] = 6
        return x + 1, found, hasattr(target, "kept"), target.last

    assert dynacheck.compile(f, backend="eager", fullgraph=True)(torch.ones(2))[1:] == (5, False, 6)
    assert target.__dict__ == {"last": 6}
