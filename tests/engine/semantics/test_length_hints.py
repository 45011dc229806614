"""What makes a list or tuple of an iterable asks it how long it may be, as CPython does: `__len__`, then `__length_hint__`."""

from typing import Any

import dynacheck
import pytest
import torch

LOG: list[Any] = []


class Items:
    def __iter__(self):
        LOG.append("iter")
        return iter([2, 1])


class Sized(Items):
    def __len__(self):
        LOG.append("len")
        return 2


class Hinting(Items):
    def __length_hint__(self):
        LOG.append("hint")
        return 5


class NoHint(Items):
    def __length_hint__(self):
        LOG.append("hint")
        return NotImplemented


class WrongLength(Hinting):
    def __len__(self):
        LOG.append("len")
        raise TypeError("not now")


class LengthOfText(Hinting):
    def __len__(self):
        return "2"


class Failing(Hinting):
    def __len__(self):
        raise KeyError("no length")


class Negative(Items):
    def __length_hint__(self):
        return -1


class HintOfText(Items):
    def __length_hint__(self):
        return "2"


class HintFails(Items):
    def __length_hint__(self):
        raise TypeError("not now")


class SizedList(list):
    def __len__(self):
        LOG.append("len")
        return 9


class SizedDict(dict):
    def __len__(self):
        LOG.append("len")
        return 9


class SizedSet(set):
    def __len__(self):
        LOG.append("len")
        return 9


class Drawn(Sized):
    """An iterator with a length."""

    def __init__(self):
        self.left = 3

    def __iter__(self):
        LOG.append("iter")
        return self

    def __next__(self):
        self.left -= 1
        if self.left <= 0:
            raise StopIteration
        return self.left


MADE = (
    Sized, Hinting, NoHint, WrongLength, LengthOfText, Failing, Negative, HintOfText, HintFails, Drawn,
    lambda: SizedList([2, 1]), lambda: SizedDict({2: "a", 1: "b"}), lambda: SizedSet({2, 1}),
)  # fmt: skip
NAMES = [getattr(made, "__name__", "") for made in MADE[:-3]] + ["SizedList", "SizedDict", "SizedSet"]


def listed(v):
    return list(v)


def extended(v):
    found = [0]
    found.extend(v)
    found += v
    return found


def assigned(v):
    found = [0, 9]
    found[1:] = v
    return found


def rest(v):
    first, *others = v
    return first, others


def several(*v):
    return v


USES = {
    "list": listed,
    "tuple": lambda v: tuple(v),
    "sorted": lambda v: sorted(v),
    "call": lambda v: several(*v),
    "call_of_several": lambda v: several(0, *v),
    "display": lambda v: [0, *v],
    "tuple_display": lambda v: (0, *v),
    "extended": extended,
    "assigned": assigned,
    "rest": rest,
    "set": lambda v: set(v),
    "sum": lambda v: sum(v),
    "zip": lambda v: list(zip(v, "ab")),
    "loop": lambda v: [i for i in v],
}


def outcome(fn, made):
    LOG.clear()
    try:
        found = fn(torch.ones(1), made())[1:]
    except (TypeError, ValueError, KeyError) as error:
        found = type(error), str(error)
    return found, list(LOG)


@pytest.mark.parametrize("use", USES)
def test_as_plain_python(use):
    do = USES[use]

    def program(x, v):
        return x + 1, do(v)

    for name, made in zip(NAMES, MADE):
        dynacheck.reset()
        with dynacheck.observe() as report:
            compiled = dynacheck.compile(program, backend="eager")
            assert [outcome(compiled, made) for _ in range(2)] == [outcome(program, made)] * 2, name
        assert report.graphs or name in ("Failing", "Negative", "HintOfText"), name
