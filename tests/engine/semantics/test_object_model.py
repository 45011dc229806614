"""CPython's object model, as its own tests (test_descr, test_types, test_math, test_int) probe it: compiled as plain."""

from __future__ import annotations

import copy
import enum
import math
import sys
import types
import typing
from typing import Any

import dynacheck
import pytest
import torch

pytestmark = pytest.mark.usefixtures("engine")


def tried(fn: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return fn(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error), getattr(error, "name", None)


# -- `__class__` that isn't the type


class Plain:
    a = 1


class Stand:
    def __init__(self, other):
        self.__other = other

    def __getattribute__(self, name):
        if name.startswith("_Stand__"):
            return super().__getattribute__(name)
        return getattr(self.__other, name)


class Text:
    __class__ = str


class Counted:
    asked = 0

    @property
    def __class__(self):
        Counted.asked += 1
        return int


STAND, OVER_TENSOR, TEXT, COUNTED = Stand(Plain()), Stand(torch.ones(3)), Text(), Counted()


def claimed_classes():
    made = isinstance(Text(), str), isinstance(Counted(), (float, int)), isinstance(Counted(), Counted)
    sourced = isinstance(STAND, Plain), isinstance(STAND, int), isinstance(OVER_TENSOR, torch.Tensor)
    return made, sourced, isinstance(TEXT, int | str), TEXT.__class__, COUNTED.__class__, type(STAND)


def classes_of_callables():
    methods = (
        [].append,
        (1).__add__,
        OVER_TENSOR.__init__,
        torch.nn.ReLU().forward,
        super(Plain, Plain()).__init__,
    )
    return [f.__class__ for f in (claimed_classes, *methods)], super(Plain, Plain()).__class__


def functions_told_what_they_do():
    def g(a=1, *, b=2):
        return a, b

    def h(a=1, *, b=2):
        return "h", a, b

    before = g()
    g.__defaults__, g.__kwdefaults__ = (5,), {"b": 7}
    between = g()
    g.__code__ = h.__code__
    return before, between, g()


def class_asked_once():
    before = Counted.asked
    return isinstance(COUNTED, int), isinstance(COUNTED, Counted), Counted.asked - before


# -- making objects


class WithInit:
    def __init__(self, foo):
        self.foo = foo


class WithNew:
    def __new__(cls, foo):
        return object.__new__(cls)


class WithBoth(WithNew, WithInit):
    pass


class HandsOn:
    def __new__(cls, foo, kw=0, *args, **kwargs):
        return object.__new__(cls, *args, **kwargs)


class Chooses:
    def __new__(cls, arg):
        if isinstance(arg, str):
            return [1, 2, 3]
        return object.__new__(Chosen if isinstance(arg, int) else cls)


class Chosen(Chooses):
    def __init__(self, arg):
        self.foo = arg


class Listed:
    @classmethod
    def __new__(*args):
        return len(args), args[2:]


def excess_arguments():
    found = []
    for cls, args in ((Plain, ()), (WithInit, (3,)), (WithNew, (3,)), (WithBoth, (3,))):
        new = tried(object.__new__, cls, 5)
        found.append(new if isinstance(new, tuple) else type(new).__name__)
        found += [tried(object.__init__, cls(*args)), tried(object.__init__, cls(*args), 5)]
    return found, tried(HandsOn, 1, 2, 3), tried(Plain, 1), type(HandsOn(1, kw=2)).__name__


def another_class_made():
    one = Chooses(1)
    return type(one).__name__, one.foo, Chooses("1"), Chosen("1"), Chosen(None).foo, Listed(1, 2)


# -- attributes


class Getter:
    counter = 0

    def __get__(self, obj, objtype=None):
        def getter(name):
            self.counter += 1
            raise AttributeError(name)

        return getter


GETTER = Getter()


class Hooked:
    __getattribute__ = __getattr__ = GETTER


class Falls:
    @property
    def bad(self):
        raise AttributeError("inner")

    def __getattr__(self, name):
        return f"instead of {name}"


class Catches:
    def __getattribute__(self, name):
        try:
            return super().__getattribute__(name)
        except AttributeError as error:
            return str(error)

    def __getattr__(self, name):
        raise AssertionError("asked too much")


class Items(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__
    __neg__ = dict.copy


class Net(torch.nn.Module):
    @property
    def bad(self):
        return self.missing.weight


HOOKED, FALLS, CATCHES, NET = Hooked(), Falls(), Catches(), Net()


def hooks_that_are_descriptors():
    before = GETTER.counter
    return tried(getattr, HOOKED, "attr"), tried(getattr, Hooked(), "attr"), GETTER.counter - before


def fallbacks():
    return FALLS.bad, Falls().bad, FALLS.other, CATCHES.other, tried(lambda: NET.bad), hasattr(NET, "bad")


def items_as_attributes():
    made = Items(a=1)
    made.b = 2
    found = made.a, made["b"], dict(made), -made == made, tried(getattr, made, "c")
    del made.a
    return found, list(made)


def names_of_errors():
    plain = Plain()
    asked = [tried(lambda: plain.foo)]
    return asked, tried(lambda: no_such_name), tried(Plain.__init__.__get__, None)  # noqa: F821


class Bound(Plain):
    def __init__(self):
        self.above = super()


Bound.unbound = super(Bound)
BOUND = Bound()


def supers_kept():
    return BOUND.above.a, Bound().above.a, BOUND.unbound.a, Bound().unbound.a


def names_of_bound_methods():
    made: list[int] = []
    method = made.__add__
    return (
        method == made.__add__,
        method == [].__add__,
        method.__objclass__,
        type(method),
        made.append.__name__,
    )


def namespaces():
    made = types.SimpleNamespace(x=1, y=2)
    del made.y
    made.z = 3
    return vars(made) == {"x": 1, "z": 3}, dict(made.__dict__), tried(getattr, made, "y")


# -- texts, sizes, numbers


class Size:
    def __init__(self, value):
        self.value = value

    def __len__(self):
        return self.value


class Says:
    def __format__(self, spec):
        return 1

    def __str__(self):
        return 2

    def __repr__(self):
        return 3


class Fails:
    def __float__(self):
        return 1 / 0


class Floats:
    def __float__(self):
        return 2.5


class Truncates:
    def __trunc__(self):
        return 23


def lengths():
    values = (3, None, 4.5, -10, sys.maxsize + 1, -sys.maxsize - 10, "a", True)
    return [tried(len, Size(v)) for v in values], [tried(bool, Size(v)) for v in values]


def texts_that_are_none():
    return tried(format, Says()), tried(str, Says()), tried(repr, Says()), tried(lambda: f"{Says()!r:>3}")


def numbers_in_order():
    functions = (math.atan2, math.copysign, math.remainder, math.pow, math.hypot)
    return [tried(fn, "no number", Fails()) for fn in functions]


def rounding():
    return math.trunc(Truncates()), tried(math.trunc, Floats()), math.ceil(Floats()), complex(Floats())


def numbers_from_buffers():
    return tried(int, memoryview(b"123")[1:3]), tried(int, bytearray(b"12")), tried(int, Truncates())


# -- types that are written


T = typing.TypeVar("T")
UNION = int | str


def written_types():
    unions = UNION == str | int, UNION != (str | int), hash(UNION) == hash(str | int), int | None
    return unions, list[int] == list[int], list[int], (list[T] | int).__args__[1], copy.copy(UNION) == UNION


class Kind(enum.Enum):
    @enum.property
    def first(self):
        return f"{self.name} is first"


class Ordinal(Kind):
    first = 1
    second = 2


def getters_named_like_members():
    return [kind.first for kind in Ordinal], Ordinal.first, list(Ordinal.__members__)


def made_by_a_generator():
    def numbers():
        yield 1

    made = numbers()
    return made.gi_code is numbers.__code__, next(made)


OWN, KNOWN = Plain(), [1]
BY_ID = {id(OWN): "own", id(KNOWN): "known"}


def identities_as_keys():
    made = Plain()
    own = {id(made): "made"}
    return (
        BY_ID[id(OWN)],
        BY_ID.get(id(KNOWN)),
        id(made) in BY_ID,
        own[id(made)],
        {id(OWN)} == set(list(BY_ID)[:1]),
    )


class Once(type):
    made = {}
    limit = 3

    @staticmethod
    def doubled(number):
        return number * 2

    @classmethod
    def kind(mcs):
        return mcs.__name__

    def __call__(cls, *args):
        if cls not in cls.made:
            cls.made[cls] = super().__call__(*args)
        return cls.made[cls]


class Single(metaclass=Once):
    def __init__(self, number=0):
        self.number = number


class Marking(type):
    def __call__(cls, *args, **named):
        made = super().__call__(*args, **named)
        made.marked = cls.__name__
        return made


class Marked(metaclass=Marking):
    def __init__(self, one, *, two=2):
        self.sum = one + two


def made_by_metaclasses_that_call():
    one, other = Marked(1), Marked(3, two=4)
    same = Single(3) is Single(4) is Once.made[Single]
    refused = tried(Marked)
    return one.marked, one.sum, other.sum, same, Single().number, refused, type.__call__(Single, 9).number


def attributes_of_metaclasses():
    return (
        Single.limit,
        Single.doubled(4),
        Single.kind(),
        Single.made is Once.made,
        tried(lambda: Single(1).limit),
    )


def own_methods_of_object():
    found = NET.__repr__() == repr(NET) == object.__repr__(NET), NET.__hash__() == object.__hash__(NET)
    return (
        found,
        Plain.__subclasses__.__name__,
        Plain().__lt__(3),
        [c.__name__ for c in Once.__subclasses__(Marked)],
    )


PROGRAMS = (
    claimed_classes, classes_of_callables, functions_told_what_they_do, class_asked_once, excess_arguments, another_class_made, hooks_that_are_descriptors, fallbacks,
    items_as_attributes, names_of_errors, supers_kept, names_of_bound_methods, namespaces, lengths,
    texts_that_are_none, numbers_in_order, rounding, numbers_from_buffers, written_types,
    getters_named_like_members, made_by_a_generator, identities_as_keys, made_by_metaclasses_that_call,
    attributes_of_metaclasses, own_methods_of_object,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.filterwarnings("ignore:The delegation of int:DeprecationWarning")
def test_program(program):
    def fn(x):
        return x + 1, program()

    expected = repr(fn(torch.ones(1)))
    compiled = dynacheck.compile(fn, backend="eager")
    with dynacheck.observe() as report:
        for _ in range(2):
            assert repr(compiled(torch.ones(1))) == expected
    assert report.cache_entries
    assert not [s for s in report.skipped if s.reason == "DC201"], "the interpreter raised"


def test_no_warning_is_given_twice(recwarn):
    """Running an operator on stand-ins warns of nothing; the graph's own run does."""

    def fn(x):
        return torch.nn.functional.softmax(x)

    compiled = dynacheck.compile(fn, backend="eager")
    found = []
    for run in (fn, compiled):
        recwarn.clear()
        run(torch.ones(3))
        found.append([str(w.message)[:60] for w in recwarn])
    assert len(found[0]) == 1 and found[1] == found[0]


def test_subclasses_that_are_made_are_noticed():
    class Base:
        pass

    def fn(x):
        return x + 1, [c.__name__ for c in Base.__subclasses__()]

    compiled = dynacheck.compile(fn, backend="eager", fullgraph=True)
    kept = []
    for name in ("One", "Other", "Other"):
        kept.append(type(name, (Base,), {}))
        assert compiled(torch.ones(1))[1] == fn(torch.ones(1))[1]


def test_bases_that_are_set_are_noticed():
    class One(Plain):
        pass

    class Other(Plain):
        pass

    class Derived(One):
        pass

    def fn(x):
        return x + 1, Derived.__bases__, [c.__name__ for c in Derived.__mro__]

    compiled = dynacheck.compile(fn, backend="eager")
    for base in (One, Other, Other):
        Derived.__bases__ = (base,)
        assert repr(compiled(torch.ones(1))) == repr(fn(torch.ones(1)))
