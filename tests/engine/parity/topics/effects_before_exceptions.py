"""Side effects, in program order, before an exception leaves the frame or its handler."""


class Holder:
    def __init__(self):
        self.value, self.log = 0, []

    def add(self, n):
        self.log.append(n)
        self.value += n
        if n > 2:
            raise ValueError(f"too many: {n}")
        return n


HOLDER = Holder()
ITEMS, TABLE = [], {}
COUNT = 0


def count():
    global COUNT
    COUNT += 1
    return COUNT


@program
def a_list(x):
    ITEMS.append(1)
    y = BREAK(x + 1)
    ITEMS.append(2)
    BREAK()
    ITEMS[5] = y
    return y


@program
def a_dict(x):
    TABLE["a"] = 1
    y = BREAK(x + 1)
    TABLE["b"] = TABLE["a"] + 1
    TABLE.pop(BREAK("missing"))
    return y


@program
def an_attribute(x):
    HOLDER.value = BREAK(1)
    y = x + HOLDER.value
    HOLDER.other = BREAK(2)
    return y + HOLDER.missing


@program
def in_a_method(x):
    y = x + HOLDER.add(1)
    y = y + HOLDER.add(BREAK(2))
    return y + HOLDER.add(BREAK(3))


@program
def a_global(x):
    y = x + count()
    BREAK()
    y = y + count()
    raise KeyError(BREAK(COUNT))


@program
def printed(x):
    print("first")
    y = x + 1
    print("second", COUNT)
    raise ValueError(y.dim())


@program
def an_argument(x):
    x.add_(1)
    ITEMS.append(BREAK(1))
    x.mul_(2)
    raise ValueError(BREAK("argument"))


@program
def an_argument_and_a_failing_operator(x):
    x.add_(1)
    BREAK()
    return x @ torch.ones(5)


@program
def of_a_failing_shape(x):
    ITEMS.append(1)
    y = x + 1
    ITEMS.append(2)
    return y.reshape(7)


@program
def of_a_failing_index(x):
    ITEMS.append(1)
    y = BREAK(x + 1)
    ITEMS.append(2)
    return y[7]


@program
def caught_inside(x):
    y = BREAK(x)
    try:
        HOLDER.add(5)
    except ValueError as error:
        ITEMS.append(str(error))
    y = y + len(ITEMS)
    return y, BREAK(HOLDER.value)


@program
def of_an_iterator(x):
    items = iter(range(3))
    y = x + next(items)
    ITEMS.append(next(items))
    BREAK()
    ITEMS.append(next(items))
    ITEMS.append(next(items))
    return y


@program
def while_unpacking(x):
    ITEMS.extend([1, 2])
    y = BREAK(x)
    a, b = [count(), count(), count()]
    return y + a + b


@program
def of_a_new_object_that_escaped(x):
    new = Holder()
    TABLE["new"] = new
    new.value = 3
    y = BREAK(x + new.value)
    new.add(1)
    new.add(BREAK(4))
    return y


@program
def of_a_comprehension(x):
    y = BREAK(x)
    found = [HOLDER.add(i) for i in range(1, 5)]
    return y, found


@program
def in_a_cell(x):
    n = 0

    def step(k):
        nonlocal n
        n += k
        TABLE["n"] = n
        return 1 // (3 - n)

    y = x + step(1)
    BREAK()
    y = y + step(1)
    return y + step(BREAK(1))


@program
def of_dels(x):
    TABLE.update(a=1, b=2)
    del TABLE["a"]
    y = BREAK(x)
    del TABLE["a"]
    return y


@program
def sorting(x):
    ITEMS.extend([3, 1, 2])
    ITEMS.sort()
    y = BREAK(x + ITEMS[0])
    ITEMS.append("text")
    ITEMS.sort()
    return y


@program
def handler_that_writes(x):
    try:
        HOLDER.add(3)
    except ValueError as error:
        HOLDER.log.append(str(error))
        raise KeyError("again") from error


@program
def raised_in_a_with(x):
    class Scope:
        def __enter__(self):
            ITEMS.append("in")

        def __exit__(self, *_):
            ITEMS.append("out")

    y = BREAK(x)
    with Scope():
        ITEMS.append(1)
        raise IndexError(y.dim())
