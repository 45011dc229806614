"""Frames that torch leaves for good (row 38): a break at an instruction that it doesn't go on behind splits the frame at
the last place before it where nothing was on the stack and two operations were recorded; the rest runs as it is."""

import threading

import numpy
import torch
from parity.harness import registry

PROGRAMS, program = registry()


class Loud:
    """Prints whatever is done with it."""

    @property
    def read(self):
        print("read")
        return 2

    def __getattr__(self, name):
        print("got", name)
        return 2

    def __iter__(self):
        print("iterated")
        return iter([1, 2])

    def __contains__(self, item):
        print("searched")
        return True

    def __delattr__(self, name):
        print("deleted")

    def __delitem__(self, key):
        print("removed")

    def __getitem__(self, key):
        print("item")
        return 3

    def __setitem__(self, key, value):
        print("stored")

    def __neg__(self):
        print("negated")
        return 1

    def __add__(self, other):
        print("added")
        return 1

    def __iadd__(self, other):
        print("increased")
        return self

    def __bool__(self):
        print("asked")
        return True

    def __eq__(self, other):
        print("compared")
        return True

    __hash__ = None

    def __call__(self):
        print("called")
        return 1

    def keys(self):
        print("keys")
        return ["a"]


def read(o, z):
    return o.read


def got(o, z):
    return o.missing


def searched(o, z):
    return 3 in o


def unpacked(o, z):
    a, b = o
    return a + b


def negated(o, z):
    return -o


def added(o, z):
    return o + 1


def items(o, z):
    return len([*o])


def merged(o, z):
    return len({**o})


def called(o, z):
    return o()


def item(o, z):
    return o[1]


def compared(o, z):
    return 1 if o == 1 else 2


def left(name, fn, graphs, entries, make=Loud, breaks=1):
    program(name, 38, graphs=graphs, breaks=breaks, entries=entries)(
        lambda: (fn, [(torch.ones(3), make()) for _ in range(2)])
    )


def in_a_callee(use):
    def f(x, o):
        y = x + 1
        z = y * 2
        a = use(o, z)
        return (z * 3 + a).sum()

    return f


for use in (read, got, searched, unpacked, negated, added, items, merged, called, item, compared):
    entries = 3 if use in (called, item, compared) else 2  # the callee goes on, too
    left(f"goes_on_behind_a_call_that_{use.__name__}", in_a_callee(use), 2, entries, breaks=2)


def attribute(x, o):
    y = x + 1
    z = y * 2
    a = o.read
    return (z * 3 + a).sum()


def attribute_behind_one_operation(x, o):
    y = x + 1
    a = o.read
    return (y * 3 + a).sum()


def missing_attribute(x, o):
    y = x + 1
    z = y * 2
    a = o.missing
    return (z * 3 + a).sum()


def membership(x, o):
    y = x + 1
    z = y * 2
    a = 3 in o
    return (z * 3 + a).sum()


def loop_over(x, o):
    y = x + 1
    z = y * 2
    for k in o:
        z = z + k
    return z


def unpacking(x, o):
    y = x + 1
    z = y * 2
    a, b = o
    return z * a + b


def spread(x, o):
    y = x + 1
    z = y * 2
    a = [*o, *o]
    return z * len(a)


def negation(x, o):
    y = x + 1
    z = y * 2
    a = -o
    return z * a


def addition(x, o):
    y = x + 1
    z = y * 2
    a = o + 1
    return z * a


def increase(x, o):
    y = x + 1
    z = y * 2
    o += 1
    return z * 2


def truth(x, o):
    y = x + 1
    z = y * 2
    if o:
        z = z + 1
    return z * 2


def removal(x, o):
    y = x + 1
    z = y * 2
    del o[1]
    return z * 2


def attribute_removal(x, o):
    y = x + 1
    z = y * 2
    del o.read
    return z * 2


def keywords(x, o):
    y = x + 1
    z = y * 2
    a = {**o}
    return z * len(a)


def block(x, o):
    y = x + 1
    z = y * 2
    with o:
        z = z + 1
    return z


def in_a_loop(x, o):
    y = x + 1
    z = y * 2
    for i in range(2):
        z = (z + i) * o.read
    return z


def in_a_try(x, o):
    y = x + 1
    z = y * 2
    try:
        z = z * o.read
    except ValueError:
        pass
    return z


def with_what_was_changed(x, o):
    made, count = [], 0

    def more():
        nonlocal count
        count += 1
        return count

    y = x + 1
    z = y * 2
    made.append(z)
    more()
    made.append(o.read + more())
    return z, made, count


def callee_behind(x, o):
    def twice(t):
        return t.sin() * 2

    y = x + 1
    z = y * 2
    a = o.read
    return twice(z) + a


def raising_behind(x, o):
    y = x + 1
    z = y * 2
    if o.read == 2:
        raise ValueError(f"read behind {tuple(z.shape)}")
    return z


for fn in (
    attribute, missing_attribute, membership, loop_over, unpacking, spread, negation, addition, increase, truth,
    removal, attribute_removal, keywords, in_a_loop, in_a_try, with_what_was_changed, raising_behind,
):  # fmt: skip
    left(f"left_before_{fn.__name__}", fn, 1, 1)
left("left_before_block", block, 1, 1, threading.Lock)
left("left_before_attribute_behind_one_operation", attribute_behind_one_operation, 0, 0)
left("left_before_callee_behind", callee_behind, 2, 2)


@program("left_before_history_is_asked_for", 38, graphs=1, breaks=1, entries=1)
def _():
    def f(x):
        y = x.sin()
        z = y * 2
        a = z.grad_fn is None
        return z * 3, a

    return f, [(torch.ones(3, requires_grad=True),)] * 2


@program("left_before_the_type_of_an_array_is_asked_for", 38, graphs=1, breaks=1, entries=1)
def _():
    def f(x, array):
        y = x + 1
        z = y * 2
        return z * (2 if array.dtype == "float64" else 3)

    return f, [(torch.ones(3), numpy.ones(2))] * 2


@program("goes_on_behind_an_unknown_method_of_an_array", 38, graphs=2, breaks=1, entries=2)
def _():
    def f(array):
        array += 1
        z = array.tobytes()
        array += 1
        return z

    return f, [(numpy.array([1, 2]),), (numpy.array([1, 2]),)]


@torch.jit.script
def scripted(x, factor: float = 2.0):
    return torch.cos(x) * factor


@program("scripted_function", 38, graphs=1, entries=1)
def _():
    return lambda x: scripted(x) + scripted(x, 3.0), [(torch.ones(3),)] * 2


class Scripted(torch.nn.Module):
    def forward(self, x):
        return x.sin() * 2


@program("scripted_module", 38, graphs=0, breaks=2, entries=0)
def _():
    made = torch.jit.script(Scripted())
    return lambda x: made(x) + 1, [(torch.ones(3),)] * 2


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * 3


@program("own_function_run_backward_in_a_frame", 38, graphs=1, breaks=1, entries=1)
def _():
    def f(x):
        y = Tripled.apply(x)
        y.sum().backward()
        return y, x.grad

    return f, [(torch.ones(3, requires_grad=True),) for _ in range(2)]


@program("gradient_under_its_other_name", 38, graphs=1, entries=1)
def _():
    def f(x, y):
        x._grad = y.detach() + 1
        y.grad = x.detach() + 2
        return x.grad * 2, y._grad * 3

    return f, [(torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)) for _ in range(2)]


def drawn(name, way, graphs, breaks, entries, calls):
    program(name, 38, graphs=graphs, breaks=breaks, entries=entries)(
        lambda: (way, [(torch.ones(3), *call) for call in calls])
    )


drawn(
    "random_integers_in_place",
    lambda x, keywords: x.random_(**keywords) * 1,
    1,
    1,
    2,
    [({"from": 1, "to": 9},)] * 2,
)
drawn("uniform_from", lambda x, keywords: x.uniform_(**keywords) * 1, 1, 1, 2, [({"from": 1, "to": 9},)] * 2)


class OwnList(list):
    """A list of the user's."""


@program("own_list_extended_by_itself", 38, graphs=1, entries=1)
def _():
    def f(a, b):
        a.extend(b)
        return a[-1] * 2, len(a)

    def call():
        own = OwnList([torch.ones(2), torch.zeros(2)])
        return own, own

    return f, [call(), call()]


@program("out_of_another_layout", 38, graphs=1, breaks=1, entries=1)
def _():
    def f(x):
        y = torch.zeros(2, 2)
        torch.abs(x, out=y.T)
        return y

    return f, [(torch.ones(2, 2),)] * 2


@program("outs_of_another_size", 38, graphs=1, breaks=1, entries=1)
def _():
    def f(x):
        values, places = torch.zeros(0), torch.zeros(0, dtype=torch.long)
        torch.sort(x, out=(values, places))
        return values.shape

    return f, [(torch.ones(3),)] * 2


def mode_undone(name, graphs, fn):
    program(f"grad_mode_undone_{name}", 38, graphs=graphs, entries=1)(lambda: (fn, [(torch.ones(3),)] * 2))


def returning_its_input(x):
    with torch.no_grad():
        return x


def returning_a_list(x):
    with torch.no_grad():
        return [x]


def returning_a_number(x):
    with torch.no_grad():
        pass
    return 5


mode_undone("input", 1, returning_its_input)
mode_undone("list", 0, returning_a_list)
mode_undone("number", 0, returning_a_number)


@program("module_made_in_a_frame_without_operations", 38, graphs=1, entries=1)
def _():
    return lambda x: type(torch.nn.ReLU()).__name__, [(torch.ones(3),)] * 2


CALLED = []


def noted(kind):
    return lambda tensor: (CALLED.append(kind), tensor)[1]


@program(
    "saved_tensors_hooks_around_calls",
    38,
    graphs=1,
    entries=1,
    around=lambda i: torch.autograd.graph.saved_tensors_hooks(noted("pack"), noted("unpack")),
    setup=CALLED.clear,
    state=lambda fn: list(CALLED),
)
def _():
    return lambda x, y: (x * y).sin(), [(torch.ones(3, requires_grad=True), torch.ones(3)) for _ in range(2)]
