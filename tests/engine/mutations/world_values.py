"""A function whose call reads arguments, globals, closures, defaults, classes and containers."""

import collections
import enum
import functools
import types
from dataclasses import dataclass, field

import torch

SCALE = 2.0
COUNT = 3
NAME = "double"
TABLE = {"k": 1.5, "unused": 3, 7: "seven"}
ITEMS = [1, 2.5, "s", None]
PAIR = (1, [2, 3])
CHOSEN = {"double", "half"}
FROZEN = frozenset({1, 2})
QUEUE = collections.deque([1, 2])
ORDERED = collections.OrderedDict(a=1, b=2)
COUNTS = collections.defaultdict(int, a=2)
PLACE = types.SimpleNamespace(x=1, y=2.0)
WEIGHT = torch.full((3,), 2.0)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


COLOR = Color.RED


class Base:
    shared = 3

    def __init__(self):
        self.value = 1.5
        self.items = [1, 2]

    def twice(self, x):
        return x * 2 + self.value

    @staticmethod
    def fixed(x):
        return x + 0.5

    @classmethod
    def of(cls, x):
        return x * cls.shared

    def __len__(self):
        return 2

    def __contains__(self, item):
        return item in self.items


class Child(Base):
    own = "child"

    def twice(self, x):
        return super().twice(x) + 1


@dataclass
class Options:
    rate: float = 0.1
    sizes: list = field(default_factory=lambda: [1, 2])
    name: str = "options"


class Slotted:
    __slots__ = ("gain", "table")

    def __init__(self):
        self.gain = 2.0
        self.table = {"a": torch.ones(3)}


CHILD = Child()
OPTIONS = Options()


def shift(x, by=1, *, sign=1.0, many=(1, 2)):
    return x + by * sign + len(many)


def closed():
    bias, table, count = torch.ones(3), {"a": 1}, 2

    def inner(x):
        return x + bias * count + table["a"]

    def outer(x):
        return inner(x) * count

    return outer


CLOSED = closed()
PARTIAL = functools.partial(shift, by=2, sign=-1.0)


def containers(x):
    for key, value in TABLE.items():
        if key == "k":
            x = x * value
    if NAME in CHOSEN and COUNT > 2 and 1 in FROZEN:
        x = x + len(QUEUE) + QUEUE[0]
    x = x + ITEMS[0] + ITEMS[1] if ITEMS[3] is None else x
    for key in ORDERED:
        x = x + ORDERED[key] if key == "a" else x * 2
    return x + COUNTS["a"] + PAIR[1][0] + PLACE.x * PLACE.y


def objects(x, obj, slotted):
    x = obj.twice(x) + Child.fixed(x) + obj.of(x) + len(obj)
    if 2 in obj and obj.own == "child":
        x = x * CHILD.value
    x = x * OPTIONS.rate + OPTIONS.sizes[0]
    if isinstance(obj, Base) and COLOR is Color.RED:
        x = x + Base.shared
    return x * slotted.gain + slotted.table["a"]


def step(x, obj, slotted, values, mapping, flag=True, text="text"):
    x = containers(x * SCALE) + WEIGHT
    x = objects(x, obj, slotted)
    x = CLOSED(shift(x)) + PARTIAL(x)
    if flag and text.startswith("t"):
        x = x + values[0] + mapping["a"] * mapping["n"]
    return x.sum(), x


def make():
    """What is called and its arguments."""
    mapping = {"a": torch.ones(3), "n": 3, "f": 0.5}
    return step, [torch.arange(3.0), Child(), Slotted(), [torch.ones(3), torch.ones(3)], mapping]
