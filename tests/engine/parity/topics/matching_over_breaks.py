"""`match` statements with breaks in the subject, in guards and in bodies."""

import dataclasses


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Plain:
    __match_args__ = ("kind", "size")

    def __init__(self, kind, size):
        self.kind, self.size = kind, size


RED = 1


class Names:
    BLUE = 2


@program
def literals(x):
    n = x.shape[0]
    match BREAK(n):
        case 1 | 2:
            return x
        case 3:
            return BREAK(x + 1)
        case _:
            return x - 1


@program
def guards(x):
    n = x.shape[0]
    match n:
        case k if BREAK(k > 5):
            return x - k
        case k if BREAK(k) == 3:
            y = x + k
    return BREAK(y)


@program
def guard_of_a_sequence(x):
    match [x, 1, 2]:
        case [first, *rest] if BREAK(len(rest)) == 5:
            y = first
        case [first, *rest] if BREAK(sum(rest)) == 3:
            y = first + len(rest)
        case _:
            y = x
    return y


@program
def sequences(x):
    match BREAK((x, (1, 2), 3)):
        case (a, (b, c), 4):
            return a + b - c
        case (a, (b, *_), 3):
            return BREAK(a + b)


@program
def mappings(x):
    match BREAK({"kind": "add", "by": 2, "more": 3}):
        case {"kind": "mul"}:
            return x
        case {"kind": "add", "by": n, **rest}:
            return BREAK(x + n), rest


@program
def classes(x):
    match BREAK(Point(1, 2)):
        case Point(x=3):
            return x
        case Point(a, y=2):
            return BREAK(x + a)


@program
def of_positions(x):
    match Plain("a", BREAK(2)):
        case Plain("b", n):
            return x - n
        case Plain("a", n) if BREAK(n) > 1:
            return x + n


@program
def builtin_classes(x):
    y = x
    for value in (1, "a", 2.5, None, True):
        match value:
            case bool():
                y = y + 1
            case int(n):
                y = y + n
            case str() as text:
                y = y + len(text)
            case None:
                y = y * 2
            case float():
                y = y - 1
    return BREAK(y)


@program
def named_values(x):
    match BREAK(2):
        case Names.BLUE:
            y = x + 1
        case _:
            y = x
    return BREAK(y)


@program
def captures(x):
    match BREAK([1, [2, 3]]):
        case [int() as a, [b, c] as inner]:
            pass
    y = x + a + b + c
    return BREAK(y), inner


@program
def alternatives(x):
    match BREAK(("b", 4)):
        case ("a", n) | ("b", n):
            y = x * n
    return y + BREAK(n)


@program
def nothing_matches(x):
    match BREAK(x.shape[0]):
        case 7:
            y = x
    return BREAK(y)


@program
def name_left_by_a_failed_case(x):
    match (1, BREAK(2)):
        case (a, 3):
            y = x
        case (_, b):
            y = x + b
    return BREAK(y), a


@program
def tensors(x):
    match x:
        case torch.Tensor(shape=[3]):
            y = BREAK(x + 1)
        case _:
            y = x
    return BREAK(y)


@program
def in_a_callee(x):
    def kind(value):
        match value:
            case [] | {}:
                return 0
            case [_, *_] if BREAK(True):
                return 1
            case {"a": _}:
                return 2
        return 3

    return x + kind([]) + kind([1]) + BREAK(kind({"a": 1})) + kind(5)


@program
def guard_that_raises(x):
    y = BREAK(x)
    match [1]:
        case [n] if 1 // (n - 1) > 0:
            return y
    return y - 1


@program
def guard_with_a_walrus(x):
    match x.shape[0]:
        case n if (m := BREAK(n + 1)) > 3:
            return BREAK(x + m)


@program
def keys_that_repeat(x):
    y = BREAK(x)
    key = "a"
    match {"a": 1}:
        case {"a": n, "b": _}:
            y = y - n
        case {"a": 1 as n}:
            y = y + n
    return y, key
