"""Programs with graph breaks, and frames that are given up. Figures: torch 2.13, Python 3.11."""

import contextlib
import io
import logging
import random
import warnings

import torch
from parity.harness import registry

PROGRAMS, program = registry()


class Printing(torch.nn.Module):
    """A block that prints; ``layer_idx`` isn't read."""

    def __init__(self, index=None):
        super().__init__()
        self.layer_idx = index

    def forward(self, x):
        x = x * 3
        print("block")
        return x.sin()


class PrintingIndex(Printing):
    def forward(self, x):
        x = x * 3 + self.layer_idx
        print("block")
        return x.sin()


class PrintingScaled(torch.nn.Module):
    """A block with a parameter: its result needs a gradient, so a second block's input differs."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        x = x * self.scale
        print("block")
        return x.sin()


class Stack(torch.nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = torch.nn.ModuleList(blocks)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def xs(*shapes):
    """One call for each shape; a number is a size."""
    return [(torch.ones(shape) if isinstance(shape, tuple) else torch.ones(shape),) for shape in shapes]


@program("blocks_in_loop_print", 1, graphs=2, breaks=2, frames=(3, 2))
def _():
    return Stack([Printing() for _ in range(12)]), xs(4, 4)


@program("blocks_in_loop_read_index", 2, graphs=9, breaks=9, recompiles=8, frames=(11, 9))
def _():
    return Stack([PrintingIndex(i) for i in range(12)]), xs(4, 4)


@program("three_blocks_in_a_row", 3, graphs=4, breaks=4, frames=(6, 6))
def _():
    class Three(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = Printing(), Printing(), Printing()

        def forward(self, x):
            x = self.a(x + 1)
            x = self.b(x)
            return self.c(x) * 2

    return Three(), xs(4, 4)


@program("sequential_direct", 4, graphs=3, breaks=3, recompiles=1, frames=(4, 4))
def _():
    return torch.nn.Sequential(*(PrintingScaled() for _ in range(4))), xs(4, 4)


@program("sequential_in_function", 4, graphs=5, breaks=3, recompiles=1, frames=(5, 5))
def _():
    blocks = torch.nn.Sequential(*(PrintingScaled() for _ in range(4)))

    def f(x):
        return blocks(x + 1) * 2

    return f, xs(4, 4)


@program("print_in_for", 5, graphs=0, breaks=1, frames=(1, 0))
def _():
    def f(x):
        for _ in range(3):
            x = x + 1
            print("step")
        return x

    return f, xs(3, 3)


@program("print_in_while", 5, graphs=0, breaks=1, frames=(1, 0))
def _():
    def f(x):
        n = 0
        while n < 3:
            x = x + 1
            print("step")
            n += 1
        return x

    return f, xs(3, 3)


@program("print_before_and_in_loop", 5, graphs=1, breaks=2, frames=(2, 1))
def _():
    def f(x):
        x = x * 2
        print("before")
        for _ in range(3):
            x = x + 1
            print("step")
        return x

    return f, xs(3, 3)


@program("print_in_try", 6, graphs=0, breaks=1, frames=(1, 0))
def _():
    def f(x):
        try:
            x = x + 1
            print("trying")
            x = x * 2
        except ValueError:
            x = x - 1
        return x

    return f, xs(3, 3)


@program("print_in_except", 6, graphs=0, breaks=1, frames=(1, 0))
def _():
    def f(x):
        try:
            x = x + 1
            raise ValueError("wrong")
        except ValueError:
            print("caught")
            x = x - 1
        return x

    return f, xs(3, 3)


@program("print_in_finally", 6, graphs=2, breaks=1, frames=(2, 2))
def _():
    def f(x):
        try:
            x = x + 1
        finally:
            print("finally")
            x = x * 2
        return x

    return f, xs(3, 3)


@program("print_in_no_grad", 7, graphs=2, breaks=1, frames=(2, 2))
def _():
    def f(x):
        with torch.no_grad():
            x = x + 1
            print("inside")
            x = x * 2
        return x

    return f, xs(3, 3)


@program("print_in_contextmanager", 7, graphs=0, breaks=1, frames=(6, 4))
def _():
    @contextlib.contextmanager
    def scope():
        yield 1

    def f(x):
        with scope():
            x = x + 1
            print("inside")
            x = x * 2
        return x

    return f, xs(3, 3)


@program("printing_generator", 8, graphs=0, breaks=1, frames=(1, 0))
def _():
    def numbers():
        for i in range(3):
            print("number")
            yield i

    def f(x):
        for number in numbers():
            x = x + number
        return x

    return f, xs(3, 3)


@program("print_in_comprehension", 8, graphs=1, breaks=2, frames=(3, 2))
def _():
    def f(x):
        x = x + 1
        ys = [print(i) or x * i for i in range(3)]
        return ys

    return f, xs(3, 3)


@program("three_calls_deep", 9, graphs=6, breaks=3, frames=(6, 6))
def _():
    def inner(x):
        x = x + 1
        print("inner")
        return x * 2

    def middle(x):
        return inner(x + 3) * 4

    def f(x):
        return middle(x + 5) * 6

    return f, xs(3, 3)


@program("if_both_ways", 10, graphs=3, breaks=1, frames=(3, 3))
def _():
    def f(x):
        y = x * 2
        if x.sum() > 0:
            return y + 1
        return y - 1

    return f, [(torch.ones(3),), (-torch.ones(3),), (torch.ones(3),)]


@program("if_in_loop", 10, graphs=0, breaks=1, frames=(1, 0))
def _():
    def f(x):
        for _ in range(3):
            if x.sum() > 0:
                x = x + 1
            else:
                x = x - 1
        return x

    return f, [(torch.ones(3),), (-torch.ones(3),)]


@program("if_return_early", 10, graphs=2, breaks=1, frames=(3, 3))
def _():
    def f(x, mask):
        x = x + 1
        if mask.all():
            return x
        return x * mask

    ones = torch.ones(3, dtype=torch.bool)
    return f, [(torch.ones(3), ones), (torch.ones(3), ~ones)]


@program("item_as_scale", 11, graphs=3, breaks=1, recompiles=1, frames=(3, 3))
def _():
    def f(x):
        return x * x.sum().item()

    return f, [(torch.full((3,), float(i + 2)),) for i in range(5)]


def logger():
    log = logging.Logger("parity")
    log.addHandler(logging.StreamHandler(io.StringIO()))
    return log


@program("logger_warning", 26, graphs=2, breaks=1)
def _():
    log = logger()

    def f(x):
        x = x + 1
        log.warning("hello")
        return x * 2

    return f, xs(3, 3)


@program("warn_first_line", 26, graphs=1, breaks=1)
def _():
    def f(x):
        warnings.warn("careful")
        return x * 2

    return f, xs(3, 3)


@program("random_random", 26, graphs=2, breaks=1, recompiles=1, frames=(3, 3))
def _():
    def f(x):
        return x * random.random()

    return f, xs(3, 3)


@program("uncaught_raise", 27, graphs=0, breaks=1)
def _():
    def f(x):
        x = x + 1
        raise ValueError("wrong")

    return f, xs(3, 3)


@program("assert_tensor", 27, graphs=1)
def _():
    def f(x):
        assert x.sum() > 0
        return x * 2

    return f, xs(3, 3)


@program("caught_raise", 27, graphs=1)
def _():
    def f(x):
        x = x + 1
        try:
            raise ValueError("wrong")
        except ValueError:
            x = x * 2
        return x

    return f, xs(3, 3)


@program("lstm_in_function", 28, graphs=0, breaks=2, frames=(1, 0))
def _():
    lstm = torch.nn.LSTM(3, 4)

    def f(x):
        out, _ = lstm(x + 1)
        return out * 2

    return f, xs((2, 1, 3), (2, 1, 3))


@program("gru_in_function", 28, graphs=0, breaks=2, frames=(1, 0))
def _():
    gru = torch.nn.GRU(3, 4)

    def f(x):
        out, _ = gru(x + 1)
        return out * 2

    return f, xs((2, 1, 3), (2, 1, 3))


def weight_of(step):
    return step.weight.detach().clone()


@program("adam_step", 29, graphs=1, breaks=2, frames=(10, 10), state=weight_of)
def _():
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.full((3,), 0.5)
    optimizer = torch.optim.Adam([weight])

    def step():
        optimizer.step()

    step.weight = weight
    return step, [() for _ in range(4)]


@program("backward_last", 29, graphs=1, breaks=1, frames=(3, 3))
def _():
    layer = torch.nn.Linear(3, 1)

    def step(x):
        loss = layer(x).sum()
        loss.backward()

    return step, xs((2, 3), (2, 3), (2, 3))


@program("decorated_forward", 33, graphs=2, breaks=2, frames=(3, 3))
def _():
    def decorate(forward):
        def wrapper(self, x):
            return forward(self, x)

        return wrapper

    class Decorated(torch.nn.Module):
        @decorate
        def forward(self, x):
            x = x + 1
            print("inside")
            return x * 2

    return Decorated(), xs(3, 3)


@program("format_size_unused", 35, graphs=2, recompiles=1, frames=(2, 2))
def _():
    def f(x):
        text = f"{x.shape[0]}"
        return x + 1

    return f, xs(3, 4, 5)


@program("format_size_returned", 35, graphs=2, breaks=1, recompiles=1, frames=(3, 3))
def _():
    def f(x):
        return x + 1, str(x.shape), f"{x.shape[0]}"

    return f, xs(3, 4, 5)


@program("return_argument", 35, graphs=0, frames=(1, 1))
def _():
    def f(x):
        return x

    return f, xs(3, 4, 5)


def rows_of(*numbers):
    return [(torch.ones(3, 2), torch.tensor([number])) for number in numbers]


@program("raises_in_a_try", 37, graphs=1, frames=(1, 1), torch_differs="the handler is passed")
def _():
    def f(table, index):
        try:
            return torch.nn.functional.embedding(index, table) + 1
        except IndexError:
            return table - 1

    return f, rows_of(1, 7, 2)


@program("raises_in_an_else", 37, graphs=1, frames=(1, 1), torch_differs="the handler is passed")
def _():
    def f(table, index):
        try:
            try:
                found = table[index]
            finally:
                table = table + 1
        except IndexError:
            found = table
        else:
            found = found + table.sum()
        return found * 2

    return f, rows_of(7, 1, 7)


@program("fallback_after_a_write", 37, graphs=1, frames=(1, 1), entries=1)
def _():
    def f(table, index):
        table.mul_(2)
        try:
            table.index_copy_(0, index, torch.ones(index.shape[0], table.shape[1]))
        except NotImplementedError:
            table[index] = 1
        return table - 1

    return f, rows_of(1, 2, 0)


@program("clause_of_a_name_that_is_not_there", 37, graphs=1, frames=(1, 1), entries=1)
def _():
    def f(x):
        y = x * 2
        try:
            z = torch.linalg.inv(y)
        except NoSuchError:  # noqa: F821
            return x
        return z + 1

    return f, [(torch.eye(2),)] * 2


@program("raises_after_a_write", 37, graphs=1, frames=(1, 1), torch_differs="the handler is passed")
def _():
    def f(table, index):
        table.mul_(2)
        try:
            return torch.nn.functional.embedding(index, table)
        except IndexError:
            return table - 1

    return f, rows_of(1, 7, 2)


@program("assert_with_a_text", 37, graphs=1, frames=(1, 1))
def _():
    def f(x):
        assert x.sum() > 0, "positive"
        return x + 1

    return f, [(torch.ones(3),)] * 2


@program("assert_with_a_computed_text", 37, graphs=3, breaks=2, frames=(3, 3))
def _():
    def f(x):
        y = x + 1
        assert y.sum() > 0, f"positive, not {y.shape}"
        assert y.sum() > 0, "positive, not " + str(y.dtype)
        return y + 1

    return f, [(torch.ones(3),)] * 2


def _whole(name, fn, *calls, **figures):
    """What only the data tells, under fullgraph: no break."""

    @program(f"whole_{name}", 37, graphs=1, frames=(1, 1), compile={"fullgraph": True}, **figures)
    def _():
        return fn, [(torch.tensor(values),) for values in calls or ([0.0, 1.0, 2.0], [1.0, 0.0, 3.0])]


_whole("item", lambda x: x * x.sum().item())
_whole("int", lambda x: x * int(x.sum()))
_whole("float", lambda x: x * float(x.sum()))
_whole("bool", lambda x: x * bool(x.sum() > 0))
_whole("size_from_data", lambda x: torch.ones(int(x.sum())) + 1)
_whole("slice_to_data", lambda x: x[: int(x.nonzero()[0])].sum())
_whole("nonzero", lambda x: x.nonzero() + 1)
_whole("mask", lambda x: x[x > 0] * 2)
_whole("unique", lambda x: x.unique() * 2)
_whole("tolist", lambda x: x * x.to(torch.int64).tolist()[1])


def guarded(operation):
    def f(x, index):
        h = torch.nn.functional.dropout(x, 0.5, False)
        try:
            return operation(h, index)
        except IndexError:
            return h

    return f


@program("scatter_in_a_try", 41, graphs=1, entries=1)
def _():
    def added(h, index):
        return h.new_zeros(2, 3).scatter_add_(0, index, h).index_select(0, index[0])

    return guarded(added), [(torch.ones(4, 3), torch.zeros(4, 3, dtype=torch.int64))] * 2


@program("while_a_tensors_value", 28, graphs=2, breaks=2)
def _():
    def f(x):
        while x.sum() < 100:
            x = x * 2 + 30
        return x

    return f, [(torch.ones(3),), (torch.ones(3),)]
