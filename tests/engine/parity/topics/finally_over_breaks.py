"""`finally` that runs normally, by a return, by an exception, with a break in it or before it."""

SEEN = []


def low(n):
    if n > 2:
        raise ValueError(n)
    return n


@program
def normal(x):
    try:
        y = BREAK(x + 1)
    finally:
        y = BREAK(x * 2)
    return BREAK(y)


@program
def by_a_return(x):
    try:
        y = x + 1
        return BREAK(y)
    finally:
        SEEN.append(BREAK(1))


@program
def return_replaced(x):
    try:
        return BREAK(x + 1)
    finally:
        return BREAK(x * 3)  # noqa: B012


@program
def by_an_exception(x):
    try:
        y = BREAK(x + low(3))
    finally:
        SEEN.append(BREAK(2))
    return y


@program
def nested(x):
    y = x
    try:
        try:
            y = BREAK(y + 1)
        finally:
            y = BREAK(y * 2)
    finally:
        y = BREAK(y - 1)
    return y


@program
def nested_returns(x):
    try:
        try:
            return BREAK(x + 1)
        finally:
            SEEN.append(1)
    finally:
        SEEN.append(BREAK(2))


@program
def with_else(x):
    y = x
    try:
        y = y + 1
    except ValueError:
        y = y - 1
    else:
        y = BREAK(y * 2)
    finally:
        y = BREAK(y + 5)
    return BREAK(y)


@program
def handler_and_finally(x):
    y = BREAK(x)
    try:
        y = y + low(4)
    except ValueError as error:
        y = y + error.args[0]
    finally:
        y = BREAK(y * 2)
    return y


@program
def in_a_callee(x):
    def callee(v):
        try:
            return BREAK(v + 1)
        finally:
            SEEN.append(BREAK(3))

    return callee(x) + callee(x * 2)


@program
def around_a_loop(x):
    y = x
    try:
        for i in range(3):
            y = y + i
    finally:
        y = BREAK(y * 2)
    BREAK()
    return y


@program
def left_by_break(x):
    y = x
    for i in range(3):
        try:
            y = y + 1
            if i == 1:
                break
        finally:
            SEEN.append(i)
    return BREAK(y)


@program
def left_by_continue(x):
    y = x
    for i in range(3):
        try:
            if i == 1:
                continue
            y = y + i
        finally:
            y = y * 2
    return BREAK(y) + BREAK(1)


@program
def deletes(x):
    y = BREAK(x + 1)
    try:
        z = y * 2
    finally:
        del y
    return BREAK(z)


@program
def writes_cells(x):
    n = 0

    def count():
        nonlocal n
        n += 1
        return n

    try:
        y = x + count()
        BREAK()
    finally:
        y = y * count()
    return y, BREAK(n)


@program
def reraises(x):
    try:
        try:
            y = BREAK(x + low(5))
        finally:
            SEEN.append("inner")
    except ValueError:
        y = x - 1
    return BREAK(y)


@program
def another_from_finally(x):
    try:
        y = BREAK(x + 1)
    finally:
        low(6)
    return y


@program
def with_a_context(x):
    y = x
    with torch.no_grad():
        try:
            y = BREAK(y + 1)
        finally:
            y = BREAK(y * 2)
    return y, torch.is_grad_enabled()
