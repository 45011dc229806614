"""Comprehensions and iterators with breaks in them, around them, and between their items."""

import collections
import functools
import itertools


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Indexed:
    def __getitem__(self, index):
        if index > 2:
            raise IndexError
        return index * 2


@program
def list_comprehension(x):
    found = [i * 2 for i in range(BREAK(3))]
    return x + sum(found), BREAK(found)


@program
def list_comprehension_with_a_break(x):
    found = [BREAK(i) * 2 for i in range(3) if BREAK(i) != 1]
    return x + sum(found)


@program
def nested_comprehension(x):
    found = [[BREAK(i) + j for j in range(2)] for i in range(2)]
    return x + found[1][1]


@program
def dict_comprehension(x):
    found = {str(i): BREAK(x + i) for i in range(2)}
    return found["0"] + found["1"]


@program
def set_comprehension(x):
    found = {i % 2 for i in BREAK([1, 2, 3])}
    return x + len(found) + BREAK(1)


@program
def comprehension_of_tensors(x):
    parts = [part + 1 for part in (x, BREAK(x * 2))]
    return torch.stack(parts).sum() + BREAK(1)


@program
def over_a_tensor(x):
    found = [row * 2 for row in x]
    return BREAK(found[0]) + found[2]


@program
def two_loops(x):
    found = [i * j for i in range(3) for j in range(BREAK(2)) if i > j]
    return x + sum(found)


@program
def mapped(x):
    found = list(map(lambda i: BREAK(i + 1), [1, 2]))
    return x + sum(found)


@program
def mapped_lazily(x):
    items = map(lambda i: i + 1, [1, 2, 3])
    y = x + next(items)
    BREAK()
    return y + next(items)


@program
def filtered_lazily(x):
    items = filter(lambda i: i > 1, [1, 2, 3])
    y = x + next(items)
    BREAK()
    return y + next(items)


@program
def zipped_lazily(x):
    items = zip([1, 2, 3], (4, 5, 6))
    y = x + next(items)[0]
    BREAK()
    return y + next(items)[1]


@program
def enumerated_lazily(x):
    items = enumerate("abc")
    y = x + next(items)[0]
    BREAK()
    return y + next(items)[0]


@program
def reversed_lazily(x):
    items = reversed([1, 2, 3])
    y = x + next(items)
    BREAK()
    return y + next(items)


@program
def repeated_lazily(x):
    items = itertools.repeat(2)
    y = x + next(items)
    BREAK()
    return y + next(items)


@program
def repeated_a_few_times(x):
    items = itertools.repeat(2, 3)
    y = x + next(items)
    BREAK()
    return y + sum(items)


@program
def cycled_lazily(x):
    items = itertools.cycle([1, 2])
    y = x + next(items)
    BREAK()
    return y + next(items) + next(items)


@program
def of_a_sentinel(x):
    values = [1, 2, 3]
    items = iter(values.pop, 1)
    y = x + next(items)
    BREAK()
    return y + next(items), list(items)


@program
def sliced_lazily(x):
    items = itertools.islice(range(10), 2, 8, 2)
    y = x + next(items)
    BREAK()
    return y + next(items)


@program
def accumulated_lazily(x):
    items = itertools.accumulate([1, 2, 3])
    y = x + next(items)
    BREAK()
    return y + next(items)


@program
def chained_whole(x):
    y = x
    for i in itertools.chain([1, 2], BREAK((3,))):
        y = y + i
    return BREAK(y)


@program
def products_whole(x):
    found = [a * b for a, b in itertools.product([1, 2], BREAK([3, 4]))]
    return x + sum(found), BREAK(list(itertools.combinations(range(3), 2)))


@program
def reduced(x):
    y = functools.reduce(lambda a, b: a + b, [x, BREAK(x), x * 2])
    return BREAK(y)


@program
def of_a_class(x):
    y = x
    for n in Countdown(BREAK(3)):
        y = y + n
    return BREAK(y)


@program
def of_a_class_lazily(x):
    items = Countdown(3)
    y = x + next(items)
    BREAK()
    return y + sum(items)


@program
def of_indices(x):
    y = x
    for n in Indexed():
        y = y + n
    return BREAK(y) + sum(Indexed())


@program
def deque_lazily(x):
    items = collections.deque([1, 2, 3])
    items.rotate(BREAK(1))
    y = x + items.popleft()
    return y + BREAK(len(items))


@program
def sorted_by_a_key(x):
    found = sorted([3, 1, 2], key=lambda i: BREAK(-i))
    return x + found[0]


@program
def loop_with_else(x):
    y = x
    for i in BREAK([1, 2]):
        if i == 5:
            break
    else:
        y = BREAK(y + 1)
    return y


@program
def while_with_else(x):
    y, n = x, BREAK(0)
    while n < 2:
        y, n = y + n, n + 1
    else:
        y = BREAK(y * 2)
    return y


@program
def break_behind_the_loop_left_early(x):
    y = x
    for i in range(5):
        y = y + i
        if i == 2:
            break
    return BREAK(y) + i


@program
def dict_walked(x):
    table = {"a": 1, "b": 2}
    y = x
    for key, value in table.items():
        y = y + value + len(key)
    BREAK()
    for key in table:
        y = y + table[key]
    return y
