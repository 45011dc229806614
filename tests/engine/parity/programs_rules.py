"""Programs for the rules behind the table (row 37): what gets an entry, what shares history."""

import torch
from parity.harness import registry

PROGRAMS, program = registry()


def xs(*shapes):
    return [(torch.ones(shape),) for shape in shapes]


@program("list_of_argument", 37, graphs=0, frames=(1, 1), entries=0)
def _():
    def f(x):
        return [x, x]

    return f, xs(3, 3)


@program("int_computed", 37, graphs=0, frames=(1, 1), entries=0)
def _():
    def f(x, n):
        return n * 2 + 1

    return f, [(torch.ones(3), 4), (torch.ones(3), 4)]


@program("attribute_written", 37, graphs=0, frames=(1, 1), entries=0)
def _():
    class Net(torch.nn.Module):
        def forward(self, x):
            self.last = 5
            return x

    return Net(), xs(3, 3)


@program("operation_or_nothing", 37, graphs=1, recompiles=1, entries=1)
def _():
    def f(x, b):
        if b:
            return x + 1
        return x

    return f, [(torch.ones(3), True), (torch.ones(3), False), (torch.ones(3), True)]


def both(fn, tc):
    one, other = tc(fn[0]), tc(fn[1])
    return lambda i, *arguments: (one, other)[i](*arguments)


@program("lambdas_on_one_line", 37, graphs=2, recompiles=0, entries=2, build=both)
def _():
    pair = (lambda x: x * 2), (lambda x: x * 3)
    return pair, [(0, torch.ones(3)), (1, torch.ones(4)), (1, torch.ones(5))]


@program("compiled_in_compiled", 37, graphs=1, frames=(1, 1), build=lambda fn, tc: tc(fn(tc)))
def _():
    def make(tc):
        def inner(x):
            return x * 2

        inner = tc(inner)

        def outer(x):
            return inner(x + 1) + 3

        return outer

    return make, xs(3, 3)


@program("generator_function", 37, graphs=0)
def _():
    def f(x):
        yield x + 1
        yield x + 2

    return f, xs(3, 3)


@program("branch_before_any_operation", 37, graphs=2, breaks=1, frames=(3, 3))
def _():
    def f(x):
        if x.sum() > 0:
            return x
        return x * 2

    return f, [(torch.ones(3),), (-torch.ones(3),)]


@program("broadcast_equality", 37, graphs=3, recompiles=2)
def _():
    def f(x, y):
        return x + y

    sizes = ((3, 3), (4, 4), (5, 1), (6, 6))
    return f, [(torch.ones(a), torch.ones(b)) for a, b in sizes]


@program("module_width_static", 37, graphs=2, recompiles=1, before=lambda i, m: m.widen() if i == 2 else None)
def _():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))

        def widen(self):
            self.weight = torch.nn.Parameter(torch.ones(1))

        def forward(self, x):
            return x * self.weight

    return Net(), xs(3, 3, 3, 3)


@program("exception_from_caller_line", 37, graphs=0, breaks=2)
def _():
    def check(x):
        if x.shape[0] > 2:
            raise ValueError(f"too long: {x.shape[0]}")

    def f(x):
        y = x + 1
        check(y)
        return y

    return f, xs(3)


@program("arguments_changed", 37, graphs=1)
def _():
    def f(x, items, table):
        x.add_(1)
        items.append(x * 2)
        table["n"] = table.get("n", 0) + 1
        return x.sum()

    return f, [(torch.ones(3), [], {}), (torch.ones(3), [], {})]


@program("random_numbers", 37, graphs=1)
def _():
    def f(x):
        return x + torch.rand(3) * torch.randn(3)

    return f, xs(3, 3)


@program("decorated_in_the_frame", 37, graphs=1, frames=(1, 1), entries=1)
def _():
    def f(x):
        @torch.autocast("cpu", dtype=torch.bfloat16)
        def product(x):
            return x @ x

        return product(x) + 1

    return f, xs((3, 3), (3, 3))


@program("default_dtype_set", 37, graphs=1, frames=(1, 1), entries=1)
def _():
    def f(x):
        torch.set_default_dtype(torch.float64)
        y = torch.ones(3)
        torch.set_default_dtype(torch.float32)
        return x + y

    return f, xs(3, 3)


@program("asked_whether_compiled", 37, graphs=0, frames=(1, 1), entries=1, torch_differs="it is compiled")
def _():
    def f(x):
        return "compiled" if torch.compiler.is_compiling() else "plain"

    return f, xs(3, 3)


class Own(torch.nn.Module):
    """A class that functions without operations name."""


def _without_operations(name, fn):
    program(name, 37, graphs=0, frames=(1, 1), entries=1)(lambda: (fn, xs(3, 3)))


def imports_a_class(x):
    from torch.nn import Linear  # noqa: F401

    return x is None


def names_a_class(x):
    cls = Own
    return isinstance(x, cls)


_without_operations("class_of_modules_imported", imports_a_class)
_without_operations("class_of_modules_named", names_a_class)


@program("history_of_a_result_asked_for", 37, graphs=0, breaks=1, frames=(1, 0), entries=0)
def _():
    return lambda x: x.sin().grad_fn is None, [(torch.ones(3, requires_grad=True),)] * 2
