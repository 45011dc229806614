"""Faults that CPython's own tests found, each as a small program: compiled it does what it does plain.

The programs have no tensors, so frames without tensor operations are translated like others here.
"""

from __future__ import annotations

import abc
import collections
import copy
import copyreg
import enum
import functools
import itertools
import operator
import sys
import weakref
from typing import Any

import dynacheck
import pytest
import torch
from dynacheck.runtime import callback
from dynacheck.translate import translate

pytestmark = pytest.mark.usefixtures("engine", "everything")
PROGRAMS: dict[str, Any] = {}


@pytest.fixture
def everything(monkeypatch):
    """Frames without tensors and tensor operations are translated too."""
    monkeypatch.setattr(callback, "concerns_tensors", lambda func, args: True)
    monkeypatch.setattr(translate, "computes", lambda attempt, was_plain: True)


def program(make: Any) -> Any:
    """Register a maker of (function, arguments)."""
    PROGRAMS[make.__name__] = make
    return make


def noisy(value: Any) -> Any:
    print("noisy")
    return value


class Base:
    n = 0

    def m(self) -> int:
        return 1


class Derived(Base):
    def m(self) -> int:
        return super().m() + 10


@program
def class_attributes_written():
    def f(a, b):
        Base.n = Base.n + 5
        Base.k = [1]
        found = a.n, Derived.n, b.n, b.k, a.m(), b.m()
        Base.m = lambda self: self.n
        found += (a.m(), b.m())
        Derived.n = 7
        try:
            del Base.unknown
        except AttributeError as error:
            found += (str(error),)
        return found, a.n, b.n

    Base.n, Base.m = 0, lambda self: 1
    for cls, name in ((Base, "k"), (Derived, "n")):
        if name in vars(cls):
            delattr(cls, name)
    return f, (Base(), Derived())


@program
def class_made_iterable():
    def f(cls):
        cls.__iter__ = lambda self: iter((1, 2))
        return isinstance(cls(), collections.abc.Iterable), list(cls())

    return f, (type("Made", (), {}),)


@program
def keys_of_popped_items():
    def f(pairs, table):
        while pairs:
            key, _ = pairs.pop()
            table.pop(key)
        return table

    return f, ([("a", 1), ("b", 2)], {"a": 1, "b": 2})


@program
def locals_behind_a_break():
    def f(a):
        b = a + 1
        c = b * 2
        noisy(c)
        found = locals()
        exec("q = b + c", globals(), found)
        return sorted(found.items()), eval("b + c")

    return f, (3,)


@program
def annotations_of_made_functions():
    def f():
        def g(a: int, b: str = "x") -> float: ...

        before = dict(g.__annotations__)
        g.__annotations__ = {"a": 1}
        return before, noisy(g).__annotations__

    return f, ()


@program
def slot_methods_with_too_few_arguments():
    def f():
        found = []
        for call in ([1].__setitem__, [1].__delitem__, {}.__setitem__):
            try:
                call()
            except TypeError as error:
                found.append(str(error))
        return found

    return f, ()


@program
def views_and_sets():
    def f(d):
        kinds = [type(v) for v in (frozenset("a") & d.keys(), {1} | d.keys(), d.items() - {1})]
        other = dict(reversed(d.items()))
        same = (
            d.items() == other.items(),
            d.items() < other.items(),
            d.keys() != other.keys(),
            {"a"} < d.keys(),
        )
        return kinds, same, {1: [2]}.items() == {1: [2]}.items()

    return f, ({"a": 1, "b": 2},)


class Clears:
    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __eq__(self, other: object) -> bool:
        self.owner.clear()
        return False


@program
def containers_changed_while_compared():
    def f():
        found: list[Any] = []
        one: list[Any] = []
        one.append(Clears(one))
        found.append(one == [1])
        d: Any = collections.deque()
        for call in (lambda: 5 in d, lambda: d.count(5), lambda: d.index(5), lambda: d.remove(5)):
            d.extend([Clears(d), 1, 2])
            try:
                call()
            except Exception as error:
                found.append(repr(error))
        return found

    return f, ()


class Mapping(dict):
    def __iter__(self):
        return iter(list(super().keys())[::-1])

    def keys(self):
        return list(super().keys())[::-1]


class Items(dict):
    def __getitem__(self, key):
        return 7


@program
def dicts_of_mappings():
    def f():
        return (
            dict(Items(a=1)),
            list(dict(Mapping(a=1, b=2))),
            {**Mapping(a=1, b=2)},
            dict(collections.OrderedDict(a=1)),
        )

    return f, ()


class Stops:
    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration(42)


@program
def value_of_a_delegate():
    def f():
        def g():
            yield (yield from Stops())

        return list(g())

    return f, ()


@program
def misused_itertools():
    def f():
        found = []
        for call in (
            lambda: itertools.combinations("ab"),
            lambda: itertools.tee([], -1),
            lambda: itertools.permutations(),
        ):
            try:
                call()
            except (TypeError, ValueError) as error:
                found.append(str(error))
        return found

    return f, ()


class Color(enum.Enum):
    A = 1

    @classmethod
    def _missing_(cls, value):
        return noisy(cls.A) if value == 5 else None


class Pair(tuple, enum.Enum):
    A = (1, 2)


class Bits(enum.Flag):
    A = 1


class Word(enum.StrEnum):
    A = "x"


@program
def enums():
    def f():
        named = Pair.A == (1, 2), (1, 2) == Pair.A, Bits.A in Bits, Word.A in Word, Word["A"]
        return Color(1), Color(5), enum.Enum("Made", "a b").a.value, named

    return f, ()


@program
def enum_members_stay():
    def f():
        try:
            Color.A = 3
        except AttributeError as error:
            return str(error)

    return f, ()


class Bound:
    def method(self, *args):
        return args

    plain = functools.partialmethod(method, 1)
    static = functools.partialmethod(staticmethod(lambda *args: args), 2)


@program
def partial_methods():
    def f():
        return Bound().plain(3), Bound().static(3)

    return f, ()


@program
def fields_named_self():
    point = collections.namedtuple("Point", "self x")

    def f():
        return point(1, 2)._replace(self=3)

    return f, ()


@program
def too_much_memory():
    def f():
        try:
            return [0] * sys.maxsize
        except MemoryError as error:
            return type(error)

    return f, ()


class Abstract(abc.ABC):
    @abc.abstractmethod
    def method(self): ...


@program
def abstract_classes():
    def f():
        try:
            return Abstract()
        except TypeError as error:
            return str(error)

    return f, ()


@program
def deep_copies_of_slices():
    def f():
        part = slice(1, 2)
        return copy.deepcopy(part) is part, copy.deepcopy(part), copy.copy(part) is part

    return f, ()


@program
def what_errors_say():
    def f():
        found = []
        for owner in (3, [], Base()):
            try:
                owner.unknown
            except AttributeError as error:
                found.append((error.name, error.obj is owner, str(error)))
        error = ValueError()
        error.__notes__ = 3
        try:
            error.add_note("x")
        except TypeError as other:
            found.append(str(other))
        encoding = UnicodeEncodeError("utf8", "abc", 1, 2, "why")
        encoding.encoding, encoding.start = "other", 0
        return found, str(encoding)

    return f, ()


@program
def context_of_what_is_thrown_in():
    def f():
        def g():
            try:
                raise KeyError("a")
            except KeyError:
                yield

        made = g()
        next(made)
        try:
            made.throw(ValueError)
        except ValueError as error:
            return repr(error.__context__)

    return f, ()


@program
def iterators_made_outside():
    def f(*iterators):
        return [(next(i), list(i)) for i in iterators]

    return f, (itertools.islice([1, 2], 2), iter({1: 2}.items()), zip([1, 2]), itertools.chain([3], [4]))


class Blocked:
    __iadd__ = None
    __radd__ = None
    __eq__ = None

    def __add__(self, other):
        return 1


@program
def blocked_operators():
    def f():
        made, found = Blocked(), []
        for call in (
            lambda: made == 1,
            lambda: made != 1,
            lambda: 1 + made,
            lambda: operator.iadd(made, 1),
            lambda: made + 1,
        ):
            try:
                found.append(call())
            except TypeError as error:
                found.append(str(error))
        return found

    return f, ()


class Meta(type):
    def __lt__(cls, other):
        return cls.__name__ < other.__name__

    def __add__(cls, other):
        return other

    def __radd__(cls, other):
        return NotImplemented


@program
def operators_of_metaclasses():
    def f(a, b):
        try:
            return a < b, a + 1, a == b, a != b, 1 + a
        except TypeError as error:
            return a < b, a > b, a + 1, str(error)

    return f, (Meta("A", (), {}), Meta("B", (), {}))


@program
def factories_that_change():
    def f():
        made = collections.defaultdict(int)
        made.default_factory = list
        made["a"].append(1)
        return made

    return f, ()


@program
def kinds_of_merged_dicts():
    def f():
        plain, ordered, made = {"a": 1}, collections.OrderedDict(b=2), collections.defaultdict(int, c=3)
        merged = [one | other for one in (plain, ordered, made) for other in (plain, ordered, made)]
        return merged, [type(m) for m in merged], (plain | made).default_factory

    return f, ()


class Registered:
    def __init__(self, a):
        self.a = a


class Copied(Registered):
    def __deepcopy__(self, memo):
        return Copied(copy.deepcopy(self.a, memo))


@program
def deep_copies():
    def f(made, other):
        method = copy.deepcopy(other.method)
        shared = copy.deepcopy([made, made.a])
        memo = {}
        copy.deepcopy([[]], memo)
        return method.__self__ is other, shared[0].a is shared[1], type(shared[0]), len(memo) > 0

    return f, (Copied([1]), Bound())


@program
def copies_of_registered_classes():
    copyreg.pickle(Registered, lambda made: (Registered, (made.a + 1,)))

    def f(made):
        return copy.copy(made).a, copy.deepcopy(made).a

    return f, (Registered(1),)


class Converts:
    def __int__(self):
        return None

    __index__ = __float__ = __complex__ = __bool__ = __int__


@program
def conversions_that_return_something_else():
    def f(made):
        found = []
        for call in (int, float, complex, bool, operator.index, lambda v: [1][v], lambda v: 1 if v else 2):
            try:
                call(made)
            except TypeError as error:
                found.append(str(error))
        return found

    return f, (Converts(),)


class Properties:
    named = property()


Properties.unnamed = property()


@program
def properties_without_functions():
    def f():
        made, found = Properties(), []
        for name in ("named", "unnamed"):
            for call in (
                lambda name=name: getattr(made, name),
                lambda name=name: setattr(made, name, 1),
                lambda name=name: delattr(made, name),
            ):
                try:
                    call()
                except AttributeError as error:
                    found.append(str(error))
        return found

    return f, ()


@program
def found_by_identity():
    def f(values):
        found = []
        for make in (list, tuple, dict.fromkeys, set, frozenset, collections.deque):
            held = make(values)
            found.append([value in held for value in held])
            found.append(values[0] in held)
        return found, [values[0]] == [values[0]], [float("nan")] == [float("nan")]

    return f, ((float("nan"), 1, None),)


@program
def names_of_generators():
    def f():
        def g():
            yield 1

        made = g()
        made.__name__ = "other"
        return made.__name__

    return f, ()


@program
def bools_counted():
    def f(first):
        return [list(itertools.islice(itertools.count(first, step), 2)) for step in (1, 2, True, 0.5)]

    return f, (True,)


class Partial(functools.partial):
    pass


@program
def objects_that_have_no_dict_yet():
    """Partials of partials are made flat unless the inner one has a dict; what pickles an object tells of its dict."""

    def f(inner, error, thing):
        found = inner.func, getattr(inner, "missing", None), error.args, getattr(thing, "missing", 3)
        dynacheck.graph_break()
        outer = functools.partial(inner, b=2)
        return (
            found,
            outer.func,
            outer.keywords,
            error.__reduce__()[2:],
            inner.__reduce__()[2][3:],
            outer.args,
        )

    return f, (functools.partial(noisy, 1), ValueError("a"), Partial(noisy, 2))


@program
def names_of_renamed_generators():
    """A generator keeps the names that its function had when it was called."""

    def outside():
        yield 0

    outside.__name__ = "renamed"

    def f(given):
        def made():
            yield 1

        first, of_given = made(), given()
        made.__name__, made.__qualname__ = "other", "other.name"
        second = made()
        found = [(g.__name__, g.__qualname__) for g in (first, second, of_given)]
        found += [list(first), list(second), list(of_given)]
        return found, first.__name__, second.__qualname__, of_given.__name__, (n for n in ()).__name__

    return f, (outside,)


class Slotted:
    __slots__ = ("n",)


@program
def weak_references_to_what_has_none():
    def f(given, slotted):
        found = []
        for value in (given, slotted, Slotted(), [], (), {}, {1}, 3, "a", object(), Base(), Base, noisy, len):
            try:
                found.append(weakref.ref(value)() is value)
            except TypeError as error:
                found.append(str(error))
        return found

    return f, ([1], Slotted())


def outcome(fn: Any, args: Any) -> Any:
    try:
        return fn(*args)
    except Exception as error:
        if isinstance(error, dynacheck.errors.DynacheckError):
            raise
        return type(error), str(error)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, capsys):
    expected = outcome(*PROGRAMS[name]())
    printed = capsys.readouterr().out
    fn, args = PROGRAMS[name]()
    with dynacheck.observe() as report:
        found = outcome(dynacheck.compile(fn, backend="eager"), args)
    assert repr(found) == repr(expected)
    assert capsys.readouterr().out == printed
    assert report.cache_entries or report.graph_breaks
    assert not [s for s in report.skipped if s.reason == "DC201"], "the interpreter raised"


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize(
    "text",
    [
        "n ^ 3",
        "3 ^ n",
        "n ^ n",
        "n + 1j",
        "n == 1j",
        "~n",
        "n & 6",
        "n << 1",
        "n @ n",
        "'ab' * n",
        "divmod(n, 2)",
    ],
)
def test_operators_of_numbers_that_change(text, dynamic):
    """A number that changed is a symbol, which has fewer operators than ints."""
    program = eval(f"lambda x, n: (x + 1, {text})")
    compiled = dynacheck.compile(program, backend="eager", dynamic=dynamic)
    for n in (3, 4, 5, 2):
        assert repr(outcome(compiled, (torch.ones(2), n))) == repr(outcome(program, (torch.ones(2), n)))


def recursive(depth):
    return depth and recursive(depth - 1) + 1


def test_too_deep(seen):
    """Interpreting takes more of Python's stack than running."""
    depth = sys.getrecursionlimit() // 3
    assert dynacheck.compile(recursive, backend="eager")(depth) == depth
    assert "DC207" in {s.reason for s in seen.skipped}
