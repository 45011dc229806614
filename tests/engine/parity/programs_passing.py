"""What leaves a frame unread (row 37): returned, taken by the call at a break, deleted."""

from collections import deque

import torch
from parity.harness import registry

PROGRAMS, program = registry()


def pairs():
    return [(torch.ones(3), torch.ones(n)) for n in (3, 4, 5)]


@program("returned_unread", 37, graphs=2, recompiles=1, frames=(2, 2), entries=2)
def _():
    def f(x, y):
        return x + 1, y

    return f, pairs()


@program("unused_argument", 37, graphs=1, frames=(1, 1), entries=1)
def _():
    def f(x, y):
        return x + 1

    return f, pairs()


@program("list_returned_unread", 37, graphs=2, recompiles=1, frames=(2, 2), entries=2)
def _():
    def f(x, y):
        return x + 1, y

    return f, [(x, [y]) for x, y in pairs()]


@program("item_returned_unread", 37, graphs=2, recompiles=1, frames=(2, 2), entries=2)
def _():
    def f(x, y):
        return x + 1, y["a"]

    return f, [(x, {"a": y}) for x, y in pairs()]


@program("dict_written_and_returned", 37, graphs=2, recompiles=1, frames=(2, 2), entries=2)
def _():
    def f(x, y):
        y["out"] = x * 2
        return y

    return f, [(x, {"a": y}) for x, y in pairs()]


@program("attribute_returned_unread", 37, graphs=2, recompiles=1, frames=(2, 2), entries=2)
def _():
    class Box:
        def __init__(self, held):
            self.held = held

    def f(x, box):
        return x * 2, box.held

    return f, [(x, Box(y)) for x, y in pairs()]


@program(
    "keywords_returned_unread",
    37,
    graphs=2,
    recompiles=1,
    frames=(2, 2),
    entries=2,
    kwargs=lambda i: {"y": torch.ones(3 + i)},
)
def _():
    def f(x, **named):
        return x * 2, named

    return f, [(torch.ones(3),)] * 3


@program("objects_returned_unread", 37, graphs=5, recompiles=4, frames=(5, 5), entries=5)
def _():
    class One:
        pass

    class Other:
        pass

    def f(x, held):
        return x * 2, held

    return f, [(torch.ones(3), held) for held in (One(), Other(), [1], torch.nn.Linear(2, 2), None)]


@program("numbers_returned_unread", 37, graphs=1, frames=(1, 1), entries=1)
def _():
    def f(x, n, text):
        return x * 2, n, text

    return f, [(torch.ones(3), n, str(n)) for n in (2, 3, 4)]


@program("local_across_a_break", 37, graphs=3, breaks=1, recompiles=1, frames=(3, 3), entries=3)
def _():
    def f(x, y):
        x = x + 1
        print("b")
        return x * 2, y

    return f, pairs()


@program("stack_at_a_break", 37, graphs=2, breaks=2, recompiles=1, frames=(3, 3), entries=2)
def _():
    def f(x, y, n, m):
        return [y, n, x + 1, print("a"), m]

    return f, [(x, y, n, n + 1) for n, (x, y) in enumerate(pairs(), 1)]


@program("taken_at_a_break", 37, graphs=3, breaks=2, recompiles=1, frames=(3, 3), entries=3)
def _():
    @torch._dynamo.disable
    def first(*values):
        return values[0]

    def f(x, y, n):
        return first(x + 1, y, n, [y]) + 1

    return f, [(x, y, n) for n, (x, y) in enumerate(pairs(), 1)]


@program("deleted_unread", 37, graphs=4, recompiles=3, frames=(4, 4), entries=4)
def _():
    def f(x, y):
        del y
        return x * 2

    return f, [*pairs(), (torch.ones(3), 2), (torch.ones(3), 3), (torch.ones(3), "a")]


@program(
    "whole_graph_of_nothing",
    37,
    graphs=0,
    recompiles=1,
    frames=(2, 2),
    entries=2,
    compile={"fullgraph": True},
)
def _():
    def f(x, y):
        return 3

    return f, pairs()


@program("list_method_at_a_break", 37, graphs=8, breaks=4, recompiles=6, frames=(9, 9), entries=8)
def _():
    seen = []

    def f(x):
        y = x + 1
        seen.append(print("a"))
        return y * 2

    return f, [(torch.ones(3),) for _ in range(4)]


@program("dict_method_at_a_break", 37, graphs=3, breaks=1, recompiles=2, frames=(5, 5), entries=4)
def _():
    table = {"a": 2}

    def f(x):
        return x * table.get(str(print("q")) and "a")

    return f, [(torch.ones(3),) for _ in range(3)]


@program("string_method_at_a_break", 37, graphs=1, breaks=1, frames=(2, 2), entries=1)
def _():
    def f(x):
        y = x + 1
        return y * 2, ",".join([str(print("a"))])

    return f, [(torch.ones(3),) for _ in range(3)]


@program("deque_method_at_a_break", 37, graphs=8, breaks=4, recompiles=6, frames=(9, 9), entries=8)
def _():
    seen = deque()

    def f(x):
        y = x + 1
        seen.append(print("a"))
        return y * 2

    return f, [(torch.ones(3),) for _ in range(4)]


@program("set_method_at_a_break", 37, graphs=6, breaks=2, recompiles=4, frames=(7, 7), entries=6)
def _():
    seen = set()

    def f(x):
        y = x + 1
        seen.add(print("a"))
        return y * 2

    return f, [(torch.ones(3),) for _ in range(4)]


@program("deque_of_the_caller", 37, graphs=1, frames=(1, 1), entries=1)
def _():
    def f(x, queue):
        queue.append(x)
        first = queue.popleft()
        return x * first + len(queue), queue[0]

    return f, [(torch.ones(3), deque([1.0, torch.ones(3)])) for _ in range(3)]


@program("built_in_method_of_the_caller", 37, graphs=3, recompiles=2, frames=(3, 3), entries=3)
def _():
    seen = []
    append = seen.append

    def f(x, append):
        append(x)
        return x * 2

    return f, [(torch.ones(3), append) for _ in range(3)]
