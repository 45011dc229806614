"""Programs whose tensors change size, stride or relation between calls."""

import torch
from parity.harness import registry

PROGRAMS, program = registry()


def xs(*shapes):
    return [(torch.ones(shape),) for shape in shapes]


@program("one_size", 15, graphs=4, recompiles=3)
def _():
    def f(x):
        return x * 2

    return f, xs(4, 8, 1, 0, 16)


@program("batch_sizes", 15, graphs=3, recompiles=2)
def _():
    def f(x):
        return x * 2

    return f, xs((4, 3), (1, 3), (8, 3), (2, 3))


def pairs(*sizes):
    return [(torch.ones(a), torch.ones(b)) for a, b in sizes]


@program("two_inputs", 16, graphs=2, recompiles=1)
def _():
    def f(x, y):
        return x.sum() + y.sum()

    return f, pairs((4, 4), (5, 5), (5, 6), (7, 9))


@program("two_inputs_dynamic", 16, graphs=2, recompiles=1, compile={"dynamic": True})
def _():
    def f(x, y):
        return x.sum() + y.sum()

    return f, pairs((5, 5), (5, 6))


@program("two_inputs_marked", 16, graphs=1)
def _():
    def f(x, y):
        return x.sum() + y.sum()

    calls = pairs((5, 5), (5, 6))
    for call in calls:
        for tensor in call:
            torch._dynamo.mark_dynamic(tensor, 0)
    return f, calls


@program("two_dimensions", 16, graphs=3, recompiles=2)
def _():
    def f(x):
        return x * 2

    return f, xs((4, 6), (5, 6), (5, 7), (7, 7))


@program("height_is_width", 16, graphs=2, recompiles=1)
def _():
    def f(x):
        return x * 2

    return f, xs((8, 8), (16, 16), (16, 24))


@program("branch_on_size", 17, graphs=3, recompiles=2)
def _():
    def f(x):
        if x.shape[0] > 6:
            return x + 1
        return x - 1

    return f, xs(3, 4, 5, 8, 9)


@program("embedding", 17, graphs=4, recompiles=3)
def _():
    table = torch.nn.Embedding(10, 3)

    def f(ids):
        return table(ids)

    return f, [(torch.ones(shape, dtype=torch.long),) for shape in ((2, 3), (2, 4), (3, 5), (1, 5))]


@program("break_and_sizes", 18, graphs=4, breaks=2, recompiles=2, frames=(4, 4))
def _():
    def f(x):
        y = x + 1
        print("between")
        return y * 2

    return f, xs(3, 4, 5)


@program("break_then_int", 18, graphs=3, breaks=1, recompiles=1, frames=(3, 3))
def _():
    def f(x, n):
        y = x + 1
        print("between")
        return y * n

    return f, [(torch.ones(3), n) for n in (3, 4, 5, 6)]


@program("strides", 25, graphs=3, recompiles=2)
def _():
    def f(x):
        return x * 2

    return f, [
        (torch.ones(4, 6),),
        (torch.ones(6, 4).t(),),
        (torch.ones(6, 4).t(),),
        (torch.ones(8, 12)[::2, ::2],),
    ]


@program("same_tensor_twice", 25, graphs=2, recompiles=1)
def _():
    def f(x, y):
        return x + y

    a, b = torch.ones(3), torch.ones(3)
    return f, [(a, b), (a, a), (b, a)]


@program("aliased_varargs", 25, graphs=3, recompiles=2)
def _():
    def f(*items):
        total = items[0] * 2
        for item in items[1:]:
            total = total + item
        return total

    a = torch.ones(3)
    return f, [(a,), (a, a), (a, a, a), (a,)]


@program("branches_that_go_on_in_one_line", 16, graphs=6, breaks=3, recompiles=2)
def _():
    def f(x):
        if x.sum() > 0 and x.max() < 5:
            return x * 2
        return x * 3

    return f, [(value * torch.ones(2, n),) for value, n in ((-1, 3), (-1, 4), (7, 3), (7, 4), (7, 6), (1, 3))]


SHOWN = {
    "shape": "f'{x.shape}'",
    "part": "f'got {x.shape} of {x.dtype}'",
    "tuple": "f'{tuple(x.shape)}'",
    "list": "f'{[1, x.shape[0]]}'",
    "format": "'{} {}'.format(x.shape, 1)",
    "mixed": "f'{x.shape[0] + 1} {x.shape}'",
    "asserted": "torch._assert(x.dim() == 1, f'got {x.shape}')",
}


def _shown(name, text):
    graphs = 3 if name == "mixed" else 2

    @program(f"text_of_sizes_{name}", 16, graphs=graphs, recompiles=graphs - 1, entries=graphs)
    def _():
        space = {"torch": torch}
        exec(compile(f"def f(x):\n    shown = {text}\n    return x + 1, shown", __file__, "exec"), space)
        return space["f"], xs(3, 4, 5)


for _name, _text in SHOWN.items():
    _shown(_name, _text)


@program("as_many_dimensions_as_never", 16, graphs=3, recompiles=2)
def _():
    return lambda x: x + 1, xs((10,), (2, 3), (12,), (4, 5), (50,))


@program("a_number_between_tensors", 16, graphs=3, recompiles=2)
def _():
    return lambda x: x + torch.ones(1), [
        (torch.ones(2, 3),),
        (3,),
        (torch.ones(3, 3),),
        (torch.ones(5, 4),),
        (4,),
    ]
