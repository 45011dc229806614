"""Small functions that use every kind of statement, with arguments: what a rewritten form must do too."""

import contextlib
from types import FunctionType

LOG: list[object] = []
CASES: dict[str, tuple] = {}


def note(*values, **named):
    LOG.append((values, named))
    return len(LOG)


def case(*args, **kwargs):
    """Register a function with arguments."""

    def add(fn):
        CASES[f"{fn.__name__}-{len(CASES)}"] = (lambda: fn, args, kwargs)
        return fn

    return add


def factory(*args, **kwargs):
    """Register what makes a function (with fresh cells) and a view of its state."""

    def add(make):
        CASES[f"{make.__name__}-{len(CASES)}"] = (make, args, kwargs)
        return make

    return add


class Manager:
    def __init__(self, name, swallow=False):
        self.name, self.swallow = name, swallow

    def __enter__(self):
        LOG.append(f"enter {self.name}")
        return self.name

    def __exit__(self, kind, value, traceback):
        LOG.append(f"exit {self.name} {kind and kind.__name__}")
        return self.swallow


class Base:
    def greet(self, word):
        return f"base {word}"


@case(2, 3)
def arithmetic(a, b):
    c = a * b + a
    d = (c - b) ** 2 // 3
    return -d, not d, ~d, +d, c % 4, a < b <= c, a is b, a in (1, 2), a not in [b]


@case(3)
@case(-3)
@case(-30)
def branches(x):
    if x > 0:
        y = note("positive", x)
    elif x < -10:
        y = None
    else:
        y = (x and note("negative")) or 7
    return x if y is None else y


@case([1, 2, 3, 4, 5])
@case([1])
def for_loop(items):
    total = 0
    for i, item in enumerate(items):
        if item == 2:
            continue
        if item == 5:
            break
        total += item * i
    else:
        total = -1
    return total


@case(4)
def while_loop(n):
    out = []
    while n:
        n -= 1
        if n == 2:
            continue
        out.append(n)
    else:
        out.append("end")
    return out


@case([3, 1], [4])
def nested_loops(xs, ys):
    out = []
    for x in xs:
        for y in ys:
            while y > x:
                y -= 1
                out.append((x, y))
    return out


@case(1)
def calls(x):
    a = note(x, note(2), key=note(3), other="o")
    b = "-".join([str(a), str(x)])
    return max(a, x, key=abs), b.upper().lower(), sorted([3, 1], reverse=True), "{} {k}".format(*(1,), k=2)


@case(1, 2, 3, key=4, more=5)
def star_arguments(first, *rest, key=None, **others):
    args = (*rest, first)
    named = {**others, "key": key}
    note(*args, **named)
    return note(first, *args, z=1, **others), rest, others


@case(1, 2, c=3)
def argument_kinds(a, /, b, *, c, d=4):
    b += a
    return a, b, c, d


@case(5)
def unbound_later(x):
    y = x
    del y
    if x > 100:
        z = 1
    return z


@case(5)
def deletes(x):
    box = {"a": 1, "b": 2}
    y = [1, 2, 3]
    del box["a"], y[0]
    t = x
    del x
    return box, y, t


@case([1, [2, 3], 4])
def unpacking(values):
    a, (b, *c), d = values
    a, d = d, a
    a, b, d = d, a, b
    [e, *_, f] = "hello"
    return a, b, c, d, e, f


@case({"x": 1}, [5, 6, 7, 8])
def subscripts(table, row):
    table["y"] = row[1:3]
    row[0] += table["x"]
    row[::2] = [0, 0]
    del row[-1]
    return table, row, row[1], {**table, "z": {1, 2}}


@case(3.14159)
def formatting(x):
    w = 8
    return f"{x}", f"{x!r:>{w}}", f"{x:.2f}|{w!s}", f"a{w}b{x!a}"


@case()
def classes_and_imports():
    import os.path as path
    from collections import OrderedDict

    class Thing:
        size = 3

        def area(self):
            return self.size**2

    thing = Thing()
    thing.size = 5
    del thing.size
    return thing.area(), OrderedDict, path.basename("a/b")


@case(0)
@case(1)
@case("x")
def try_except(x):
    y = "before"
    try:
        y = note("try", 1 / x)
    except ZeroDivisionError as error:
        y = str(error)
    except TypeError:
        y = "type"
        note("handled")
    else:
        y = ("else", y)
    finally:
        note("finally", y)
    return y


@case(0)
@case(2)
def try_finally_return(x):
    try:
        note("body")
        return 10 // x
    finally:
        note("cleanup")


@case([0, 1, 2])
def try_in_loop(items):
    out = []
    for item in items:
        try:
            if item == 2:
                break
            out.append(1 // item)
        except ZeroDivisionError:
            out.append("zero")
            continue
        finally:
            out.append("f")
    return out


@case(0)
@case(3)
def reraise(x):
    try:
        try:
            note(1 // x)
            raise KeyError(x)
        except ZeroDivisionError:
            note("first")
            raise
    except KeyError as error:
        raise ValueError("again") from error


@case()
def uncaught():
    values = [1]
    note("before")
    values[3] = 1
    note("never")


@case(0)
@case(1)
def with_blocks(x):
    before = note("before")
    with Manager("a") as a, Manager("b", swallow=True) as b:
        note(a, b)
        note(1 // x)
    with Manager("c") as c:
        return before, c, note("in c")


@case(0)
@case(1)
def with_in_try(x):
    try:
        with Manager("outer"):
            for i in range(2):
                with Manager(i):
                    if x:
                        continue
                    note(1 // x)
    except ZeroDivisionError:
        note("caught")
    return "end"


@case()
def with_suppress():
    with contextlib.suppress(KeyError):
        note("in")
        {}["missing"]
        note("never")
    return "after"


@case([1, 2, 3, 4])
def comprehensions(items):
    squares = [x * x for x in items if x % 2]
    table = {x: y for x, y in zip(items, squares)}
    odd = {x & 1 for x in items}
    return squares, table, odd, sum(x for x in items), [[y for y in range(x)] for x in items]


@case(3)
def comprehension_cells(n):
    makers = [lambda: (i, n) for i in range(n)]
    return [make() for make in makers]


@factory(5)
def closures():
    state = {"count": 0}
    total = 0

    def add(x):
        nonlocal total
        total += x
        step = 2
        state["count"] += step
        note(total)

        def peek():
            return total, step, x

        step += 1
        x += 10
        return peek(), total

    return add


@factory(1)
def deleted_cells():
    outer = 1

    def act(x):
        nonlocal outer
        held = x
        inner = lambda: held  # noqa: F821
        note(inner())
        del outer
        del held
        try:
            return inner()  # noqa: F821
        except NameError as error:
            outer = 3
            return type(error).__name__, outer

    return act


@case(3)
def recursive_inner(n):
    def fact(k):
        return 1 if k < 2 else k * fact(k - 1)

    kept = [fact(n)]
    return kept, fact(n + 1)


@factory("word")
def super_without_arguments():
    class Derived(Base):
        def greet(self, word):
            word = word + note("before") * "!"
            return super().greet(word)

    bound = Derived()
    return FunctionType(Derived.greet.__code__, globals(), "greet", (), Derived.greet.__closure__).__get__(
        bound
    )


@factory("word")
def super_with_self_captured():
    class Derived(Base):
        def greet(self, word):
            again = lambda: self
            note(again() is self)
            first = super().greet(word)
            return first, super(Derived, self).greet(word)  # noqa: UP008

    return Derived().greet


@case(2)
def globals_used(x):
    global COUNTER
    COUNTER = x
    COUNTER += 1
    value = COUNTER
    del COUNTER
    return value


@case({"kind": "point", "at": [1, 2]})
@case([1, 2, 3])
@case("other")
def matching(value):
    match value:
        case {"kind": "point", "at": [x, y], **rest}:
            return x + y, rest
        case [first, *others] if others:
            return first, others
        case str() as text:
            return text.upper()


@case(7)
def conditional_chain(x):
    a = x > 1 and x < 5 or x == 7 and note("seven")
    b = None if a else 3
    return (a if b is None else b), (b or a), (1 if x else 2) + (3 if not x else 4)


@case(3)
def assertions(x):
    assert x > 2, "small"
    (y := x + 1)
    assert y == 3, f"not three: {y}"


@case(range(3))
def iterates_generator(source):
    made = (note(x) for x in source)
    first = next(made)
    rest = list(made)
    print(first, rest, end="", file=open_nothing())
    return first, rest


def open_nothing():
    import io

    return io.StringIO()


@case(10)
def long_constants(x):
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = a8 = a9 = x
    b0 = b1 = b2 = b3 = b4 = b5 = b6 = b7 = b8 = b9 = a0
    c = note(a9, b9)
    return a0, a1, a2, a3, a4, a5, a6, a7, a8, b0, b1, b2, b3, b4, b5, b6, b7, b8, c


@case(0)
@case(1)
def exception_groups(x):
    try:
        note("group")
        raise ExceptionGroup("g", [ValueError(1), KeyError(2) if x else OSError(3)])
    except* ValueError as group:
        out = len(group.exceptions)
    except* KeyError:
        out = "key"
    return out
