"""Several breaks in one statement, with what was evaluated before on the stack."""


class Owner:
    def __init__(self):
        self.value, self.items = 1, [1, 2, 3]

    def method(self, *args, **kwargs):
        return self.value + sum(args) + sum(kwargs.values())


OWNER = Owner()


def add(a, b=2, *rest, c=3, **more):
    return a + b * 2 + sum(rest) + c * 5 + sum(more.values())


@program
def arguments(x):
    return add(BREAK(x), BREAK(1), BREAK(2), c=BREAK(3), d=BREAK(4))


@program
def starred(x):
    return add(*BREAK([x, 1]), *BREAK((2, 3)), **BREAK({"c": 4}))


@program
def starred_and_named(x):
    return add(x, *BREAK([5]), c=BREAK(1), **BREAK({"d": 4}))


@program
def starred_of_a_method(x):
    return x + OWNER.method(*BREAK([1]), **BREAK({"a": 2}), b=BREAK(3))


@program
def binary(x):
    return (x + BREAK(1)) * (BREAK(x) - BREAK(2)) / 2


@program
def compared_in_a_chain(x):
    n = x.shape[0]
    if 0 < BREAK(n) < BREAK(10) < 100:
        x = x + 1
    return x, 1 < BREAK(n) < BREAK(2)


@program
def compared_by_identity(x):
    a = BREAK(x)
    return x + (a is x) + (BREAK(None) is None) + (BREAK(1) in [1, 2])


@program
def boolean(x):
    n = x.shape[0]
    a = BREAK(n) and BREAK(0) or BREAK(5)
    b = not BREAK(0)
    return x + a, b


@program
def conditional(x):
    n = x.shape[0]
    y = BREAK(x + 1) if BREAK(n > 2) else BREAK(x - 1)
    return y * 2


@program
def displays(x):
    a = [x, BREAK(x + 1), *BREAK((1, 2)), 3]
    b = {"a": BREAK(1), BREAK("b"): 2, **BREAK({"c": 3})}
    c = (BREAK(1), x)
    return a, b, c


@program
def set_display(x):
    found = {1, BREAK(2), *BREAK([3, 4])}
    return x + len(found)


@program
def texts(x):
    n = x.shape[0]
    text = f"{n} {BREAK(n)!r} {BREAK(2.5):.2f} {BREAK('a'):>{BREAK(4)}}"
    return x + len(text), text


@program
def slices(x):
    items = list(range(10))
    return x[BREAK(0) : BREAK(2)], items[BREAK(1) : 8 : BREAK(2)], items[BREAK(-1)]


@program
def walrus(x):
    y = (n := BREAK(3)) + x + (m := BREAK(n + 1))
    if (k := BREAK(m)) > n:
        y = y + k
    return y, n, m


@program
def walrus_in_a_comprehension(x):
    found = [last := i + 1 for i in range(3)]
    y = x + BREAK(last)
    return y, found


@program
def unpacking(x):
    a, b = BREAK(x), BREAK(2)
    (c, d), *e = BREAK((1, 2)), BREAK(3), 4
    a, b = b, a
    return b + a + c + d, BREAK(e)


@program
def augmented(x):
    items, owner = [1, 2], Owner()
    items[BREAK(0)] += BREAK(5)
    owner.value += BREAK(2)
    y = x
    y += BREAK(1)
    items += BREAK([7])
    return y, items, owner.value


@program
def stores(x):
    owner, table = Owner(), {}
    owner.value = table[BREAK("k")] = BREAK(4)
    owner.items[BREAK(1)] = BREAK(9)
    owner.items[BREAK(0) : 1] = BREAK([5, 6])
    return x + owner.value, table, owner.items


@program
def nested_calls(x):
    return add(add(BREAK(x), BREAK(1)), add(1, BREAK(2), c=BREAK(0)))


@program
def method_chain(x):
    return x.add(BREAK(1)).mul(BREAK(2)).reshape(BREAK(-1)).sum()


@program
def called_of_a_call(x):
    def outer(n):
        return lambda v: v + n

    return BREAK(outer)(BREAK(1))(BREAK(x))


@program
def subscripts_of_subscripts(x):
    table = {"a": [1, {"b": 2}]}
    return x + table[BREAK("a")][BREAK(1)][BREAK("b")]


@program
def deletions(x):
    table, items = {"a": 1, "b": 2}, [1, 2, 3]
    del table[BREAK("a")], items[BREAK(0)]
    del items[BREAK(0) : 1]
    return x, table, items


@program
def returned_at_once(x):
    return BREAK(x), BREAK(1), [BREAK(2), {"a": BREAK(x * 2)}]


@program
def asserted(x):
    n = x.shape[0]
    assert BREAK(n) == 3, BREAK("three")
    assert BREAK(n) > 5, f"not {BREAK(n)}"
    return x


@program
def lambda_defaults(x):
    f = lambda v, n=BREAK(2), *, k=BREAK(3): v * n + k  # noqa: E731
    return f(BREAK(x))


@program
def minimum_of_several(x):
    return x + min(BREAK(3), BREAK(1), 2) + max([BREAK(1), 2], key=lambda n: -n) + abs(BREAK(-2))
