"""Jumps, calls, functions, formats, globals."""

# ruff: noqa: F811, F821, E711, E712, E741, F541, F601, F632, F633, F842, UP028
# mypy: ignore-errors

from __future__ import annotations

import collections
import operator
from typing import Any

from opcode_programs import program

COUNTER = 0


# -- control flow


@program
def loops():
    total = []
    for i in range(5):
        if i == 1:
            continue
        if i == 4:
            break
        total.append(i)
    else:
        total.append("never")
    for _ in ():
        pass
    else:
        total.append("else")
    n = 3
    while n:
        n -= 1
        total.append(-n)
    return total


@program
def boolean_operators():
    e: Any = []
    f = [0]
    return e and 1, f and 1, e or 2, f or 2, (e or f) and 3, not e, not f, 1 if e else 2


@program
def none_jumps():
    out = []
    for x in (None, 0, 1):
        if x is None:
            out.append("none")
        if x is not None:
            out.append("some")
        while x is None:
            x = 5
        while x is not None:
            x = None
    return out


@program
def while_true():
    n = 0
    while True:
        n += 1
        if n > 3 and n % 2:
            return n


@program
def do_while_jumps():
    out = []
    n = 0
    while n < 3 or (n == 3 and not out[-1]):
        out.append(n)
        n += 1
    return out


@program
def iterate_not_iterable():
    for _ in 3:
        pass


@program
def iterate_dict_items():
    return [(k, v) for k, v in {"a": 1, "b": 2}.items()], list({"a": 1}), dict(zip("ab", range(2)))


# -- calls and functions


@program
def calls():
    def f(a, b=2, *args, c, d=4, **kw):
        return a, b, args, c, d, kw

    xs, kw = (1, 2), {"c": 3, "z": 5}
    return f(1, c=3), f(*xs, **kw), f(1, 2, 3, 4, c=5, e=6), f(*[1], *(2, 3), c=4), f(*xs, 9, c=1, **{"d": 0})


@program
def positional_only():
    def f(a, /, b, *, c=3, **kw):
        return a, b, c, kw

    return f(1, 2), f(1, b=2, c=4), f(1, 2, a=5)


@program
def defaults():
    def f(x, acc=[]):
        acc.append(x)
        return acc

    return f(1), f(2), f(3, [])


@program
def star_arguments_error():
    def f(*a):
        return a

    x = 3
    return f(*x)


@program
def star_arguments_multi_error():
    def f(*a):
        return a

    x = 3
    return f(1, *x)


@program
def double_star_error():
    def f(**k):
        return k

    x = 3
    return f(**x)


@program
def repeated_keyword():
    def f(**k):
        return k

    return f(a=1, **{"a": 2})


@program
def keywords_not_strings():
    def f(**k):
        return k

    return f(**{1: 2})


@program
def not_callable():
    x = 3
    return x()


@program
def lambdas_and_closures():
    def counter():
        n = 0

        def step(by=1):
            nonlocal n
            n += by
            return n

        return step

    a, b = counter(), counter()
    return a(), a(5), b(), (lambda x, *y: (x, y))(1, 2, 3), [f() for f in [lambda i=i: i for i in range(3)]]


@program
def late_binding():
    fs = [lambda: i for i in range(3)]
    return [f() for f in fs]


@program
def deleted_cell():
    x = 1

    def f():
        return x

    del x
    return f()


@program
def deleted_own_cell():
    x = 1

    def f():
        return x

    del x
    return x


@program
def unbound_cell():
    def f():
        return later

    f()
    later = 1
    return later


@program
def annotations_and_decorators():
    def twice(fn):
        return lambda *a: fn(*a) * 2

    @twice
    def f(x: int, *, y: str = "a") -> int:
        return x

    return f(4)


@program
def recursion():
    def fact(n):
        return 1 if n < 2 else n * fact(n - 1)

    return fact(10)


@program
def method_calls():
    xs = [3, 1, 2]
    xs.sort()
    xs.append(9)
    return xs, "a,b".split(","), "-".join(["x", "y"]), {"a": 1}.get("b", 5), (1, 2, 1).count(1)


@program
def missing_attribute():
    x = 3
    return x.nope


@program
def missing_method():
    return [].nope()


@program
def undefined_global():
    return undefined_name


@program
def builtin_calls():
    return (
        len([1, 2]),
        sum([1, 2, 3]),
        max(3, 1),
        min([4, 2]),
        abs(-3),
        sorted([3, 1, 2], reverse=True),
        list(reversed([1, 2])),
        list(enumerate("ab", 1)),
        list(zip([1, 2], "ab")),
        list(map(lambda x: x + 1, [1, 2])),
        list(filter(None, [0, 1, 2])),
        any([0, 1]),
        all([]),
        isinstance(1, int),
        isinstance("s", (int, str)),
        int("3"),
        str(5),
        float("1.5"),
        bool([]),
        tuple([1]),
        round(2.567, 2),
    )


@program
def local_import():
    import operator as op
    from collections import OrderedDict
    from os import path as p

    return op.add(1, 2), OrderedDict is collections.OrderedDict, p.join is not None, operator is op


@program
def import_missing_name():
    from operator import nothing_of_that_name

    return nothing_of_that_name


# -- formatting


@program
def formats():
    x, name, width = 3.14159, "dyna", 8
    return (
        f"{x:.2f}|{name!r}|{name:>{width}}|{x!s:.3}|{'é'!a}|{5:03d}|{name}",
        f"",
        f"plain",
        f"{1}{2}",
        f"{None} {True} {[1, 'a']} {(1,)} {{}}",
        f"{x=:.1f}",
        "%s-%d" % ("a", 3),  # noqa: UP031
        f"{7:>4}",
    )


@program
def format_error():
    x = "a"
    return f"{x:d}"


@program
def list_format_error():
    x = [1]
    return f"{x:3}"


# -- globals


@program
def global_variables():
    global COUNTER, TEMPORARY
    COUNTER += 1
    TEMPORARY = COUNTER
    seen = TEMPORARY, COUNTER
    del TEMPORARY
    COUNTER = 0
    return seen


@program
def deleted_global():
    global TEMPORARY
    TEMPORARY = 1
    del TEMPORARY
    return TEMPORARY
