"""Matching, and objects with special methods."""

# ruff: noqa: F811, F821, E711, E712, E741, F541, F601, F632, F633, F842, UP028
# mypy: ignore-errors

from __future__ import annotations

from opcode_programs import program

# -- match


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x = x
        self.y = y


def describe(value):
    match value:
        case 0 | 1:
            return "small"
        case int(n) if n > 100:
            return ("big", n)
        case int():
            return "int"
        case str("a" | "b" as s):
            return ("ab", s)
        case []:
            return "empty"
        case [x]:
            return ("one", x)
        case [1, *rest]:
            return ("starts with 1", rest)
        case [first, *middle, last]:
            return (first, middle, last)
        case {"kind": "k", "v": v, **rest}:
            return ("kind", v, rest)
        case {"a": 1}:
            return "a is 1"
        case {}:
            return "mapping"
        case Point(0, y):
            return ("on y", y)
        case Point(x=x, y=y):
            return ("point", x, y)
        case None:
            return "none"
        case (int() | float()) as number:
            return ("number", number)
        case _:
            return "other"


@program
def matches():
    values = (
        0, 500, 7, "a", "z", [], [5], [1, 2, 3], (4, 5, 6), {"kind": "k", "v": 2, "w": 3}, {"a": 1}, {"q": 0},
        Point(0, 3), Point(2, 3), None, 1.5, b"x", {1, 2}, "abc",
    )  # fmt: skip
    return [describe(v) for v in values]


@program
def match_too_many_positional():
    match Point(1, 2):
        case Point(1, 2, 3):
            return 1


@program
def match_not_a_class():
    x = 3
    match x:
        case describe():
            return 1


@program
def match_repeated_attribute():
    match Point(1, 2):
        case Point(1, x=1):
            return 1


@program
def match_builtin_itself():
    match [1, 2]:
        case list(xs):
            return xs


@program
def match_builtin_too_many():
    match 5:
        case int(a, b):
            return a


# -- user classes with special methods


class Number:
    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        return ("add", self.v, other) if isinstance(other, int) else NotImplemented

    def __radd__(self, other):
        return ("radd", other, self.v)

    def __iadd__(self, other):
        self.v += other
        return self

    def __neg__(self):
        return -self.v

    def __eq__(self, other):
        return isinstance(other, Number) and self.v == other.v

    def __lt__(self, other):
        return self.v < other.v

    def __bool__(self):
        return self.v != 0

    def __index__(self):
        return self.v

    def __len__(self):
        return 7

    def __getitem__(self, key):
        return (self.v, key)

    def __setitem__(self, key, value):
        self.v = (key, value)

    def __contains__(self, item):
        return item == self.v

    def __call__(self, *args, **kwargs):
        return args, kwargs

    def __format__(self, spec):
        return f"N<{spec}>"

    __hash__ = None


class Special(Number):
    def __radd__(self, other):
        return "special"


class OldSequence:
    def __getitem__(self, i):
        if i > 2:
            raise IndexError
        return i * 10


class Counting:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if not self.n:
            raise StopIteration
        self.n -= 1
        return self.n


@program
def special_methods():
    a, b = Number(2), Number(3)
    c = a
    c += 5
    out = [
        a + 1,
        1 + a,
        a + Special(4),
        -a,
        a == Number(7),
        a != b,
        a < b,
        a > b,
        bool(Number(0)),
        len(a),
        a[1],
        7 in a,
    ]
    out += [[1, 2] + b, [0] * Number(2), a(1, k=2), f"{a:x}", c is a, not Number(0), "s" + b]
    return out


@program
def special_add_error():
    return Number(1) + "a" + object()


@program
def special_no_delitem():
    del Number(1)[0]


@program
def special_unhashable():
    return {Number(1): 2}


@program
def old_sequence_protocol():
    s = OldSequence()
    a, b, c = s
    return list(s), 20 in s, 5 in s, [x for x in s], a + b + c


@program
def iterator_protocol():
    a, *b = Counting(4)
    return list(Counting(3)), a, b, sum(Counting(4)), 2 in Counting(3), [*Counting(2)], max(Counting(5))


@program
def plain_object_comparison():
    a, b = Point(1, 2), Point(1, 2)
    return a == b, a == a, a != b, a is b, bool(a), a in [b, a], [a] == [a]


@program
def plain_object_order():
    return Point(1, 2) < Point(1, 3)


@program
def plain_object_not_iterable():
    return list(Point(1, 2))


@program
def plain_object_no_len():
    return len(Point(1, 2))


@program
def attribute_stores():
    p = Point(1, 2)
    p.z = p.x + p.y
    p.x += 10
    del p.y
    return p.x, p.z, hasattr(p, "y"), getattr(p, "y", "gone")


@program
def deleted_attribute():
    p = Point(1, 2)
    del p.x
    return p.x
