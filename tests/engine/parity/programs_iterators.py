"""Iterators over a break and out of a frame (row 43): carried, made again, or the frame is given up."""

import collections
import io
import itertools

import torch
from parity.harness import registry

PROGRAMS, program = registry()
OUT = io.StringIO()
GIVEN_UP = {"graphs": 0, "breaks": 1, "entries": 0}
MODULES = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.ReLU()])


class Holder:
    pass


SHARED = Holder()


def numbers():
    yield 1
    yield 2


def xs(count=2):
    return [(torch.ones(3),) for _ in range(count)]


def over(name, make, take=next, **figures):
    """An iterator, or what holds one, from which is taken before and behind a break."""

    @program(f"iterator_carried_{name}", 43, **{"graphs": 2, "breaks": 1, "entries": 2, **figures})
    def _():
        def f(x):
            held = make()
            y = x + take(held)
            print("here", file=OUT)
            return y * take(held)

        return f, xs()


def put(owner):
    owner.items = iter([1, 2])
    return owner


over("in_a_list", lambda: [iter([1, 2, 3])], lambda held: next(held[0]))
over("in_a_tuple", lambda: (5, iter("abc")), lambda held: len(next(held[1])))
over("in_a_dict", lambda: {"a": iter((1, 2, 3))}, lambda held: next(held["a"]))
over("in_an_object", lambda: put(Holder()), lambda held: next(held.items))
over("in_a_global_object", lambda: put(SHARED), lambda held: next(held.items))
over("in_a_nest", lambda: [{"a": (reversed([1, 2]),)}], lambda held: next(held[0]["a"][0]))
over("count", itertools.count)
over("count_of_floats", lambda: [itertools.count(2.5, 2)], lambda held: next(held[0]))
over("children", lambda: enumerate(MODULES), lambda held: next(held)[0])
over("deque", lambda: iter(collections.deque([1, 2, 3])))
over("product", lambda: itertools.product([1, 2], [3]), lambda held: next(held)[0])
over("dict", lambda: iter({1: 2, 3: 4}), **GIVEN_UP)
over("dict_items", lambda: iter({1: 2, 3: 4}.items()), lambda held: next(held)[0], **GIVEN_UP)
over("children_alone", lambda: iter(MODULES), lambda held: next(held).training, **GIVEN_UP)


@program("iterator_carried_enumerate", 43, **GIVEN_UP)
def _():
    def f(x):
        items = enumerate([1, 2])
        y = x + next(items)[1]
        print("here", file=OUT)
        return y * next(items)[1]

    return f, xs()


@program("iterator_carried_chain", 43, **GIVEN_UP)
def _():
    def f(x):
        items = itertools.chain([1], [2])
        print("here", file=OUT)
        return x * next(items)

    return f, xs()


@program("iterator_carried_generator", 43, **GIVEN_UP)
def _():
    def f(x):
        items = (i for i in [1, 2])
        print("here", file=OUT)
        return x * next(items)

    return f, xs()


@program("iterator_carried_in_a_cell", 43, graphs=2, breaks=1, entries=2)
def _():
    def f(x):
        items = iter([1, 2, 3])

        def take():
            return next(items)

        y = x + take()
        print("here", file=OUT)
        return y * take()

    return f, xs()


@program("iterator_carried_by_an_argument", 43, graphs=2, breaks=1, entries=2)
def _():
    def f(x, held):
        held.append(iter([1, 2, 3]))
        y = x + next(held[0])
        print("here", file=OUT)
        return y * next(held[0])

    return f, [(torch.ones(3), []), (torch.ones(3), [])]


@program("iterator_carried_into_a_callee", 43, graphs=3, breaks=1, entries=4)
def _():
    def inner(x, items):
        y = x + next(items)
        print("here", file=OUT)
        return y + next(items)

    def f(x):
        items = iter([1, 2, 3])
        return inner(x, items) * next(items)

    return f, xs()


def left(name, make, **figures):
    """An iterator that the frame returns."""

    @program(f"iterator_returned_{name}", 43, **{"graphs": 1, "breaks": 0, "entries": 1, **figures})
    def _():
        def f(x):
            return x + 1, make()

        return f, xs()


left("count", lambda: itertools.count(3))
left("zip", lambda: zip([5, 6], [7, 8]))
left("reversed_dict", lambda: reversed({1: 2}))
left("generator_without_a_loop", numbers)
left("set", lambda: iter({1}), **GIVEN_UP)


@program("iterator_returned_generator", 43, **GIVEN_UP)
def _():
    def f(x):
        return x + 1, (i for i in [1, 2])

    return f, xs()


@program("iterator_returned_enumerate", 43, **GIVEN_UP)
def _():
    def f(x):
        return x + 1, enumerate([5, 6])

    return f, xs()


@program("iterator_stored_islice", 43, **GIVEN_UP)
def _():
    def f(x):
        SHARED.items = itertools.islice([5, 6], 1)
        return x + 1

    return f, xs()


def given(name, make, **figures):
    """An iterator that existed before, from which is taken."""

    @program(f"iterator_given_{name}", 43, **figures)
    def _():
        def f(x, items):
            return x + next(items)

        items = make()
        return f, [(torch.ones(3), items)] * 3


given("over_a_tuple", lambda: iter((1, 2, 3)), graphs=3, recompiles=2, entries=3)
given("over_a_range", lambda: iter(range(3)), graphs=3, recompiles=2, entries=3)
given("counting", lambda: itertools.count(2), graphs=3, recompiles=2, entries=3)
given("over_a_list", lambda: iter([1, 2, 3]), graphs=2, breaks=1, recompiles=1, entries=3)


@program("iterator_class_counting", 43, graphs=3, recompiles=2, entries=3)
def _():
    class Numbered:
        numbers = itertools.count()

        def __init__(self):
            self.number = next(Numbered.numbers)

    def f(x):
        return x + 1, Numbered().number

    return f, xs(3)
