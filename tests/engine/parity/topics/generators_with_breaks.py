"""Generators made in the frame or outside, with breaks in their bodies or where they are used."""

import contextlib


def numbers(n):
    for i in range(n):
        yield i


def scaled(x):
    yield x
    yield x * 2


def delegating(x):
    got = yield from scaled(x)
    yield got
    yield from (x + 3, x + 4)


def echo():
    got = None
    while True:
        got = yield got


def returning(x):
    yield x
    return 7


@program
def listed(x):
    items = list(scaled(BREAK(x)))
    return items[0] + BREAK(items[1])


@program
def summed(x):
    y = BREAK(x + sum(numbers(4)))
    return y * BREAK(max(numbers(3)))


@program
def unpacked(x):
    a, b = scaled(x)
    a = BREAK(a)
    first, *rest = numbers(BREAK(3))
    return a + b + first, rest


@program
def iterated(x):
    y = x
    for item in scaled(BREAK(x)):
        y = y + item
    return BREAK(y)


@program
def iterated_with_a_break(x):
    y = x
    for item in scaled(x):
        y = y + BREAK(item)
    return y


@program
def breaking_body(x):
    def breaking(v):
        yield v + 1
        w = BREAK(v * 2)
        yield w
        yield BREAK(w + 1)

    y = x
    for item in breaking(x):
        y = y + item
    return y


@program
def breaking_body_listed(x):
    def breaking(v):
        yield v + 1
        w = BREAK(v * 2)
        yield w

    a, b = list(breaking(x))
    return a * b


@program
def breaking_body_taken(x):
    def breaking(v):
        yield v + 1
        w = BREAK(v * 2)
        yield w

    items = breaking(x)
    y = next(items)
    return y + next(items)


@program
def held_over_a_break(x):
    items = scaled(x)
    y = next(items)
    BREAK()
    return y + next(items)


@program
def not_started_over_a_break(x):
    items = scaled(x)
    BREAK()
    return next(items) + next(items)


@program
def exhausted_over_a_break(x):
    items = numbers(2)
    found = list(items)
    BREAK()
    return x + len(found) + len(list(items))


@program
def delegated(x):
    found = list(delegating(x))
    y = BREAK(x)
    for item in found:
        if item is not None:
            y = y + item
    return BREAK(y)


@program
def sent(x):
    items = echo()
    next(items)
    y = items.send(BREAK(x) + 1)
    items.close()
    return BREAK(y)


@program
def sent_over_a_break(x):
    items = echo()
    next(items)
    BREAK()
    return items.send(x + 1)


@program
def thrown(x):
    def catching(v):
        try:
            yield v
        except ValueError as error:
            yield v + error.args[0]

    items = catching(BREAK(x))
    next(items)
    y = items.throw(ValueError(3))
    return BREAK(y)


@program
def returned_value(x):
    def outer(v):
        got = yield from returning(v)
        yield got

    first, second = outer(BREAK(x))
    return first + BREAK(second)


@program
def expression(x):
    y = x + sum(i * i for i in range(BREAK(3)))
    return y + sum(BREAK(i) for i in (1, 2))


@program
def expression_of_tensors(x):
    parts = [x, BREAK(x + 1)]
    return sum((part * 2 for part in parts), BREAK(x))


@program
def expression_with_cells(x):
    n = BREAK(2)
    found = tuple(n + i for i in range(2))
    n = 5
    return x + sum(found), BREAK(n)


@program
def manager(x):
    @contextlib.contextmanager
    def scope(v):
        yield v + 1

    with scope(BREAK(x)) as y:
        y = y * 2
    return BREAK(y)


@program
def manager_with_a_break(x):
    @contextlib.contextmanager
    def scope(v):
        w = BREAK(v + 1)
        yield w
        BREAK()

    with scope(x) as y:
        y = BREAK(y * 2)
    return y


@program
def any_and_all(x):
    if any(i > 1 for i in numbers(BREAK(3))) and all(BREAK(i) >= 0 for i in numbers(2)):
        return x + 1
    return x - 1


@program
def zipped(x):
    pairs = zip(scaled(x), numbers(2))
    y = BREAK(x)
    for item, i in pairs:
        y = y + item * i
    return y


@program
def raising_body(x):
    def raising(v):
        yield v
        raise ValueError("in the body")

    y = BREAK(x)
    for item in raising(y):
        y = y + item
    return y
