"""Programs that share code objects: backends, instances, closures, regions, threads, modes."""

import contextlib
import sys
import threading

import torch
from parity.harness import registry
from torch.utils._python_dispatch import TorchDispatchMode

PROGRAMS, program = registry()


def xs(*shapes):
    return [(torch.ones(shape),) for shape in shapes]


def picked(compiled):
    return lambda i, *arguments: compiled[i](*arguments)


def own_backend(fn, tc):
    def backend(graph_module, example_inputs):
        return graph_module.forward

    return tc(fn, backend=backend)


def ten_backends(fn, tc):
    return picked([own_backend(fn, tc) for _ in range(10)])


@program("ten_backends", 19, graphs=8, recompiles=8, build=ten_backends)
def _():
    def f(x):
        return x * 2

    return f, [(i, torch.ones(3)) for i in range(10)]


@program(
    "dynamic_after_static",
    19,
    graphs=2,
    recompiles=1,
    build=lambda fn, tc: picked([tc(fn), tc(fn, dynamic=True)]),
)
def _():
    def f(x):
        return x * 2

    return f, [(0, torch.ones(3)), (1, torch.ones(3)), (1, torch.ones(3))]


@program(
    "fullgraph_after_partial",
    19,
    graphs=2,
    breaks=1,
    build=lambda fn, tc: picked([tc(fn), tc(fn, fullgraph=True)]),
)
def _():
    def f(x):
        x = x + 1
        print("between")
        return x * 2

    return f, [(0, torch.ones(3)), (1, torch.ones(3))]


class Scale(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * self.weight


def each(models, tc):
    return picked([tc(model) for model in models])


@program("ten_instances", 20, graphs=1, frames=(1, 1), build=each)
def _():
    return torch.nn.ModuleList(Scale(4) for _ in range(10)), [(i, torch.ones(4)) for i in range(10)]


@program("four_widths", 20, graphs=4, recompiles=3, build=each)
def _():
    return torch.nn.ModuleList(Scale(3 + i) for i in range(4)), [(i, torch.ones(3 + i)) for i in range(4)]


@program("ten_linears", 20, graphs=8, recompiles=8, frames=(9, 8), build=each)
def _():
    layers = torch.nn.ModuleList(torch.nn.Linear(2 + i, 2) for i in range(10))
    return layers, [(i, torch.ones(1, 2 + i)) for i in range(10)]


@program("ten_models_one_decorator", 20, graphs=8, recompiles=8, frames=(9, 8), build=each)
def _():
    def decorate(forward):
        def wrapper(self, x):
            return forward(self, x)

        return wrapper

    def model(number):
        class Model(torch.nn.Module):
            @decorate
            def forward(self, x):
                return x + number

        return Model()

    return torch.nn.ModuleList(model(i) for i in range(10)), [(i, torch.ones(3)) for i in range(10)]


def factory():
    def made(number):
        def f(x):
            return x * number

        return f

    return [made(0.5 + i) for i in range(10)]


@program("closure_factory", 21, graphs=2, recompiles=1, build=each)
def _():
    return factory(), [(i, torch.ones(3)) for i in range(10)]


@program("closure_factory_isolated", 21, graphs=10, build=each, compile={"isolate_recompiles": True})
def _():
    return factory(), [(i, torch.ones(3)) for i in range(10)]


def threaded(fn, tc):
    compiled = tc(fn)

    def call(x):
        gate, results = threading.Barrier(6), [None] * 6

        def work(i):
            gate.wait()
            results[i] = compiled(x)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        interval = sys.getswitchinterval()
        # All six look for an entry before the first has made one, on a busy machine too.
        sys.setswitchinterval(1e-6)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        return results

    return call


@program("six_threads", 34, graphs=6, recompiles=5, frames=(6, 6), build=threaded, runs=5)
def _():
    def f(x):
        return x * 2

    return f, xs(3)


class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def first_in_mode(i):
    return Passing() if i == 0 else contextlib.nullcontext()


@program("first_in_dispatch_mode", 36, graphs=0, frames=(0, 0), around=first_in_mode)
def _():
    def f(x):
        return x * 2

    return f, xs(3, 3)


def vmapped_at(*when):
    def build(fn, tc):
        compiled, counter = tc(fn), iter(range(10))
        return lambda x: torch.vmap(compiled)(x) if next(counter) in when else compiled(x)

    return build


@program("vmap_first", 36, graphs=0, breaks=1, frames=(1, 0), build=vmapped_at(0))
def _():
    def f(x):
        return x * 2

    return f, xs((2, 3), (2, 3))


@program("vmap_between", 36, graphs=1, breaks=1, recompiles=1, frames=(2, 1), build=vmapped_at(1))
def _():
    def f(x):
        return x * 2

    return f, xs((2, 3), (2, 3), (2, 3))
