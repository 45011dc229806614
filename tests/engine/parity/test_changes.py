"""One thing changes between the calls of a small function: results are plain Python's, and each call is served as
torch.compile serves it, by graphs with the same symbols."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import types
import warnings

import dynacheck
import pytest
import torch
import torch._dynamo.decorators
from histories.compared import inputs
from parity.engines import ENGINES
from parity.harness import Raised, frozen, same

ROWS = {}
MARKS = {"bundled": dynacheck, "torch": torch._dynamo.decorators, "plain": None}


def x(*shape):
    made = torch.arange(float(torch.Size(shape).numel())).reshape(shape) + 1
    return made.clone()


class Marks:
    """What the program may ask of the engine that it runs under."""

    def __init__(self, engine):
        self.of = MARKS[engine]

    def __getattr__(self, name):
        def mark(tensor, *args, **options):
            if self.of is not None:
                getattr(self.of, name)(tensor, *args, **options)
            return tensor

        return mark


def row(make):
    """A row: gets the marks and gives a function and its calls: arguments, or a function that changes something first
    and gives them."""
    ROWS[make.__name__.replace("_", " ")] = make
    return make


def rows(name, fn, *calls):
    ROWS[name] = lambda marks: (fn, list(calls))


# -- marks on tensors inside of something


Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Batch:
    tokens: torch.Tensor


HOLDERS = {
    "a list": (lambda t: [t, 2], lambda held: held[0]),
    "a tuple": (lambda t: (2, (t,)), lambda held: held[1][0]),
    "a dict": (lambda t: {"a": {"b": t}}, lambda held: held["a"]["b"]),
    "a named tuple": (lambda t: Pair(t, 2), lambda held: held.left),
    "a dataclass": (Batch, lambda held: held.tokens),
    "an object": (lambda t: types.SimpleNamespace(t=[t]), lambda held: held.t[0]),
}
MARKED = ("mark_dynamic", "maybe_mark_dynamic", "mark_static", "mark_unbacked")


def marked_inside(mark, holder):
    hold, take = HOLDERS[holder]

    def make(marks):
        def f(held):
            t = take(held)
            return t * 2 + t.shape[0]

        calls = [(hold(getattr(marks, mark)(x(n, 3), 0)),) for n in (4, 5, 7)]
        return f, [*calls, (hold(x(9, 3)),)]

    ROWS[f"{mark} in {holder}"] = make


for _mark in MARKED:
    for _holder in HOLDERS:
        marked_inside(_mark, _holder)


@row
def several_dimensions_marked_at_once(marks):
    sizes = [(4, 5), (6, 7), (9, 9), (4, 2)]
    return lambda d: d["t"] * 2, [({"t": marks.mark_dynamic(x(*s), [0, 1])},) for s in sizes]


@row
def bounds_of_a_mark_in_a_container(marks):
    calls = [([marks.mark_dynamic(x(n, 3), 0, min=3, max=6)],) for n in (4, 6, 3)]
    return lambda ts: ts[0] + 1, [*calls, ([x(9, 3)],), ([x(5, 3)],)]


@row
def marked_in_one_of_two(marks):
    calls = [([marks.mark_dynamic(x(n, 3), 0), x(2, 3)],) for n in (4, 6)]
    return lambda ts: ts[0].sum() + ts[1], [*calls, ([x(8, 3), x(5, 3)],), ([x(8, 3), x(7, 3)],)]


@row
def shape_ids_in_a_container(marks):
    def f(held):
        return held["a"] + held["b"]

    def call(n):
        return ({name: marks.mark_unbacked(x(n, 3), 0, shape_id="batch") for name in "ab"},)

    return f, [call(4), call(1), call(7)]


def strict(marks, *sizes):
    return [([marks.mark_unbacked(x(n, 3), 0, strict=True)],) for n in sizes]


@row
def strict_and_unbacked(marks):
    return lambda ts: ts[0] * 2, strict(marks, 4, 1, 5)


ROWS["strict and unbacked, and asked"] = lambda marks: (
    lambda ts: ts[0] * 2 if ts[0].shape[0] > 3 else ts[0] * 3,
    strict(marks, 4, 5, 2),
)


# -- shapes as values


def sized(*sizes):
    return [(x(*size),) for size in sizes]


rows(
    "a shape as a key",
    lambda a: a * {(4, 3): 2, (5, 3): 3}.get(a.shape, 4),
    *sized((4, 3), (5, 3), (6, 3), (4, 3)),
)
rows("a dict made of shapes", lambda a: {a.shape: a + 1}, *sized((4, 3), (5, 3), (6, 3)))
rows("a shape equal to a tuple", lambda a, n: a + 1 if a.shape == (n, 3) else a - 1,
     *[(x(s, 3), n) for s, n in ((4, 4), (5, 5), (6, 5), (7, 7))])  # fmt: skip
rows(
    "a shape unequal to a tuple",
    lambda a: a + 1 if a.shape != (4, 3) else a - 1,
    *sized((4, 3), (5, 3), (6, 3)),
)
rows("the hash of a shape", lambda a: a * (hash(a.shape) % 7), *sized((4, 3), (5, 3), (6, 3)))
rows(
    "a shape in a set",
    lambda a: a + 1 if a.shape in {(4, 3), (5, 3)} else a - 1,
    *sized((4, 3), (5, 3), (6, 3), (7, 3)),
)
rows(
    "a shape in a list",
    lambda a: a + 1 if a.shape in [(4, 3), (5, 3)] else a - 1,
    *sized((4, 3), (5, 3), (6, 3), (7, 3)),
)
rows("a shape below another", lambda a, b: a + 1 if a.shape < b.shape else a - 1,
     *[(x(*s), x(*t)) for s, t in (((4, 3), (5, 3)), ((6, 3), (7, 3)), ((8, 3), (2, 3)))])  # fmt: skip
rows("two shapes in a set", lambda a, b: a * len({a.shape, b.shape}),
     *[(x(*s), x(*t)) for s, t in (((4, 3), (5, 3)), ((6, 3), (7, 3)), ((8, 3), (8, 3)))])  # fmt: skip
rows(
    "a part of a shape",
    lambda a: a + 1 if a.shape[1:] == (3,) and a.shape[:1] + (3,) == a.shape else a,
    *sized((4, 3), (5, 3), (6, 3)),
)
rows("a shape kept in a list", lambda a: [a.sum(), [*a.shape], a.shape], *sized((4, 3), (5, 3), (6, 3)))


# -- sizes handed to what the user wrote


class Padded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        for parameter in self.layer.parameters():
            torch.nn.init.ones_(parameter)

    def forward(self, a, n, *, m=1):
        return self.layer(a)[: n - m] * n


class Sizes:
    def __init__(self, n):
        self.n = n
        self.both = {"n": n, "more": [n + 1]}

    def half(self, n):
        return (self.n + n) // 2


def halves(n, *more, **named):
    return n // 2, sum(more), named


PADDED = Padded()
SIZES = ((4, 3), (6, 3), (7, 3), (9, 3))
rows("a size to a module", lambda a: PADDED(a, a.shape[0]), *sized(*SIZES))
rows("a size to a module by name", lambda a: PADDED(a, n=a.shape[0], m=a.shape[1]), *sized(*SIZES))
rows("a computed size to a module", lambda a: PADDED(a, a.size(0) * 2 // 2, m=len(a) - 3), *sized(*SIZES))
rows("a size to a function", lambda a: a * halves(a.shape[0])[0], *sized(*SIZES))
rows(
    "sizes to a function",
    lambda a: a * halves(*a.shape, k=a.shape[0])[1] + halves(1, k=len(a))[2]["k"],
    *sized(*SIZES),
)
rows("a size to a partial", lambda a: a * functools.partial(halves, a.shape[0])()[0], *sized(*SIZES))
rows(
    "a size to an object",
    lambda a: a * Sizes(a.shape[0]).half(a.shape[1]) + Sizes(len(a)).both["more"][0],
    *sized(*SIZES),
)
rows("a size in a closure", lambda a: (lambda n: lambda: a * n)(a.shape[0])(), *sized(*SIZES))
rows("a size as a default", lambda a: (lambda n=a.shape[0]: a * n)(), *sized(*SIZES))
rows("a size out of a generator", lambda a: a * sum(n for n in a.shape), *sized(*SIZES))
rows("a size to map", lambda a: a * list(map(lambda n: n + 1, a.shape))[0], *sized(*SIZES))
rows(
    "a size from a dict that is returned",
    lambda a: {"out": a * 2, "n": a.shape[0], "half": a.shape[0] // 2},
    *sized(*SIZES),
)


@row
def a_size_across_a_break(marks):
    def f(a):
        n, sizes = a.shape[0], {"n": [a.shape[0] + 1]}
        a = a + 1
        torch._dynamo.graph_break()
        return a[: n - 1] * sizes["n"][0]

    return f, sized(*SIZES)


@row
def an_int_of_a_module(marks):
    held = torch.nn.Module()
    held.forward = lambda a, n: a * n
    return lambda a, n: held.forward(a, n), [(x(3), n) for n in (2, 3, 5, 1)]


# -- what else an entry may depend on


@row
def an_iterators_position(marks):
    def f(a, it):
        return a * next(it)

    def at(n):
        it = iter([2, 3, 4])
        return (x(3), it) if not n else (x(3), (next(it), it)[1])

    return f, [lambda n=n: at(n) for n in (0, 0, 1, 1, 0)]


@row
def an_iterator_that_is_used_up(marks):
    it = iter([2, 3, 4])
    return lambda a: a * next(it, 9), [(x(3),)] * 5


@row
def the_position_of_zip(marks):
    def f(a, pairs):
        n, m = next(pairs, (1, 1))
        return a * n + m

    def at(n):
        pairs = zip([1, 2, 3], (4, 5, 6))
        for _ in range(n):
            next(pairs)
        return x(3), pairs

    return f, [lambda n=n: at(n) for n in (0, 0, 1, 1, 3)]


@row
def the_position_of_count(marks):
    import itertools

    return lambda a, it: a * next(it), [lambda n=n: (x(3), itertools.count(n)) for n in (2, 2, 3, 4)]


@row
def the_position_of_enumerate(marks):
    def f(a, it):
        i, n = next(it)
        return a * n + i

    return f, [lambda n=n: (x(3), enumerate([1, 2], n)) for n in (0, 0, 1)]


def of_state(name, fn, *changes):
    """Calls with one tensor: twice as it is, then after each change."""

    def make(marks):
        built = fn()
        f, state = built
        return f, [
            (x(3),),
            (x(3),),
            *[lambda change=change: (change(state), (x(3),))[1] for change in changes],
        ]

    ROWS[name] = make


def function_with(**extra):
    def f(a, n=2, *, m=3):
        return a * n + m

    return (lambda a: f(a)), f


def setting(name, value):
    return lambda held: setattr(held, name, value)


of_state("a default", function_with, setting("__defaults__", (4,)), setting("__defaults__", (2,)))
of_state(
    "a default by name",
    function_with,
    setting("__kwdefaults__", {"m": 5}),
    setting("__kwdefaults__", {"m": 3}),
)


def cell():
    by = 2.0

    def f(a):
        return a * by

    def change(value):
        nonlocal by
        by = value

    return f, change


of_state("a closure cell", cell, lambda put: put(3.0), lambda put: put(4), lambda put: put(2.0))


def of_class():
    cls = type("Net", (torch.nn.Module,), {"gain": 2, "forward": lambda self, a: a * self.gain})
    net = cls()
    return net, cls


of_state("a class attribute", of_class, setting("gain", 3), setting("gain", 2), setting("gain", 2.5))


def of_base():
    base = type("Base", (), {"gain": 2})
    cls = type("Sub", (base,), {})
    obj = cls()
    return (lambda a: a * obj.gain), base


of_state("a base class's attribute", of_base, setting("gain", 3), setting("gain", 2))


def other_module():
    module = types.ModuleType("elsewhere")
    module.rate, module.table = 2, {"a": 3}
    return (lambda a: a * module.rate + module.table["a"]), module


of_state(
    "a global of another module",
    other_module,
    setting("rate", 3),
    setting("table", {"a": 4}),
    setting("rate", 2),
)


def ordered():
    held = {"a": 2, "b": 3}

    def f(a):
        for key, n in held.items():
            a = a * n + len(key)
        return a

    return f, held


def moved(held):
    held["a"] = held.pop("a")


of_state("a dict's order", ordered, moved, moved, lambda held: held.update(b=3, a=2))


def member():
    held = {"a": 2}
    return (lambda a: a + 1 if "b" in held else a - 1), held


of_state("membership", member, lambda d: d.update(c=1), lambda d: d.update(b=1), lambda d: d.pop("b"))


def net():
    layer = torch.nn.Sequential(torch.nn.Dropout(0.0), torch.nn.Identity())
    return layer, layer


def add_hook(layer):
    layer[1].register_forward_hook(lambda module, args, out: out + 1)


of_state("a training flag", net, lambda m: m.eval(), lambda m: m.train(), lambda m: m[0].eval())
of_state("a hook of a child", net, add_hook, lambda m: m[1]._forward_hooks.clear())
of_state(
    "a pre-hook of a child", net, lambda m: m[1].register_forward_pre_hook(lambda mod, args: (args[0] * 2,))
)


def monkey():
    class Thing:
        def scale(self, a):
            return a * 2

    thing = Thing()
    return (lambda a: thing.scale(a)), thing


of_state(
    "a method of one object",
    monkey,
    lambda t: setattr(t, "scale", lambda a: a * 3),
    lambda t: delattr(t, "scale"),
)
of_state("a method of a class", monkey, lambda t: setattr(type(t), "scale", lambda self, a: a * 3))


def identity():
    held = types.SimpleNamespace(key=object(), other=object())
    return (lambda a: a + 1 if held.key is held.other else a - 1), held


of_state(
    "which object it is",
    identity,
    lambda h: setattr(h, "key", h.other),
    lambda h: setattr(h, "key", object()),
)


# -- the state around a call


@contextlib.contextmanager
def put_back(read, write, value):
    before = read()
    write(value)
    try:
        yield
    finally:
        write(before)


class Nothing(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


AROUND = {
    "no_grad": torch.no_grad,
    "inference mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "autocast, another dtype": lambda: torch.autocast("cpu", torch.float16),
    "autocast without cache": lambda: torch.autocast("cpu", torch.bfloat16, cache_enabled=False),
    "default dtype": lambda: put_back(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
    "default device": lambda: torch.device("cpu"),
    "deterministic": lambda: put_back(
        torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True
    ),
    "deterministic, warn only": lambda: put_back(
        torch.are_deterministic_algorithms_enabled,
        lambda on: torch.use_deterministic_algorithms(on, warn_only=on),
        True,
    ),
    "a function mode": Nothing,
    "threads": lambda: put_back(torch.get_num_threads, torch.set_num_threads, torch.get_num_threads() + 1),
    "tf32": lambda: put_back(
        lambda: torch.backends.cuda.matmul.allow_tf32,
        functools.partial(setattr, torch.backends.cuda.matmul, "allow_tf32"),
        True,
    ),
    "fp16 reduction": lambda: put_back(
        lambda: torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
        functools.partial(setattr, torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction"),
        False,
    ),
    "anomaly": torch.autograd.detect_anomaly,
    "saved tensors": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
}


@dataclasses.dataclass
class Around:
    """A call inside of a context."""

    enter: object


for _name, _enter in AROUND.items():

    def _make(marks, enter=_enter):
        return (lambda a: a @ a + torch.ones(3)), [
            (x(3, 3),),
            (x(3, 3),),
            Around(enter),
            (x(3, 3),),
            Around(enter),
        ]

    ROWS[f"around: {_name}"] = _make


def history(name, engine):
    """Per call: result, how it was served, the inputs of the graphs made."""
    fn, calls = ROWS[name](Marks(engine))
    served, made = [], []

    def backend(gm, example_inputs):
        if any("call" in node.op for node in gm.graph.nodes):
            made.append(inputs(gm))
        return gm.forward

    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        called, seen = fn, None
        if engine != "plain":
            ENGINES[engine].reset()
            stack.callback(ENGINES[engine].reset)
            seen = stack.enter_context(ENGINES[engine].record())
            called = ENGINES[engine].compile(fn, backend=backend)
        for call in calls:
            before, number = len(made), seen.calls_so_far() if seen else 0
            around = call.enter() if isinstance(call, Around) else contextlib.nullcontext()
            args = (x(3, 3),) if isinstance(call, Around) else call() if callable(call) else call
            with around:
                try:
                    result = frozen(called(*args))
                except Exception as error:
                    result = Raised(type(error).__name__, "")
            served.append((result, seen.outcomes_since(number) if seen else (), made[before:]))
        if seen:
            figures = seen.finish()
            assert not figures.faults, figures.faults
    return served


OTHERWISE = {  # results are plain Python's, entries others than torch's, and why
    "a shape in a list": "torch asks whether the shape is one of them, here which one it is",
}


IN_DETAIL = {f"{mark} in {holder}" for mark in MARKED for holder in HOLDERS if mark != "mark_dynamic"} - {
    "maybe_mark_dynamic in a dict",
    "mark_static in a list",
    "mark_unbacked in a dataclass",
}
IN_DETAIL |= {
    "a size to a module by name",
    "a computed size to a module",
    "a size to map",
    "a shape below another",
}
IN_DETAIL |= {
    "around: fp16 reduction",
    "around: anomaly",
    "around: saved tensors",
    "around: autocast without cache",
}
IN_DETAIL |= {"a size out of a generator", "sizes to a function", "a size as a default", *OTHERWISE}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in IN_DETAIL else []) for name in ROWS]
)
def test_a_change(name):
    plain, ours, theirs = (history(name, engine) for engine in ("plain", "bundled", "torch"))
    for i, (wanted, found) in enumerate(zip(plain, ours, strict=True)):
        assert not same(wanted[0], found[0], f"call {i}")
    assert any("miss" in how for _, how, _ in ours), "nothing was translated"
    right = [not same(wanted[0], found[0], "") for wanted, found in zip(plain, theirs, strict=True)]
    if name in OTHERWISE:
        assert [how for _, *how in ours] != [how for _, *how in theirs], "it is as in torch"
    else:
        upto = right.index(False) if False in right else len(right)
        assert upto > 1 and [how for _, *how in ours[:upto]] == [how for _, *how in theirs[:upto]]
