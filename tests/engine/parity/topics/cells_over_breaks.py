"""Cells read and written on both sides of a break, by the frame and by nested functions."""


def counter():
    n = 0

    def step(k=1):
        nonlocal n
        n += k
        return n

    return step


STEP = counter()


@program
def read_behind(x):
    n = 1
    f = lambda: n  # noqa: E731
    y = BREAK(x + f())
    return y + f()


@program
def written_behind(x):
    n = 1
    f = lambda: n  # noqa: E731
    y = BREAK(x + f())
    n = BREAK(5)
    return y + f()


@program
def written_by_the_inner(x):
    n = 1

    def step():
        nonlocal n
        n = n + 1
        return n

    y = x + step()
    BREAK()
    y = y + step() + n
    return y, BREAK(n)


@program
def of_a_tensor(x):
    y = x + 1

    def double():
        nonlocal y
        y = y * 2
        return y

    z = double()
    BREAK()
    return double() + z + BREAK(y)


@program
def two_functions_share_one(x):
    n = 0

    def up():
        nonlocal n
        n += 1

    def down():
        nonlocal n
        n -= 3

    up()
    BREAK()
    down()
    up()
    return x + BREAK(n)


@program
def two_levels(x):
    n = 1

    def outer():
        m = n

        def inner():
            nonlocal m
            m += n
            return m

        inner()
        BREAK()
        return inner()

    y = x + outer()
    n = 4
    return y + outer()


@program
def three_levels_write(x):
    n = 1

    def outer():
        def inner():
            nonlocal n
            n = n * 2
            return BREAK(n)

        return inner()

    y = x + outer()
    BREAK()
    return y + outer(), n


@program
def breaks_in_the_inner(x):
    n = 1

    def inner(v):
        nonlocal n
        n += 1
        v = BREAK(v + n)
        n += 1
        return v

    y = inner(x)
    return inner(y) + n


@program
def made_after_the_break(x):
    n = BREAK(2)

    def inner(v):
        return v * n

    n = BREAK(3)
    return inner(x)


@program
def of_a_caller(x):
    y = x + STEP()
    BREAK()
    return y + STEP(BREAK(2))


@program
def argument_is_a_cell(x):
    def double():
        nonlocal x
        x = x * 2

    double()
    BREAK()
    double()
    return BREAK(x)


@program
def escapes(x):
    n = 1

    def later():
        return n

    y = BREAK(x)
    n = 7
    return y, later(), BREAK(later)()


@program
def in_a_list_of_functions(x):
    found = [lambda: i for i in range(3)]
    y = BREAK(x + found[0]())
    return y + found[1]()


@program
def with_defaults(x):
    found = []
    for i in range(3):
        found.append(lambda v, i=i: v + i)
    y = BREAK(x)
    return found[0](y) + found[2](y) * BREAK(2)


@program
def in_a_class(x):
    n = BREAK(2)

    class Made:
        value = n

        def read(self):
            return n + self.value

    made = Made()
    y = BREAK(x + made.read())
    n = 5
    return y + made.read()


@program
def recursive(x):
    def down(k):
        return 0 if k == 0 else k + down(k - 1)

    y = BREAK(x)
    return y + down(BREAK(3))


@program
def mutual(x):
    def even(k):
        return True if k == 0 else odd(k - 1)

    def odd(k):
        return False if k == 0 else even(k - 1)

    y = BREAK(x)
    return y + even(4), BREAK(odd(4))


@program
def decorated(x):
    calls = []

    def counted(f):
        def wrapper(*args):
            calls.append(len(args))
            return f(*args)

        return wrapper

    @counted
    def double(v):
        return BREAK(v * 2)

    y = double(x)
    BREAK()
    return double(y), calls


@program
def generator_reads(x):
    n = 1

    def items():
        yield n
        yield n + 1

    found = list(items())
    BREAK()
    n = 5
    return x + sum(found), list(items())


@program
def comprehension_reads(x):
    n = BREAK(2)
    found = [n + i for i in range(2)]
    f = lambda: n  # noqa: E731
    n = 3
    return x + sum(found) + BREAK(f())


@program
def raised_between(x):
    n = 0

    def step():
        nonlocal n
        n += 1
        if n > 1:
            raise ValueError(n)

    step()
    y = BREAK(x)
    try:
        step()
    except ValueError as error:
        y = y + error.args[0]
    return y, BREAK(n)
