"""Objects and classes made before a break and used behind it; breaks in methods, properties and descriptors."""

import dataclasses
import enum
import functools


class Base:
    def __init__(self, n):
        self.n = n

    def value(self):
        return self.n

    def __repr__(self):
        return f"Base({self.n})"


class Derived(Base):
    def __init__(self, n):
        super().__init__(n + 1)

    def value(self):
        return super().value() * 2


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(frozen=True)
class Config:
    size: int = 3
    name: str = "a"


@program
def made_before(x):
    made = Derived(BREAK(1))
    y = BREAK(x + made.value())
    made.n = 7
    return y + made.value()


@program
def class_made_before(x):
    class Made(Base):
        def value(self):
            return BREAK(super().value() + 1)

    made = Made(2)
    y = BREAK(x)
    return y + made.value()


@program
def method_breaks(x):
    class Made:
        def __init__(self, n):
            self.n = BREAK(n)

        def apply(self, v):
            self.n += 1
            return BREAK(v + self.n)

    made = Made(1)
    return made.apply(made.apply(x)), made.n


@program
def property_breaks(x):
    class Made:
        @property
        def size(self):
            return BREAK(3)

        @size.setter
        def size(self, n):
            self.kept = BREAK(n)

    made = Made()
    made.size = 4
    return x + made.size + made.kept


@program
def descriptor_breaks(x):
    class Field:
        def __get__(self, owner, kind):
            return BREAK(2)

        def __set__(self, owner, n):
            owner.kept = BREAK(n)

    class Made:
        field = Field()

    made = Made()
    made.field = 5
    return x + made.field + made.kept


@program
def getattr_breaks(x):
    class Made:
        def __getattr__(self, name):
            return BREAK(len(name))

    return x + Made().abc


@program
def call_breaks(x):
    class Made:
        def __call__(self, v, *, k=1):
            return BREAK(v + k)

    made = Made()
    return made(made(x), k=2)


@program
def operators_break(x):
    class Made:
        def __init__(self, n):
            self.n = n

        def __add__(self, other):
            return Made(BREAK(self.n + other.n))

        def __eq__(self, other):
            return BREAK(self.n == other.n)

        def __getitem__(self, key):
            return BREAK(self.n + key)

        def __len__(self):
            return BREAK(self.n)

        def __contains__(self, n):
            return BREAK(n == self.n)

        def __bool__(self):
            return BREAK(self.n > 0)

        __hash__ = None

    made = Made(1) + Made(2)
    if made == Made(3):
        x = x + made[1]
    if 3 in made:
        x = x * len(made)
    return x - 1 if made else x


@program
def static_and_class_methods(x):
    class Made:
        n = 2

        @staticmethod
        def double(v):
            return BREAK(v * 2)

        @classmethod
        def add(cls, v):
            return BREAK(v + cls.n)

    return Made.double(Made.add(x)) + Made().add(x)


@program
def bound_method_over_a_break(x):
    value = Derived(2).value
    y = BREAK(x)
    return y + value()


@program
def super_over_a_break(x):
    class Made(Derived):
        def value(self):
            parent = super()
            BREAK()
            return parent.value() + 1

    return x + Made(1).value()


@program
def enums(x):
    color = BREAK(Color.RED)
    if color is Color.RED:
        x = x + color.value
    return x, BREAK(color.name), Color(BREAK(2))


@program
def dataclass_replaced(x):
    config = Config(BREAK(2))
    other = dataclasses.replace(config, name="b")
    y = BREAK(x + other.size)
    return y, other == Config(2, "b")


@program
def frozen_written(x):
    config = Config(BREAK(2))
    config.size = 5
    return x


@program
def partials(x):
    add = functools.partial(lambda a, b, c=1: a + b + c, 2)
    y = add(BREAK(x))
    BREAK()
    return add(y, c=3)


@program
def slots(x):
    class Made:
        __slots__ = ("a", "b")

    made = Made()
    made.a = BREAK(x)
    BREAK()
    made.b = made.a + 1
    return made.b


@program
def slot_missing(x):
    class Made:
        __slots__ = ("a", "b")

    made = Made()
    made.a = BREAK(x)
    return made.b


@program
def new_and_init(x):
    class Made:
        def __new__(cls, n):
            made = super().__new__(cls)
            made.first = BREAK(n)
            return made

        def __init__(self, n):
            self.second = BREAK(n + 1)

    made = Made(2)
    return x + made.first + made.second


@program
def metaclass(x):
    class Meta(type):
        def __call__(cls, *args):
            made = super().__call__(*args)
            made.tag = BREAK(4)
            return made

    class Made(metaclass=Meta):
        pass

    return BREAK(x) + Made().tag


@program
def identity_kept(x):
    made = Base(1)
    items = [made, made]
    table = {"a": made}
    BREAK()
    return x, items[0] is items[1], table["a"] is made, BREAK(items)[0] is made


@program
def iterated_object(x):
    class Made:
        def __iter__(self):
            return iter([BREAK(1), 2])

    y = x
    for n in Made():
        y = y + n
    return y + sum(Made())


@program
def deleted_attribute(x):
    made = Base(1)
    made.other = 2
    del made.n
    y = BREAK(x + made.other)
    return y + made.n


@program
def list_subclass(x):
    class Items(list):
        def append(self, n):
            super().append(BREAK(n * 2))

    items = Items([1])
    items.append(3)
    BREAK()
    return x + sum(items), len(items)


@program
def dict_subclass(x):
    class Table(dict):
        def __missing__(self, key):
            return BREAK(len(key))

    table = Table(a=1)
    return x + table["abc"] + table["a"]


@program
def cached(x):
    class Made:
        @functools.cached_property
        def size(self):
            return 3

    made = Made()
    y = BREAK(x + made.size)
    return y + made.size + BREAK(len(vars(made)))
