"""Programs that combine statements of the language with breaks (row 43): values, errors, changes and figures."""

import collections
import contextlib
import dataclasses
import enum
import functools
import io
import itertools
import re
import weakref

import torch
from parity.harness import registry

PROGRAMS, program = registry()
OUT = io.StringIO()


def xs(count=2):
    return [(torch.arange(3.0) + 1,) for _ in range(count)]


# -- ways that meet, iterators over breaks


@program("branches_that_meet", 43, graphs=4, breaks=3, entries=4)
def _():
    def f(x):
        if x.sum() > 0:
            y = x + 1
        else:
            y = x - 1
        print("c", file=OUT)
        return y * 2

    return f, [(torch.ones(3),), (-torch.ones(3),), (torch.ones(3),)]


@program("ways_that_meet", 43, graphs=3, breaks=3, recompiles=1, entries=4)
def _():
    def f(x, k):
        if k:
            print("a", file=OUT)
        y = x + 1
        print("c", file=OUT)
        return y * 2

    return f, [(torch.ones(3), 0), (torch.ones(3), 1), (torch.ones(3), 0)]


def left_early(name, make, **figures):
    @program(name, 43, **figures)
    def _():
        def f(x):
            for i in make():
                x = x + 1
                print(i, file=OUT)
                if i == 2:
                    return x * 5
            return x

        return f, xs()


left_early("print_in_a_loop_left_early", lambda: range(3), graphs=4, breaks=3, recompiles=2, entries=4)
left_early("print_in_a_loop_left_early_list", lambda: [1, 2], graphs=3, breaks=2, recompiles=1, entries=3)
left_early("print_in_a_loop_left_early_text", lambda: "ab", graphs=2, breaks=2, recompiles=1, entries=2)


@program("print_in_a_loop_left_early_in_a_with", 43, graphs=3, breaks=2, recompiles=1, entries=3)
def _():
    def f(x):
        with torch.no_grad():
            for i in [1, 2, 3]:
                x = x + i
                print(i, file=OUT)
                if i == 2:
                    return x
        return x

    return f, xs()


def over_a_break(name, make, **figures):
    @program(f"iterator_over_a_break{name}", 43, **{"graphs": 2, "breaks": 1, "entries": 2, **figures})
    def _():
        def f(x):
            items = make()
            next(items)
            y = x * 2
            print("here", file=OUT)
            for item in items:
                y = y + len(str(item)) * x
            return y, list(items)

        return f, xs()


over_a_break("", lambda: iter([1, 2, 3]))
over_a_break("_tuple", lambda: iter((10, 2, 3)))
over_a_break("_range", lambda: iter(range(9, 12)))
over_a_break("_text", lambda: iter("abc"))
over_a_break("_backwards", lambda: reversed([1, 2, 3]))
over_a_break("_zip", lambda: zip([1, 2], "ab"), graphs=1, breaks=2, entries=1)
over_a_break("_map", lambda: map(abs, [1, 2]), graphs=1, breaks=2, entries=1)


@program(
    "iterator_over_a_break_live",
    43,
    graphs=2,
    breaks=2,
    entries=3,
    torch_differs="what the list gets later is passed over",
)
def _():
    def f(x, kept):
        items = iter(kept)
        first = next(items)
        print("one", file=OUT)
        kept.append(x + first)
        y = x + next(items)
        print("two", file=OUT)
        return y * 2, [item * 2 for item in items], next(items, None)

    return f, [(torch.ones(3), [1, 2, 3]), (torch.ones(3), [1, 2, 3])]


@program("starred_call_over_a_break", 43, graphs=1, breaks=3, entries=4)
def _():
    def g(*args, **kwargs):
        print("g", len(args), file=OUT)
        return args[0] + len(args), kwargs

    def f(x):
        items = iter([1, 2, 3, 4])
        next(items)
        y, named = g(x, *items, *map(str, "ab"), z=1, **{"q": x})
        print("after", file=OUT)
        return y, list(items), sorted(named)

    return f, xs()


# -- cells, generators, matching


@program("cells_written_both_ways", 43, graphs=4, breaks=4, recompiles=2, entries=7)
def _():
    def f(x):
        n = 0

        def increased(y):
            nonlocal n
            n += 1
            print("n", n, file=OUT)
            n += 10
            return y * n

        y = increased(x)
        n += 100
        return y + increased(y), n

    return f, xs()


@program("cells_three_deep", 43, graphs=2, breaks=3, entries=5)
def _():
    def f(x):
        a = 1

        def outer():
            b = a + 1

            def inner(y):
                nonlocal a, b
                a += b
                print(a, b, file=OUT)
                b += a
                return y + b

            return inner(x), b

        y, b = outer()
        return y * a, b

    return f, xs()


@program("generator_in_a_with", 43, graphs=2, recompiles=1, entries=2)
def _():
    log = []

    @contextlib.contextmanager
    def scope():
        log.append("in")
        try:
            yield 5
        except ValueError as error:
            log.append(str(error))
        finally:
            log.append("out")

    def f(x):
        def parts():
            with scope() as n:
                for i in range(3):
                    yield x * (i + n)
                    if i == 1:
                        raise ValueError("inner")

        log.clear()
        with scope() as n, scope():
            x = x + n
            raise ValueError("swallowed")
        return list(parts()), list(log)

    return f, xs()


@dataclasses.dataclass
class Held:
    tensor: object
    kind: int


@dataclasses.dataclass
class HeldMore(Held):
    more: object = None


@program("match_of_a_dataclass", 43, graphs=1, entries=1)
def _():
    def picked(held):
        match held:
            case HeldMore(tensor=t, kind=k, more=None) if k > 5:
                return t * 100
            case Held(t, k) if t.shape[0] == 3 and (m := k + 1) < 5:
                return t * m
            case Held(kind=k):
                return torch.zeros(k)

    def f(x):
        return picked(Held(x, 2)), picked(HeldMore(x, 7)), picked(HeldMore(x, 6, "q")), picked(Held(x, 9))

    return f, xs()


@program("match_of_a_dataclass_by_data", 43, graphs=3, breaks=2, entries=3)
def _():
    def f(x):
        match Held(x, 2):
            case Held(tensor=t) if t.sum() > 100:
                y = t
            case Held(tensor=t, kind=2) if t.sum() > 1:
                y = t * 2
            case _:
                y = x
        return y + 1

    return f, xs()


@program("walrus_in_comprehensions", 43, graphs=1, breaks=1, entries=2)
def _():
    def f(x):
        kept = [last := i * 2 for i in range(4) if (odd := i % 2)]
        table = {(k := i): (v := x * i) for i in range(2)}
        return kept, last, odd, k, v, list(table)

    return f, xs()


@program("comparisons_with_effects", 43, graphs=2, breaks=1, entries=2)
def _():
    def f(x):
        log = []

        def noted(n):
            log.append(n)
            return n

        first = noted(1) < noted(3) < noted(2) < noted(9)
        second = noted(1) < noted(2) <= noted(2) != noted(5)
        third = noted(1) in [noted(1)] == [noted(1)]
        return x + len(log), log, first, second, third, 0 < x.sum() < 100

    return f, xs()


@program("formats_in_formats", 43, graphs=1, entries=1)
def _():
    def f(x):
        width, digits, v = 10, 3, 3.14159
        text = f"{v:{width}.{digits}f}|{'é'!a:>{width}}|{v!r:<{width + 2}}|{'ab':^{width}}|{x.shape[0]=}"
        more = f"{width:#0{digits + 3}x}|{{}}|{v:{'+' + '.1e'}}|{1_000_000:_}|{True:d}|{None!s:>6}|{[1, 'a']}"
        return x + 1, text, more

    return f, xs()


# -- classes


@program("super_in_comprehensions", 43, graphs=1, entries=1)
def _():
    class Base:
        def go(self, i):
            return i + 1

    class Derived(Base):
        def go(self, i):
            above = super()
            return [above.go(j) for j in range(i)]

        def all(self, x):
            return {i: self.go(i) for i in range(3)}, x * super().go(1), [__class__.__name__ for _ in "ab"]

    def f(x):
        return Derived().all(x)

    return f, xs()


@dataclasses.dataclass(slots=True)
class Slotted:
    tensor: object
    n: int = 3
    tags: list = dataclasses.field(default_factory=list, compare=False)

    def __post_init__(self):
        self.n += 1


@dataclasses.dataclass(slots=True, frozen=True)
class Fixed:
    tensor: object
    n: int = 3


@program("dataclasses_with_slots", 43, graphs=1, entries=1)
def _():
    def f(x):
        one, fixed, errors = Slotted(x), Fixed(x), []
        one.tags.append(1)
        other, moved = dataclasses.replace(one, n=10), dataclasses.replace(fixed, n=4)
        try:
            fixed.n = 5
        except dataclasses.FrozenInstanceError as error:
            errors.append(str(error))
        try:
            one.q = 5
        except AttributeError as error:
            errors.append(str(error))
        return (
            *(one.n, other.n, other.tags is one.tags, other.tensor + 1, moved.n, errors),
            *(hasattr(one, "__dict__"), Slotted(1) == Slotted(1)),
        )

    return f, xs()


class Rights(enum.Flag):
    R = 4
    W = 2
    X = 1
    RW = R | W


class Modes(enum.IntFlag):
    A = 1
    B = 2
    C = 8


@program("flags_computed", 43, graphs=1, entries=1)
def _():
    def f(x):
        p = Rights.R | Rights.X
        return (
            *(
                x + 1,
                p,
                ~p,
                p ^ Rights.X,
                p & Rights.RW,
                Rights.R in p,
                Rights.RW in p,
                list(p),
                p.name,
                p.value,
            ),
            *(bool(Rights(0)), Rights(7), len(Rights.RW), [r.name for r in Rights.RW]),
            *(Modes.A | 4, ~Modes.A, Modes(3) == 3, Modes.A + 1, (Modes.A | Modes.B).name, repr(Modes(12))),
        )

    return f, xs()


class Kept:
    """A descriptor that knows its name."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.name, None)

    def __set__(self, instance, value):
        setattr(instance, self.name, (value, "set"))

    def __delete__(self, instance):
        delattr(instance, self.name)


class Keeper:
    a = Kept()
    b = Kept()


@program("descriptors_with_names", 43, graphs=1, entries=1)
def _():
    keeper = Keeper()

    def f(x):
        keeper.a = x
        keeper.b = keeper.a[0] + 1
        del keeper.a
        made = Keeper()
        made.a = 3
        gone, kept = keeper.a, keeper.b[0]
        del keeper.b
        return kept, gone, Keeper.a.name, made.a

    return f, xs()


class Counting(type):
    made = 0

    def __call__(cls, *args, **kwargs):
        Counting.made += 1
        found = super().__call__(*args, **kwargs)
        found.number = Counting.made
        return found


class Counted(metaclass=Counting):
    def __init__(self, tensor):
        self.tensor = tensor


@program("class_with_a_calling_metaclass", 43, graphs=0, breaks=5, recompiles=3, entries=4)
def _():
    def f(x):
        one, other = Counted(x), Counted(x + 1)
        return one.tensor + other.tensor, one.number, other.number, Counting.made

    return f, xs()


class Adding:
    k = 2

    def add(self, a, b=1, *, c=0):
        return self.k + a + b + c


@program("partials_of_methods", 43, graphs=1, breaks=1, entries=2)
def _():
    adding = Adding()
    made = functools.partial(adding.add, 1, c=5)

    def f(x):
        one = functools.partial(adding.add, x, c=2)
        other = functools.partial(one, b=7)
        print("b", file=OUT)
        return one(), other(c=1), made(b=3), other.keywords, other.args[0] is x, made.func.__self__ is adding

    return f, xs()


NUMBERED = re.compile(r"(?P<name>\w+)-(?P<number>\d+)(?:x(?P<option>z))?")


@program("groups_of_a_pattern", 43, graphs=1, entries=1)
def _():
    def f(x):
        found = NUMBERED.match("ab-12")
        return x * int(found["number"]), found.group("name", "option"), found.span("number"), found.lastindex

    return f, xs()


@program("aliases_written", 43, graphs=2, recompiles=1, entries=2)
def _():
    shared = [1]
    table = {"kept": shared}

    def f(x, items, holder):
        items.append(x + 1)
        holder.tensor = items
        table["kept"].append(len(shared))
        holder.kind = table
        return items is shared, holder.tensor is table["kept"], len(shared)

    return f, [(torch.ones(3), shared, Held(shared, 0)), (torch.ones(3), shared, Held(None, 0))]


# -- what is raised


def low():
    return {}["k"]


@program("errors_chained_by_handlers", 43, graphs=0, breaks=1, entries=0)
def _():
    def f(x):
        y = x + 1
        try:
            low()
        except KeyError as error:
            try:
                raise ValueError(y.shape[0]) from error
            except ValueError:
                raise TypeError("t")  # noqa: B904
            finally:
                y = y + 1

    return f, xs()


@program("error_through_with_and_finally", 43, graphs=0, breaks=1, entries=0)
def _():
    def f(x):
        try:
            with contextlib.nullcontext():
                x = x + 1
                raise ValueError(x.shape[0])
        finally:
            x = x * 2

    return f, xs()


@program("weak_containers", 43, graphs=1, entries=1)
def _():
    kept = Held(3, 4)
    by_name, by_key = weakref.WeakValueDictionary(a=kept), weakref.WeakKeyDictionary()

    def f(x):
        return x + len(by_name), len(by_key)

    return f, xs()


@program("groups_over_a_break", 43, graphs=1, breaks=5, entries=5)
def _():
    def f(x):
        groups = itertools.groupby([1, 2, 3, 4], lambda n: n > 2)
        key, group = next(groups)
        print("here", file=OUT)
        return x * next(group), key, list(group)

    return f, xs()


@program("counter_and_default_dict_over_a_break", 43, graphs=1, breaks=1, entries=2)
def _():
    def f(x):
        counter, table = collections.Counter("aab"), collections.defaultdict(list)
        table["k"].append(x)
        print(len(counter), file=OUT)
        counter.update("bc")
        table["z"].append(x + 1)
        return dict(counter), table["k"][0] * 2, list(table)

    return f, xs()
