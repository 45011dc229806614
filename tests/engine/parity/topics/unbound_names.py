"""Locals and cells that are unbound before, at or behind a break."""


@program
def deleted_and_read(x):
    y = x + 1
    del y
    BREAK()
    return y


@program
def deleted_after(x):
    y = BREAK(x + 1)
    z = y * 2
    del y
    return BREAK(z)


@program
def deleted_twice(x):
    y = BREAK(x)
    del y
    BREAK()
    del y
    return x


@program
def bound_on_one_side(x):
    if x.shape[0] > 5:
        y = x
    BREAK()
    return x + y


@program
def bound_behind(x):
    BREAK()
    if x.shape[0] == 3:
        y = BREAK(x)
    return x + y


@program
def argument_deleted(x):
    y = x + 1
    del x
    y = BREAK(y)
    return BREAK(y) * 2


@program
def argument_deleted_and_read(x):
    y = BREAK(x + 1)
    del x
    BREAK()
    return y + x


@program
def loop_variable_of_an_empty_loop(x):
    for i in range(0):
        x = x + i
    BREAK()
    return x + i


@program
def loop_variable_left(x):
    for i in range(2):
        x = x + i
    return x + BREAK(i)


@program
def handler_name_is_gone(x):
    try:
        raise ValueError(1)
    except ValueError as error:
        n = error.args[0]
    y = BREAK(x + n)
    return y, error


@program
def cell_deleted(x):
    n = 1

    def read():
        return n

    y = x + read()
    del n
    BREAK()
    return y + read()


@program
def cell_unbound_at_first(x):
    def read():
        return late

    BREAK()
    late = BREAK(2)
    return x + read()


@program
def cell_never_bound(x):
    def read():
        return never

    y = BREAK(x)
    if y.shape[0] > 5:
        never = 1
    return y + read()


@program
def cell_bound_again(x):
    n = 1

    def read():
        return n

    del n
    BREAK()
    n = BREAK(4)
    return x + read()


@program
def cell_deleted_by_an_inner_function(x):
    n = 1

    def drop():
        nonlocal n
        del n

    drop()
    BREAK()
    return x + n


@program
def global_missing(x):
    y = BREAK(x)
    return y + not_there


@program
def global_deleted(x):
    global GONE
    GONE = 2
    y = BREAK(x + GONE)
    del GONE
    BREAK()
    return y + GONE


@program
def several_unbound(x):
    a = b = c = x
    del b
    y = BREAK(a + c)
    b = y
    del a
    BREAK()
    return b + c


@program
def with_name_unbound(x):
    if x.shape[0] > 5:
        held = x
    with torch.no_grad():
        y = BREAK(x + 1)
    return y + held


@program
def class_name_deleted(x):
    class Made:
        value = 2

    made = Made()
    del Made
    y = BREAK(x)
    return y + made.value + BREAK(1)


@program
def deleted_in_a_loop(x):
    for i in range(2):
        y = x + i
        del y
    BREAK()
    return y


@program
def unbound_in_a_callee(x):
    def callee(v):
        if v.dim() > 3:
            w = v
        BREAK()
        return w

    return callee(x)


@program
def comprehension_name_stays_outside(x):
    i = 5
    found = [i for i in range(3)]
    return x + BREAK(i), found, BREAK(i)
