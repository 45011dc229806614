"""Objects of classes derived from int, float, str, complex and bytes: operators, methods, text, hashes, uses in operators
of torch. Values with their types as in plain Python, for objects made in the frame and for those that came into it."""

from __future__ import annotations

import math
import types
from typing import Any

import dynacheck
import pytest
import torch


class Level(int):
    """Adds nothing."""


class Real(float):
    """Adds nothing."""


class Name(str):
    """Adds nothing."""


class Raw(bytes):
    """Adds nothing."""


class Phase(complex):
    """Adds nothing."""


class Step(Level):
    scale = 3

    def scaled(self):
        return self * self.scale

    @property
    def half(self):
        return self / 2

    @classmethod
    def make(cls, value):
        return cls(value)


class Sized(int):
    def __init__(self, value):
        self.twice = value * 2


class Own(int):
    """Overrides what operators and text use."""

    def __add__(self, other):
        return "add", int(self), int(other)

    def __radd__(self, other):
        return "radd", int(self), int(other)

    def __eq__(self, other):
        return False

    __hash__ = int.__hash__

    def __lt__(self, other):
        return "less"

    def __neg__(self):
        return "negative"

    def __bool__(self):
        return False

    def __index__(self):
        return 9

    def __repr__(self):
        return "own"


class Spelled(str):
    def __str__(self):
        return "spelled"

    def __format__(self, spec):
        return "formatted" + spec

    def __len__(self):
        return 77

    def upper(self):
        return super().upper() + "!"


class Unit(int):
    def __new__(cls, value, unit="m"):
        self = super().__new__(cls, value)
        self.unit = unit
        return self


SCOPE = {
    **globals(),
    "math": math,
    "HELD": types.SimpleNamespace(level=Level(2), name=Name("n")),
    "KEYS": {3: "c", "ab": "t"},
}
SCOPE["BY_LEVEL"] = {Level(3): "level", Name("q"): 2}

# `v` is a Level(3), a Step(3), an Own(3), a Unit(3)
OF_INTS = """
v + 1
1 + v
v - v
2 * v
v * [1]
(1,) * v
v * 'ab'
v / 2
2 ** v
7 % v
divmod(v, 2)
v << 1
v & True
-v
~v
abs(v)
v == 3
v != 3
v < 5
5 > v
v < v
v == v
v in (1, 3)
sorted([v, 1])
max(v, 1)
repr(v)
str(v)
[v]
str([v])
f'{v} {v:03d} {v!r}'
'%s %d' % (v, v)
'{} {:>4}'.format(v, 1)
int(v)
float(v)
bool(v)
not v
v and 5
[1, 2, 3, 4, 5][v]
[1, 2, 3, 4, 5][:v]
list(range(v))
v.real
v.bit_length()
v.__add__(1)
math.sqrt(v)
math.gcd(v, 9)
round(v)
pow(v, 2, 5)
chr(v)
isinstance(v, int)
v is v
x * v
x[:v]
x.repeat(v)
torch.ones(v, 2)
torch.zeros([v])
x.sum(v - 3)
x.view(-1, v - 2)
torch.tensor(v)
""".strip().splitlines()

# `v` is a Name('ab'), a Spelled('ab')
OF_STRINGS = """
v + 'c'
'c' + v
v * 2
v == 'ab'
'ab' == v
v < 'b'
repr(v)
str(v)
f'{v} {v!r} {v:>5}'
'%s %r' % (v, v)
'{}'.format(v)
len(v)
v[0]
v[::-1]
list(v)
v.upper()
v.split('a')
v.join(['1', '2'])
','.join([v, 'c'])
'xaby'.replace(v, v + '!')
'ab'.startswith(v)
'a' in v
v in 'xab'
v in KEYS
KEYS[v]
KEYS.get(v)
{v: 1}['ab']
{'ab': 1}[v]
getattr(x, v, 1)
hash(v) == hash('ab')
isinstance(v, str)
v.encode()
""".strip().splitlines()

OTHERS = """
Level()
Level('7')
Level(3.7)
Level(True)
Level(x.shape[0])
Level(Level(3))
Name(5)
Name(Name('a'))
Name(b'a', 'utf8')
Sized(3).twice
Sized(3) + 1
Step.make(2).scaled()
Step(4).half
type(Step(1) + 1)
Level(1) is Level(1)
Level(3) + Level(4)
Level(3) + 2.5
sum([Level(3), Level(4)])
Level(1) + Step(2)
Step(4) == Level(4)
{Level(1): 'a', Name('b'): 2}
{Level(1), 1}
{1: 'a'}[Level(1)]
BY_LEVEL[3]
BY_LEVEL['q']
BY_LEVEL[Level(3)]
HELD.level + 1
HELD.name + 'x'
x + HELD.level
Name('a%sb') % 3
Name('{}').format(3)
Level(3).__dict__
Level(3).__class__.__name__
""".strip().splitlines()

ARGUMENTS = """
Real(1.5) | v + 1
Real(1.5) | 1 - v
Real(1.5) | v == 1.5
Real(1.5) | f'{v:.2f}'
Real(1.5) | int(v)
Real(1.5) | round(v)
Real(1.5) | math.floor(v)
Real(1.5) | v.is_integer()
Real(1.5) | x * v
Real(1.5) | torch.full((2,), v)
Real(1.5) | v // Level(1)
Raw(b'ab') | v + b'c'
Raw(b'ab') | v == b'ab'
Raw(b'ab') | v[0]
Phase(1 + 2j) | v.real
Phase(1 + 2j) | v * 2
Unit(3, 'kg') | v.unit + str(v)
Unit(3, 'kg') | v * 2
""".strip().splitlines()


def compiled(body: str) -> Any:
    scope = dict(SCOPE)
    exec(f"def f(x, v):\n{body}", scope)
    return scope["f"]


def check(body: str, *values: Any) -> None:
    """One graph for equal values; another for each other one."""
    fn = compiled(body)
    translated = dynacheck.compile(fn, backend="eager", fullgraph=True, dynamic=False)
    with dynacheck.observe() as report:
        for value in values:
            expected = fn(torch.ones(2), value)
            assert repr(translated(torch.ones(2), value)) == repr(expected)
            found = translated(torch.ones(2), value)[1]
            assert type(found) is type(expected[1])
            if isinstance(found, (list, tuple, dict, set)):
                assert [type(item) for item in found] == [type(item) for item in expected[1]]
    assert len(report.graphs) == len(values)


@pytest.mark.parametrize("row", OF_INTS)
def test_of_ints(row: str) -> None:
    for cls in (Level, Step, Own):
        check(f"    v = {cls.__name__}(3)\n    return x + 1, {row}", None)
        check(f"    return x + 1, {row}", cls(3))
    check(f"    return x + 1, {row}", Unit(3, "kg"))


@pytest.mark.parametrize("row", OF_STRINGS)
def test_of_strings(row: str) -> None:
    for cls in (Name, Spelled):
        check(f"    v = {cls.__name__}('ab')\n    return x + 1, {row}", None)
        check(f"    return x + 1, {row}", cls("ab"))


@pytest.mark.parametrize("row", OTHERS)
def test_others(row: str) -> None:
    check(f"    return x + 1, {row}", None)


@pytest.mark.parametrize("row", ARGUMENTS)
def test_arguments(row: str) -> None:
    value, _, expression = row.partition(" | ")
    check(f"    return x + 1, {expression}", eval(value, dict(SCOPE)))


@pytest.mark.parametrize(
    "values",
    [(Level(3), Level(4), 3), (Name("a"), Name("b"), "a"), (Real(0.0), Real(-0.0)), (Raw(b"a"), Raw(b"b"))],
)
def test_an_object_is_kept_by_its_class_and_what_it_holds(values: tuple[Any, ...]) -> None:
    check("    return x + 1, v * 2", *values)


@pytest.mark.parametrize("body", ["v.a = x\n    return x + 1, v.a", "v.a = 5\n    return x + 1, v"])
def test_attributes_written(body: str) -> None:
    for start in ("", "v = Level(3)\n    "):
        fn = compiled(f"    {start}{body}")
        translated = dynacheck.compile(fn, backend="eager", fullgraph=True)
        plain, traced = Level(3), Level(3)
        expected, found = fn(torch.ones(2), plain)[1], translated(torch.ones(2), traced)[1]
        assert repr(found) == repr(expected) and getattr(found, "__dict__", 0) == getattr(
            expected, "__dict__", 0
        )
        assert plain.__dict__.keys() == traced.__dict__.keys()


@pytest.mark.parametrize(
    "row", ["Level('a')", "Level(x=1)", "Level(3) + 'a'", "'a' + Level(3)", "Name('a') + 1", "[1][Level(3)]"]
)
def test_errors(row: str) -> None:
    fn = compiled(
        f"    try:\n        {row}\n    except Exception as e:\n        return x + 1, type(e), str(e)"
    )
    assert repr(dynacheck.compile(fn, backend="eager", fullgraph=True)(torch.ones(2), 1)) == repr(
        fn(torch.ones(2), 1)
    )


class NoNumber:
    """No kind of float, though it can be made one."""

    def __float__(self):
        return 2.5


def test_another_kind_of_object_in_the_place_of_one_is_a_miss():
    def fn(x, number):
        return x * float(number)

    compiled = dynacheck.compile(fn, backend="eager")
    x = torch.ones(2)
    for number in (Real(1.5), NoNumber(), Real(1.5), 3.0):
        assert torch.equal(compiled(x, number), fn(x, number))


class Powered(int):
    def __pow__(self, other, mod=None):
        return 11


class Held:
    def __init__(self):
        self.part = 3.0


NAN, HELD, POWERED = Real("nan"), Held(), Powered(3)


@pytest.mark.parametrize(
    "text", ["hash(NAN) == object.__hash__(NAN)", "HELD.__dict__[Name('part')]", "pow(POWERED, 2, 5)"]
)
def test_what_the_value_alone_does_not_tell(text):
    fn = eval(f"lambda x: (x + 1, {text})", globals())
    found, expected = dynacheck.compile(fn, backend="eager")(torch.ones(2)), fn(torch.ones(2))
    assert torch.equal(found[0], expected[0]) and found[1] == expected[1]
