"""Builtins and the standard library's pure parts on user objects, tensors and functions of the frame."""

import collections
import collections.abc
import dataclasses
import enum
import functools
import os
import typing
import warnings

import dynacheck
import pytest
import torch
from engine.semantics.container_harness import check


class Color(enum.Enum):
    RED = 1
    BLUE = "b"

    @property
    def label(self):
        return f"<{self.name}>"

    def describe(self, extra):
        return (self.value, extra)

    @classmethod
    def default(cls):
        return cls.RED


class Shade(enum.Enum):
    LIGHT = ("l", 1)
    DARK = ("d", 2)

    def __init__(self, code, weight):
        self.weight = weight

    def __str__(self):
        return f"shade {self.value[0]}"

    def __eq__(self, other):
        return other == "x" or self is other

    def __hash__(self):
        return 1

    def __lt__(self, other):
        return self.weight < other.weight


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Flag(enum.Flag):
    A = enum.auto()
    B = enum.auto()


@dataclasses.dataclass
class Config:
    size: int
    name: str = "n"
    items: list = dataclasses.field(default_factory=list)

    @property
    def double(self):
        return self.size * 2


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    a: int
    b: float = 0.5


class Vector:
    def __init__(self, *v):
        self.v = list(v)

    def __len__(self):
        return len(self.v)

    def __getitem__(self, i):
        return self.v[i]

    def __setitem__(self, i, value):
        self.v[i] = value

    def __delitem__(self, i):
        del self.v[i]

    def __contains__(self, i):
        return i in self.v

    def __add__(self, other):
        return Vector(*[a + b for a, b in zip(self.v, other.v)])

    def __radd__(self, other):
        return self if other == 0 else NotImplemented

    def __eq__(self, other):
        return isinstance(other, Vector) and self.v == other.v

    def __lt__(self, other):
        return sum(self.v) < sum(other.v)

    def __bool__(self):
        return any(self.v)

    def __abs__(self):
        return sum(x * x for x in self.v)

    def __int__(self):
        return 7

    def __float__(self):
        return 7.5

    def __index__(self):
        return 1

    def __round__(self, n=None):
        return ("rounded", n)

    def __repr__(self):
        return f"Vector{tuple(self.v)}"

    def __format__(self, spec):
        return f"{spec}:{len(self)}"

    def __reversed__(self):
        return iter(self.v[::-1])

    def __call__(self, a, *, k=1):
        return a * k + len(self)


class Sequence:
    """Iterable through `__getitem__` alone."""

    def __getitem__(self, i):
        if i > 2:
            raise IndexError(i)
        return i * 10


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n


@typing.runtime_checkable
class HasSize(typing.Protocol):
    size: int


class NamedPoint(typing.NamedTuple):
    a: int
    b: float = 2.0

    def total(self):
        return self.a + self.b

    @property
    def first(self):
        return self.a


class MyList(list):
    def second(self):
        return self[1]


class MyDict(dict):
    def __missing__(self, key):
        return f"no {key}"

    def __setitem__(self, key, value):
        super().__setitem__(key, (value, "set"))


class Output(collections.OrderedDict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@functools.cache
def cached(n):
    return n * 3


def doubled(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        return fn(*args, **kwargs) * 2

    return inner


@doubled
def plus_one(v):
    "doc"
    return v + 1


EXTRA = {
    n: v for n, v in list(globals().items()) if n[:1].isupper() or n in ("cached", "plus_one", "doubled")
}

PROGRAMS = {
    "len, bool, in": "v = Vector(1, 2)\nresult = len(v), bool(v), bool(Vector(0)), 1 in v, 5 in v",
    "items": "v = Vector(1, 2)\nv[0] = 5\ndel v[1]\nresult = v[0], list(v), v.v",
    "operators": (
        "result = (Vector(1) + Vector(2)).v, sum([Vector(1), Vector(2)]).v, Vector(1) == Vector(1), "
        "Vector(1) != Vector(2)"
    ),
    "order": (
        "result = Vector(1) < Vector(2), max(Vector(1), Vector(3)).v, "
        "[w.v for w in sorted([Vector(3), Vector(1)])]"
    ),
    "conversions": (
        "v = Vector(1, 2)\nresult = int(v), float(v), abs(v), round(v), round(v, 2), [10, 20][v], "
        "hex(v), range(5)[v]"
    ),
    "text": (
        "v = Vector(1, 2)\nresult = repr(v), str(v), f'{v:spec}', f'{v!r}', format(v, 'q'), "
        "'%s' % v, '{}'.format(v), '%r|%s' % (v, v)"
    ),
    "call": "v = Vector(1)\nresult = v(5, k=2), callable(v), callable(Sequence())",
    "reversed and iter": (
        "v = Vector(1, 2)\nresult = list(reversed(v)), list(Sequence()), 10 in Sequence(), "
        "list(Countdown(3)), max(Countdown(3))"
    ),
    "next": "c = Countdown(2)\nresult = next(c), next(c), next(c, 'end'), list(c)",
    "next raises": "next(Countdown(0))",
    "zip of user iterators": "result = list(zip(Sequence(), Countdown(5)))",
    "map and filter": (
        "result = list(map(Vector.__len__, [Vector(1), Vector()])), list(filter(None, [0, 1])), "
        "list(filter(lambda s: s, ['', 'a']))"
    ),
    "getattr, setattr": (
        "v = Vector()\nsetattr(v, 'z', x)\nresult = getattr(v, 'z'), hasattr(v, 'q'), getattr(v, "
        "'q', 3), vars(v)['z']\ndelattr(v, 'z')\nresult = result, hasattr(v, 'z')"
    ),
    "missing attribute": "Vector().nothing",
    "unhashable": "hash(Vector())",
    "not iterable": "list(5)",
    "isinstance": (
        "v = Vector()\nresult = isinstance(v, Vector), isinstance(v, (int, Vector)), isinstance(v, "
        "collections.abc.Sized), isinstance(v, collections.abc.Iterable), isinstance(v, "
        "collections.abc.Callable), issubclass(Vector, object)"
    ),
    "protocol": "result = isinstance(Config(1), HasSize), isinstance(Vector(), HasSize)",
    "type": (
        "v = Vector()\nresult = type(v) is Vector, type(v).__name__, v.__class__ is Vector, "
        "type(x) is torch.Tensor"
    ),
    "enum": (
        "c = Color.RED\nresult = c, c.value, c.name, c is Color.RED, c == Color.BLUE, Color('b'), "
        "Color['BLUE'], c.label, c.describe(2), Color.default(), [m.name for m in Color], "
        "len(Color), repr(c), str(c), isinstance(c, Color)"
    ),
    "enum with its own text": (
        "c = Shade.DARK\nresult = str(c), repr(c), f'{c}', '%s' % c, c == 'x', c < Shade.LIGHT, "
        "c.weight"
    ),
    "id": (
        "a, b = [1], [1]\nseen = set()\nfor v in (a, b, a):\n    seen.add(id(v))\n"
        "result = len(seen), id(a) == id(a), id(a) == id(b), id(b) in seen"
    ),
    "enum keys": (
        "d = {Color.RED: 1, Color.BLUE: x}\nresult = d[Color.RED], Color.BLUE in d, "
        "{Color.RED} | {Color.BLUE}"
    ),
    "bad enum": "Color(7)",
    "int enum": (
        "result = Level.LOW + 1, Level.HIGH > 3, Level(5), [10, 20, 30][Level.LOW], "
        "f'{Level.LOW:d}', max(Level), x * Level.HIGH"
    ),
    "flag": "f = Flag.A | Flag.B\nresult = f, Flag.A in f, f & Flag.A, bool(f & Flag.B)",
    "dataclass": (
        "c = Config(3)\nc.items.append(x)\nd = dataclasses.replace(c, name='m')\nresult = c.double, "
        "d.name, d.items is c.items, c == Config(3, 'n', [x]) or 1, "
        "[f.name for f in dataclasses.fields(c)]"
    ),
    "dataclass order": (
        "a, b = Frozen(1), Frozen(1, 2.0)\nresult = a < b, a == Frozen(1), "
        "hash(a) == hash(Frozen(1)), {a: 1}[Frozen(1)]"
    ),
    "frozen dataclass": "Frozen(1).a = 5",
    "asdict": (
        "result = dataclasses.asdict(Config(3, 'q', [1, {'k': 2}])), dataclasses.astuple(Frozen(1)), "
        "dataclasses.is_dataclass(Config)"
    ),
    "named tuple class": (
        "p = NamedPoint(1)\nresult = p, p.total(), p.first, p.b, tuple(p), p == (1, 2.0), "
        "p._replace(a=5), isinstance(p, tuple)"
    ),
    "list subclass": (
        "l = MyList([1, 2, 3])\nl.append(4)\nresult = l, l.second(), l[1:], len(l), l == [1, 2, 3, "
        "4], isinstance(l, list), sorted(l, reverse=True), l + [5]"
    ),
    "dict subclass": (
        "d = MyDict(a=1)\nd['b'] = 2\nd.update(c=3)\nresult = d, d['zz'], d.get('zz'), 'a' in d, "
        "list(d.items()), isinstance(d, dict), {**d}"
    ),
    "model output": (
        "o = Output(logits=x, loss=None)\no['extra'] = 1\nresult = o.logits, o['loss'], list(o), o, "
        "hasattr(o, 'nope'), o.extra"
    ),
    "counter": (
        "c = collections.Counter('abca')\nc['z'] += 2\nresult = c['a'], c['q'], c.most_common(), "
        "sum(c.values()), dict(c)"
    ),
    "cached": "result = cached(4), cached.__wrapped__(2)",
    "wraps": "result = plus_one(3), plus_one.__name__, plus_one.__doc__, plus_one.__wrapped__(3)",
    "wraps in the frame": "@doubled\ndef g(v):\n    return v + 5\nresult = g(1), g.__name__",
    "partial of a user function": "p = functools.partial(plus_one)\nresult = p(2)",
    "cast": "result = typing.cast(int, 'a')",
    "nullcontext": "with contextlib.nullcontext(5) as v:\n    result = v",
    "nullcontext's value": (
        "c = contextlib.nullcontext([5])\nenter = c.__enter__\nwith c as v:\n    c.enter_result.append(6)\n"
        "result = c.enter_result, c.enter_result is v, enter() is v"
    ),
    "suppress": "result = 1\nwith contextlib.suppress(KeyError):\n    {}[1]\n    result = 2",
    "any of a generator": (
        "result = any(v > 2 for v in [1, 2, 3]), all(v for v in [1, 0]), sum(v for v in range(4)), "
        "max((v for v in [1, 5]), default=0)"
    ),
    "torch math": (
        "import math\nresult = math.sqrt(x.shape[0]), math.prod(x.shape), math.ceil(x.shape[0] / 3)"
    ),
    "shapes": (
        "b, *rest = x.unsqueeze(0).shape\nresult = b, rest, min(x.shape), "
        "sorted(x.unsqueeze(0).shape), x.shape[-1] // 2"
    ),
    "round trip": "result = list(dict.fromkeys([3, 1, 3])), sorted({3, 1, 2}), tuple(map(int, '123'))",
    "bool of user len": "class_ = type(Vector())\nresult = 'yes' if Vector(0, 1) else 'no'",
    "identity": (
        "v = Vector()\nresult = v is v, Vector() is Vector(), v in [v], [v].index(v), "
        "[Vector(1)].count(Vector(1))"
    ),
    "sort by attribute": (
        "result = [c.size for c in sorted([Config(3), Config(1)], key=operator.attrgetter('size'))]"
    ),
    "operator on tensors": (
        "result = operator.add(x, 1), operator.matmul(x, x), operator.getitem(x, 0), operator.neg(x)"
    ),
    "functions as values": (
        "fns = {'a': lambda v: v + 1, 'b': torch.neg}\nresult = fns['a'](x), fns['b'](x), "
        "[f(x) for f in (torch.sin, torch.cos)]"
    ),
    "divmod and pow": "result = divmod(x.shape[0], 2), pow(2, x.shape[0]), 7 // x.shape[0]",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _fresh():
    dynacheck.reset()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    check("", "", PROGRAMS[name], EXTRA)


def test_a_cache_that_is_passed_over_is_told():
    counted = []

    @functools.lru_cache(maxsize=2)
    def table(n):
        counted.append(n)
        return n * 2

    def fn(x):
        return x * table(3) + table(3)

    with dynacheck.observe() as report:
        assert dynacheck.compile(fn, backend="eager", fullgraph=True)(torch.ones(1)).tolist() == [12]
    assert table.cache_info().currsize == 0 and counted == [3, 3]
    assert len(report.cautions) == 1 and "table` is called each time" in report.cautions[0]
    (told,) = [event for event in report.events if isinstance(event, dynacheck.events.Cautioned)]
    assert (told.code.name, told.stack[-1].text) == ("fn", "return x * table(3) + table(3)")


def test_a_context_that_is_entered_twice():
    def fn(x):
        context = warnings.catch_warnings()
        with context:
            y = x + 1
        try:
            with context:
                y = y + 1
        except RuntimeError as error:
            return y, str(error)

    compiled = dynacheck.compile(fn, backend="eager", fullgraph=True)
    assert repr(compiled(torch.ones(1))) == repr(fn(torch.ones(1)))


def test_what_of_a_library_breaks_is_told_with_what_the_user_called():
    def fn(x):
        y = x + 1
        os.environ["DYNACHECK_TESTS"] = "1"
        return y + 1

    try:
        with dynacheck.observe() as report:
            dynacheck.compile(fn, backend="eager")(torch.ones(1))
    finally:
        del os.environ["DYNACHECK_TESTS"]
    (broke,) = report.graph_breaks
    assert "putenv" in broke.message and "`os._Environ.__setitem__` calls it" in broke.message
    assert (broke.line, broke.text) == (fn.__code__.co_firstlineno + 2, 'os.environ["DYNACHECK_TESTS"] = "1"')


def test_warning_splits_the_frame_and_is_given_on_every_call():
    def fn(x):
        y = x + 1
        warnings.warn("careful", DeprecationWarning)
        return y + 1

    run = dynacheck.compile(fn, backend="eager")
    with dynacheck.observe() as report:
        for _ in range(2):
            with pytest.warns(DeprecationWarning, match="careful") as caught:
                warnings.simplefilter("always")
                run(torch.ones(1))
            assert caught[0].filename == __file__
    assert len(report.graph_breaks) == 1 and len(report.graphs) == 2
