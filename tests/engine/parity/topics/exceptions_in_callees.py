"""Exceptions that are raised in callees and handled, or not, by who called, with a break somewhere."""


class Wrong(Exception):
    def __init__(self, text, code=0):
        super().__init__(text)
        self.code = code


def low(x, n):
    if n > 2:
        raise Wrong("low", n)
    return x + n


def through(x, n):
    return low(x * 2, n) * 3


def handled(x, n):
    try:
        return low(x, n)
    except Wrong as error:
        return x - error.code


def tidied(x, n, seen):
    try:
        return low(x, n)
    finally:
        seen.append(n)


def chained(x, n):
    try:
        return low(x, n)
    except Wrong as error:
        raise ValueError("chained") from error


def hidden(x):
    try:
        return {}["missing"]
    except KeyError:
        raise Wrong("hidden") from None


@program
def raised_and_caught(x):
    y = BREAK(x + 1)
    try:
        y = low(y, 3)
    except Wrong as error:
        y = y * error.code
    return BREAK(y) + 1


@program
def raised_and_left(x):
    y = BREAK(x + 1)
    y = through(y, 1)
    BREAK()
    return through(y, 4)


@program
def raised_by_what_breaks(x):
    def callee(v, n):
        v = BREAK(v * 2)
        if n > 1:
            raise Wrong("callee", n)
        return BREAK(v + 1)

    y = callee(x, 1)
    return callee(y, BREAK(2))


@program
def caught_of_what_breaks(x):
    def callee(v, n):
        v = BREAK(v * 2)
        if n > 1:
            raise Wrong("callee", n)
        return BREAK(v + 1)

    y = callee(x, 1)
    try:
        y = callee(y, 2)
    except Wrong as error:
        y = y + error.code
    return y


@program
def handled_in_the_callee(x):
    y = handled(x, BREAK(1))
    y = y + handled(x, BREAK(3))
    return BREAK(y)


@program
def handled_by_what_breaks(x):
    def callee(v, n):
        try:
            return low(v, n)
        except Wrong as error:
            return v + BREAK(error.code)

    y = callee(x, 1)
    return callee(BREAK(y), 3)


@program
def finally_in_the_callee(x):
    seen = []
    y = tidied(x, 1, seen)
    try:
        y = tidied(y, 3, seen)
    except Wrong:
        y = y * 2
    BREAK()
    return y, seen, BREAK(len(seen))


@program
def finally_in_the_callee_left(x):
    seen = BREAK([])
    y = tidied(x, 1, seen)
    x.seen = seen
    return tidied(BREAK(y), 3, seen)


@program
def a_cause(x):
    y = BREAK(x + 1)
    try:
        return chained(y, 3)
    except ValueError as error:
        text = (str(error), type(error.__cause__).__name__, error.__cause__.code)
    return y, BREAK(text)


@program
def a_cause_left(x):
    y = BREAK(x + 1)
    return chained(BREAK(y), 3)


@program
def no_context(x):
    y = BREAK(x + 1)
    try:
        hidden(y)
    except Wrong as error:
        kept = (error.__cause__, error.__suppress_context__, type(error.__context__).__name__)
    return y * 2, BREAK(kept)


@program
def raised_by_an_operator(x):
    values = {"a": 1}
    y = BREAK(x + 1)
    try:
        y = y + values["b"]
    except (KeyError, IndexError) as error:
        y = y + len(error.args)
    try:
        y = y + [1][BREAK(3)]
    except LookupError:
        y = y * 2
    return y


@program
def raised_by_division(x):
    def ratio(a, b):
        return a / b

    y = x * BREAK(ratio(4, 2))
    return y * ratio(1, BREAK(0))


@program
def kept_and_raised_later(x):
    try:
        low(x, 5)
    except Wrong as error:
        kept = error
    y = BREAK(x + 1)
    if kept.code > 4:
        raise kept
    return y


@program
def raised_through_two(x):
    def middle(v):
        w = BREAK(v + 1)
        return through(w, 7)

    try:
        return middle(x)
    except ValueError:
        return BREAK(x)


@program
def an_assertion(x):
    y = BREAK(x + 1)
    assert y.dim() == 1, "one"
    z = BREAK(y) * 2
    assert z.dim() == 2, f"dimensions {z.dim()}"
    return z


@program
def caught_by_the_base_class(x):
    class Narrow(Wrong):
        pass

    def callee(v):
        raise Narrow("narrow", BREAK(2))

    try:
        callee(x)
    except Wrong as error:
        return x + error.code, type(error).__name__
    return BREAK(x)


@program
def handlers_in_handlers(x):
    def callee(v):
        try:
            return low(v, 3)
        except Wrong:
            try:
                return low(v, 4)
            except Wrong as error:
                return v + error.code

    y = callee(BREAK(x))
    return callee(y) + BREAK(1)
