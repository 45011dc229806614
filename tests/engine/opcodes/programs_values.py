"""Constants, operators, containers."""

# ruff: noqa: F811, F821, E711, E712, E741, F541, F601, F632, F633, F842, UP028
# mypy: ignore-errors

from __future__ import annotations

from typing import Any

from opcode_programs import program

# -- stack, constants, locals


@program
def constants():
    return None, True, ..., 1, 2.5, 1j, "s", b"b", (1, (2, "x")), frozenset({1}) == {1}


@program
def swaps():
    a, b, c, d = 1, 2, 3, 4
    a, b = b, a
    b, c, d = d, b, c
    return a, b, c, d


@program
def chained_comparison():
    return 1 < 2 < 3, 1 < 3 < 2, 3 < 1 < 0


@program
def walrus():
    return [y := 3, y**2, (z := y + 1), z]


@program
def deleted_local():
    x = 1
    del x
    return x


@program
def unbound_in_branch():
    if not 1:
        y = 1
    return y


@program
def delete_unbound():
    x = 1
    del x
    del x


@program
def augmented():
    a, b, c = 5, [1], "x"
    a += 1
    a -= 2
    a *= 3
    a //= 2
    a **= 2
    a %= 7
    a <<= 3
    a |= 1
    a ^= 2
    a &= 0xFF
    a >>= 1
    d = b
    b += (2, 3)
    b *= 2
    c += "y"
    c *= 2
    f = 7.0
    f /= 2
    return a, b, d is b, c, f


@program
def arithmetic():
    return (
        7 + 2,
        7 - 2,
        7 * 2,
        7 / 2,
        7 // 2,
        7 % 3,
        2**5,
        1 << 4,
        256 >> 2,
        6 & 3,
        6 | 3,
        6 ^ 3,
        -5,
        +5,
        ~5,
        not 5,
    )


@program
def float_arithmetic():
    x, y = 0.1, 3
    return +x, +True, x + y, x - y, x * y, x / y, x // y, x % y, x**y, -x, divmod(7.5, 2), divmod(-7, 2)


@program
def mixed_sequences():
    n = 2
    return (
        [1] + [2],
        (1,) + (2,),
        "a" + "b",
        b"a" + b"b",
        [1] * n,
        n * (1,),
        "ab" * n,
        n * b"x",
        [0] * -1,
        [1] * True,
    )


# -- errors of operators


@program
def add_int_str():
    x = 1
    return x + "a"


@program
def add_str_int():
    x = "a"
    return x + 1


@program
def add_list_tuple():
    x = [1]
    return x + (2,)


@program
def add_none():
    x = None
    return x + 1


@program
def inplace_error():
    x = 1
    x += "a"


@program
def inplace_power_error():
    x = 1
    x **= "a"


@program
def inplace_list_error():
    x = []
    x += 3


@program
def power_error():
    x = 2
    return x ** "a"


@program
def multiply_error():
    x = [1]
    return x * 2.0


@program
def matmul_error():
    x = 2
    return x @ 3


@program
def unary_error():
    x = "a"
    return -x


@program
def invert_error():
    x = 1.5
    return ~x


@program
def compare_error():
    x = 1
    return x < "a"


class Plain:
    pass


@program
def compare_objects_error():
    x = Plain()
    return x >= 3


@program
def zero_division():
    x = 1
    return x / 0


@program
def modulo_zero():
    x = 1
    return x % 0


@program
def negative_shift():
    x = 1
    return x << -1


@program
def shift_print():
    return print >> 3


# -- comparisons, identity, membership


@program
def comparisons():
    x, y = [1, 2], (1, 2)
    return x == y, x != y, x == [1, 2], x < [1, 3], "a" < "b", 1 == 1.0, 1 != "1", None == None, 2 > True


@program
def identities():
    x: Any = []
    y = x
    z: Any = []
    return x is y, x is z, x is not z, None is None, True is True, x is None, int is int, () is ()


@program
def constants_are_one_object():
    def again():
        return (1, 2)

    a, b = (1, (2, "x")), (1, (2, "x"))
    return a is b, again() is again(), a[1] is b[1]


@program
def membership():
    return 1 in [1, 2], 3 not in (1, 2), "a" in "cat", 1 in {1: 2}, 2 in {1, 3}, 5 in range(3), None in [None]


@program
def not_a_container():
    x = 3
    return 1 in x


# -- subscription


@program
def subscripts():
    xs = [0, 1, 2, 3, 4, 5]
    d = {"a": 1}
    xs[1] = 10
    xs[-1] = 50
    d["b"] = 2
    del xs[0], d["a"]
    return xs, d, xs[1:3], xs[::-1], xs[:-2:2], "hello"[1:4], (1, 2, 3)[-2:], xs[slice(1)]


@program
def slice_stores():
    xs = [0, 1, 2, 3, 4, 5]
    xs[1:3] = [9]
    xs[::2] = ["a", "b", "c"]
    del xs[3:]
    n = len(xs)
    xs[1:n] = "de"
    return xs


@program
def index_error():
    return [1][3]


@program
def tuple_index_error():
    x = (1,)
    return x[5]


@program
def key_error():
    return {}["k"]


@program
def list_index_type():
    return [1]["a"]


@program
def not_subscriptable():
    x = 3
    return x[0]


@program
def class_not_subscriptable():
    return int[3]


@program
def no_item_assignment():
    x = (1,)
    x[0] = 2


@program
def no_item_deletion():
    x = (1,)
    del x[0]


@program
def str_item_assignment():
    x = "abc"
    x[0] = "d"


@program
def unhashable_key():
    return {[]: 1}


@program
def unhashable_element():
    return {[]}


# -- building and unpacking


@program
def displays():
    a, b = 1, 2
    return [a, b], (a, b), {a, b}, {a: b}, {"x": a, "y": b}, [], (), {}, {"k": [a, (b,)]}


@program
def star_displays():
    a, b, d = [1, 2], (3,), {"k": 1}
    return [*a, *b, 4], (*a, 9, *b), {*a, *b}, {**d, "z": 2, **{"k": 3}}, [*"ab"], [*range(3)], [*d]


@program
def star_display_error():
    x = 3
    return [*x]


@program
def star_set_error():
    x = 3
    return {*x}


@program
def star_dict_error():
    x = 3
    return {**x}


@program
def star_dict_list_error():
    x = [1]
    return {**x}


@program
def comprehensions():
    n = 3
    return (
        [i * n for i in range(4) if i % 2],
        {i: i * i for i in range(3)},
        {i % 2 for i in range(5)},
        [(i, j) for i in range(2) for j in range(i + 1)],
        [[k for k in range(j)] for j in range(3)],
    )


@program
def comprehension_variables():
    x, y = 1, 5
    inner = lambda: x  # noqa: E731
    called = [(lambda: (x, y))() for x in range(3)]
    made = [lambda: x for x in range(2)]
    z = {x: y for y in range(2)}
    return x, y, inner(), called, [f() for f in made], z


@program
def comprehension_leaves_unbound():
    xs = [i for i in range(3)]
    return i


@program
def comprehension_raises():
    x = "kept"
    get = lambda: x  # noqa: E731
    try:
        [1 // x for x in (1, 0)]
    except ZeroDivisionError as e:
        return x, get(), str(e)


@program
def nested_comprehension_cells():
    table = [[(lambda: (i, j)) for j in range(2)] for i in range(2)]
    return [[f() for f in row] for row in table]


@program
def unpacking():
    a, (b, c), *d = 1, (2, 3), 4, 5
    e, *f, g = "hello"
    (h,) = [9]
    *i, j = {1: 2, 3: 4}
    [k, l] = range(2)
    return a, b, c, d, e, f, g, h, i, j, k, l


@program
def unpack_too_few():
    a, b = [1]


@program
def unpack_too_many():
    a, b = "abc"


@program
def unpack_ex_too_few():
    a, *b, c = [1]


@program
def unpack_ex_head_too_few():
    a, b, *c = [1]


@program
def unpack_not_iterable():
    a, b = 3


@program
def unpack_ex_not_iterable():
    a, *b = None
