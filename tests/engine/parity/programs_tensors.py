"""Tensors of one number where Python or an operator needs the number (row 42): constants of the frame as sizes, `max` and
`min`; sizes asked for before a break, which are operations of their own; hooks on tensors made in the frame; loggers."""

import functools
import logging

import torch
from parity.harness import registry

PROGRAMS, program = registry()


def given(*sizes, integers=False):
    return [(torch.arange(n) if integers else torch.arange(n) * 1.0,) for n in sizes or (6, 6)]


def on(calls=given, graphs=1, entries=1, **figures):
    def add(fn):
        program(f"tensors_{fn.__name__}", 42, graphs=graphs, entries=entries, **figures)(
            lambda: (fn, calls())
        )
        return fn

    return add


def varying():
    return given(3, 5, 6, 7)


# -- constants as sizes


@on()
def constant_as_size(x):
    return x.view(torch.tensor(2), 3) + 1


@on()
def quotient_of_numbers_as_size(x):
    return x.view(torch.div(x.size(0), 3, rounding_mode="trunc"), 3)


@on()
def arithmetic_of_constants(x):
    n = torch.tensor(x.shape[0]) // 2
    return x.repeat(n - 1), x.split(n), x.sum(torch.tensor(0)), x.roll(-torch.tensor(1))


# -- the largest and the smallest


@on(lambda: given(integers=True))
def largest_of_integers(x):
    a, b = x.max(), x.sum()
    return max(a, b), min([b, a]), max(x[1:3])


@on(torch_differs="nan is the largest")
def largest_of_floats(x):
    a, b = x.mean(), x.std()
    return max(a, b), max(a, b * float("nan")), max(b * float("nan"), a), min(a, a + 1, b)


@on(lambda: given(integers=True), torch_differs="a number comes back as a tensor")
def largest_of_a_number(x):
    return max(x.max(), 3), max(40, x.max()), min(x.float().mean(), 1.5, 7)


@on(graphs=2, breaks=1, entries=2)
def largest_and_a_break(x):
    most = max(x.mean(), x.std())
    print("between")
    return most * 2


# -- sizes asked for before a break


@on(varying, graphs=3, recompiles=2, breaks=2, entries=4)
def size_before_a_break(x):
    n = x.shape[0]
    print("between")
    return x * n


@on(varying, graphs=3, recompiles=2, breaks=2, entries=4)
def size_before_a_break_unused(x):
    x.size(0)
    print("between")
    return x + 1


@on(varying, graphs=3, recompiles=2, breaks=2, entries=4)
def remainder_before_a_break(x):
    missing = (4 - x.shape[0] % 4) % 4
    print("between")
    return torch.nn.functional.pad(x, (0, missing))


# -- hooks on tensors made in the frame


def backward(fn, tc):
    compiled = tc(fn)

    def call(x):
        leaf = x.clone().requires_grad_()
        result = compiled(leaf)
        result.backward()
        return result, leaf.grad

    return call


def hooked(**figures):
    return on(**figures, build=backward)


@hooked()
def hook_scales(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 3)
    return (y * y).sum()


@hooked()
def hooks_use_the_frame(x):
    y, w = x * 2, x.sigmoid()
    z = y * y
    y.register_hook(lambda grad: grad * w)
    y.register_hook(lambda grad: grad.clamp(-1, 1) / grad.shape[0])
    y.register_hook(lambda grad: None)
    return z.sum()


@hooked(graphs=2, breaks=1, entries=2)
def hook_prints(x):
    y = x * 2
    y.register_hook(lambda grad: print("gradient"))
    return (y * y).sum()


@hooked(graphs=2, breaks=1, entries=2)
def hook_asks_for_strides(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 2 if grad.is_contiguous() else grad * 3)
    return (y * y).sum()


# -- loggers

log = logging.getLogger("parity")
log.setLevel(logging.CRITICAL)


@functools.lru_cache(None)
def once(self, text):
    self.warning(text)


logging.Logger.parity_once = once
logging.Logger.parity_plain = lambda self, text: self.warning(text)


@on(graphs=2, breaks=1, entries=2)
def logger_method_of_a_library(x):
    y = x + 1
    log.parity_once("once")
    return y * 2


@on(graphs=3, breaks=2, entries=3)
def logger_methods(x):
    y = x + 1
    log.parity_plain("text")
    y = y * 2
    return y if log.isEnabledFor(logging.DEBUG) else y + 2


# -- a function that the frame knows by itself before it looks at an argument


@on(
    lambda: [(torch.full((2,), 2.0), fn, 3) for fn in (torch.Tensor.mul, torch.Tensor.add, torch.Tensor.mul)],
    torch_differs="the argument isn't guarded",
)
def argument_among_known_functions(x, fn, n):
    return fn(x, n) + 1 if fn in (torch.mul, torch.Tensor.mul) else fn(x, n)


# -- bound methods of tensors that wait on the stack while an argument breaks; addresses; types asked for by methods


@torch.compiler.disable
def three():
    return 3


@on(breaks=4, graphs=0, entries=4)
def methods_wait_for_arguments(x):
    return x.mul(three()), x.add(three())


@on(breaks=4, entries=5)
def methods_wait_again(x):
    y = x.mul(three())
    return y + x.add(three()).sum()


@on(lambda: [(torch.ones(3), torch.ones(3).sin) for _ in range(3)], breaks=1, entries=2)
def bound_method_given(x, method):
    return x + method()


@on(breaks=1, graphs=2, entries=2)
def addresses_compared(x):
    y = x.view(-1)
    return x + 1 if x.data_ptr() == y.data_ptr() else x - 1


@on()
def address_of_the_same(x):
    return x + 1 if x.data_ptr() == x.data_ptr() else x - 1


@on(breaks=1, entries=2)
def address_and_a_number(x):
    return x + 1 if 0 == x.data_ptr() else x - 1


@on(breaks=1)
def address_used_behind_the_graph(x):
    y = x + 1
    return y, y.data_ptr() != 0


@on(breaks=5, graphs=0, entries=5)
def methods_of_types(x):
    return x.to(x.dtype.to_complex()), x.to(torch.complex64.to_real()), x.dtype.to_complex()


@on(lambda: [(torch.ones(3, 4), torch.tensor(n)) for n in (2, 3, 2)], graphs=2, recompiles=1, entries=2)
def number_of_parts_given(x, parts):
    return torch.tensor_split(x, parts, 1)


@on(
    lambda: [(torch.ones(3, requires_grad=True),)] * 2,
    graphs=0,
    entries=0,
    torch_differs="another exception",
)
def history_denied(x):
    return (x * 2).requires_grad_(False) + 1
