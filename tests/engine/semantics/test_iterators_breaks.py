"""Iterators that outlive a break or the frame: the same type, the same place, the same container under them."""

import contextlib
import copy
import io
import itertools

import dynacheck
import pytest
import torch
from engine.semantics.container_harness import names

MAKERS = {
    "keys": "iter(d)",
    "values": "iter(d.values())",
    "items": "iter(d.items())",
    "reversed keys": "reversed(d)",
    "reversed values": "reversed(d.values())",
    "reversed items": "reversed(d.items())",
    "set": "iter(s)",
    "deque": "iter(q)",
    "reversed deque": "reversed(q)",
    "list": "iter(a)",
    "reversed list": "reversed(a)",
    "tuple": "iter((1, 2, 3))",
    "string": "iter('abc')",
    "range": "iter(range(3))",
    "product": "itertools.product(a, (1, 2), repeat=2)",
    "permutations": "itertools.permutations(a)",
    "combinations": "itertools.combinations([1, 2, 3], 2)",
}
BEFORE = {"as it is": "pass", "grown": "d['z'] = 1\n    s.add(77)\n    q.append(8)\n    a.append(9)"}
AFTER = {"as it is": "pass", "grown": "d['y'] = 1\n    s.add(78)\n    q.append(9)\n    a.append(1)"}


@pytest.mark.parametrize("taken", [0, 1, 9])
@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", MAKERS)
def test_across_a_break(name, before, after, taken):
    text = (
        f"def program(x, d, s, q, a):\n    y = x + 1\n    {BEFORE[before]}\n    it = {MAKERS[name]}\n    held = [it]\n"
        f"    for _ in range({taken}):\n        next(it, None)\n    print('p')\n    {AFTER[after]}\n    try:\n"
        "        rest = list(it)\n    except RuntimeError as error:\n        rest = str(error)\n"
        "    return y * 2, rest, type(it).__name__, held[0] is it\n"
    )

    def results(compiled):
        scope = names()
        exec(text, scope)
        fn = dynacheck.compile(scope["program"], backend="eager") if compiled else scope["program"]
        deque = scope["collections"].deque
        with contextlib.redirect_stdout(io.StringIO()):
            return [fn(torch.ones(2), {"a": 1, "b": 2}, {5, 6}, deque([1, 2]), [3, 4])[1:] for _ in range(2)]

    dynacheck.reset()
    assert results(True) == results(False)


TEES = {
    "not begun": "a, b = itertools.tee(iter([1, 2, 3]))",
    "one is ahead": "a, b = itertools.tee(iter([1, 2, 3]))\n    next(a), next(a)",
    "one is ahead and gone": "a, b = itertools.tee(iter([1, 2, 3]))\n    next(a)\n    a = None",
    "of a tee": "a, c = itertools.tee([1, 2, 3])\n    next(a)\n    a, b, d = itertools.tee(a, 3)\n    next(c)",
    "copied": "a, c = itertools.tee([1, 2, 3])\n    next(a)\n    b = copy.copy(a)",
    "at the end": "a, b = itertools.tee([1])\n    list(a)",
    "a group": "(key, b), a = next(itertools.groupby([1, 1, 2])), None",
}


@pytest.mark.parametrize("name", TEES)
def test_iterators_that_share_what_they_draw(name):
    text = (
        f"def program(x):\n    y = x + 1\n    {TEES[name]}\n    print('p')\n"
        "    return y * 2, type(b).__name__, next(b, 0), a and list(a), list(b)\n"
    )
    scope = {"itertools": itertools, "copy": copy}
    exec(text, scope)
    dynacheck.reset()
    with contextlib.redirect_stdout(io.StringIO()), dynacheck.observe() as report:
        found = [dynacheck.compile(scope["program"], backend="eager")(torch.ones(2))[1:] for _ in range(2)]
        assert found == [scope["program"](torch.ones(2))[1:]] * 2
    assert report.graph_breaks


class Failing:
    """Numbers; every third time it raises instead."""

    def __init__(self):
        self.asked = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.asked += 1
        if self.asked % 3 == 2:
            raise ValueError(self.asked)
        if self.asked > 8:
            raise StopIteration
        return self.asked


def add(a, b):
    if b == 3:
        raise ValueError("three")
    return a + b


def not_six(number):
    if number == 3:
        raise ValueError("three")
    return number != 6


RAISING = {
    "accumulate": lambda: itertools.accumulate(Failing()),
    "accumulate with a function": lambda: itertools.accumulate([1, 2, 3, 4], add, initial=10),
    "chain": lambda: itertools.chain(Failing(), [1]),
    "chain of no iterable": lambda: itertools.chain([1], 5, [2]),
    "chain from iterable": lambda: itertools.chain.from_iterable([[1], 5, [2]]),
    "compress": lambda: itertools.compress([1, 2, 3, 4], Failing()),
    "cycle": lambda: itertools.cycle(Failing()),
    "dropwhile": lambda: itertools.dropwhile(not_six, [6, 1, 3, 6, 2, 3]),
    "enumerate": lambda: enumerate(Failing(), 3),
    "filter": lambda: filter(not_six, [1, 3, 2]),
    "filterfalse": lambda: itertools.filterfalse(not_six, [6, 3, 6, 2]),
    "groupby": lambda: itertools.groupby(Failing(), key=not_six),
    "islice": lambda: itertools.islice(Failing(), 1, 6, 2),
    "map": lambda: map(add, [1, 2, 3], [2, 3, 4]),
    "pairwise": lambda: itertools.pairwise(Failing()),
    "starmap": lambda: itertools.starmap(add, [(1, 2), (1, 3), 5, (2, 2)]),
    "takewhile": lambda: itertools.takewhile(not_six, [1, 2, 3, 4, 6, 7]),
    "tee": lambda: itertools.tee(Failing())[1],
    "zip": lambda: zip(Failing(), Failing()),
    "zip_longest": lambda: itertools.zip_longest(Failing(), [1], fillvalue=7),
}


@pytest.mark.parametrize("name", RAISING)
def test_asked_again_after_an_exception(name):
    make = RAISING[name]

    def program(x):
        it = make()
        seen = []
        for _ in range(9):
            try:
                item = next(it)
                seen.append((item[0], list(item[1])) if type(it) is itertools.groupby else item)
            except StopIteration:
                seen.append("end")
            except (ValueError, TypeError) as error:
                seen.append((type(error), str(error)))
        return x + 1, seen

    dynacheck.reset()
    with dynacheck.observe() as report:
        assert dynacheck.compile(program, backend="eager")(torch.ones(2))[1] == program(torch.ones(2))[1]
    assert report.cache_entries and not report.graph_breaks


class NoIndex:
    def __index__(self):
        raise KeyError("none")


@pytest.mark.parametrize(
    "bounds",
    [(), (-1,), (-2,), ("a",), (None,), (1, -1), (1, "a"), (1, 5, 0), (1, 5, None), (2.0,), (True,), (NoIndex(),), (1, 2, 3, 4)],
    ids=range(13),
)  # fmt: skip
def test_bounds_of_islice(bounds):
    def program(x):
        try:
            return x + 1, list(itertools.islice([1, 2, 3, 4], *bounds))
        except (ValueError, TypeError) as error:
            return x + 1, type(error), str(error)

    dynacheck.reset()
    with dynacheck.observe() as report:
        assert dynacheck.compile(program, backend="eager")(torch.ones(2))[1:] == program(torch.ones(2))[1:]
    assert report.cache_entries and not report.graph_breaks
