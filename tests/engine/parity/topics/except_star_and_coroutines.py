"""`except*`, and coroutines defined and driven in the frame, with breaks."""


class Scope:
    async def __aenter__(self):
        return 2

    async def __aexit__(self, *_):
        return False


class Counting:
    def __init__(self, n):
        self.n = n

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self.n == 0:
            raise StopAsyncIteration
        self.n -= 1
        return self.n


def drive(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("it waits")


def raising(*errors):
    raise ExceptionGroup("several", list(errors))


@program
def group_caught(x):
    y = BREAK(x)
    try:
        raising(ValueError(1), KeyError("k"))
    except* ValueError as group:
        y = y + len(group.exceptions)
    except* KeyError:
        y = y * 2
    return BREAK(y)


@program
def group_caught_with_a_break(x):
    y = x
    try:
        raising(ValueError(1), KeyError("k"))
    except* ValueError as group:
        y = y + BREAK(len(group.exceptions))
    except* KeyError:
        y = BREAK(y * 2)
    return y


@program
def group_with_a_break_before(x):
    y = x
    try:
        y = BREAK(y + 1)
    except* ValueError:
        y = y - 1
    return y


@program
def group_left(x):
    y = BREAK(x)
    try:
        raising(ValueError(1), KeyError("k"))
    except* ValueError:
        y = y + 1
    return y


@program
def naked_exception(x):
    y = BREAK(x)
    try:
        raise ValueError(3)
    except* ValueError as group:
        y = y + group.exceptions[0].args[0]
    return BREAK(y)


@program
def group_nested(x):
    y = BREAK(x)
    try:
        raising(ValueError(1), ExceptionGroup("inner", [ValueError(2), TypeError(3)]))
    except* TypeError as group:
        y = y + len(group.exceptions)
    except* ValueError as group:
        y = y * len(group.exceptions)
    return BREAK(y)


@program
def group_in_a_callee(x):
    def callee(v):
        try:
            raising(ValueError(1))
        except* ValueError:
            v = v + 1
        return v

    return callee(BREAK(x)) + BREAK(1)


@program
def group_with_finally(x):
    y = x
    try:
        raising(KeyError(1))
    except* KeyError:
        y = y + 1
    else:
        y = y - 1
    finally:
        y = BREAK(y * 2)
    return BREAK(y)


@program
def group_reraised(x):
    y = BREAK(x)
    try:
        try:
            raising(ValueError(1), KeyError(2))
        except* ValueError:
            raise
    except* (ValueError, KeyError) as group:
        y = y + len(group.exceptions)
    return BREAK(y)


@program
def group_split(x):
    group = ExceptionGroup("g", [ValueError(1), KeyError(2)])
    mine, rest = group.split(ValueError)
    y = BREAK(x)
    return y + len(mine.exceptions), BREAK(str(rest))


@program
def coroutine_made_and_closed(x):
    async def work(v):
        return v + 1

    made = work(x)
    made.close()
    return BREAK(x)


@program
def coroutine_driven(x):
    async def work(v):
        return v + 1

    y = drive(work(BREAK(x)))
    return BREAK(y)


@program
def coroutine_with_a_break(x):
    async def work(v):
        w = BREAK(v * 2)
        return w

    return drive(work(x))


@program
def coroutine_awaits(x):
    async def inner(v):
        return v + 1

    async def outer(v):
        return await inner(v) + await inner(BREAK(v))

    return drive(outer(x))


@program
def coroutine_with_contexts(x):
    async def work(v):
        async with Scope() as n:
            v = v + n
        async for k in Counting(2):
            v = v + k
        return v

    return BREAK(drive(work(BREAK(x))))


@program
def coroutine_raises(x):
    async def work(v):
        raise ValueError(v.dim())

    y = BREAK(x)
    try:
        drive(work(y))
    except ValueError as error:
        y = y + error.args[0]
    return y


@program
def coroutine_defined_only(x):
    async def work(v):
        return v

    async def items():
        yield 1

    y = BREAK(x)
    return y + len(work.__name__), work.__code__.co_flags & 0x80, BREAK(callable(items))
