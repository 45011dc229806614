"""Every kind of guard: a call that it lets pass and one that it doesn't; evaluated in C; told with then, now and line."""

import contextlib
import types

import dynacheck
import pytest
import torch
from dynacheck import _C
from dynacheck.api import entry_count

ROWS = {}
SCALE = 2.0
module = types.ModuleType("elsewhere")
module.scale = 2.0


def x():
    return torch.ones(2, 3)


def row(kind, then, now):
    """A row: a function that gives the compiled function, the first call's arguments, and those of a call that fails,
    made after something was changed."""

    def add(make):
        ROWS[make.__name__] = (make, kind, then, now)
        return make

    return add


def arguments(name, kind, then, now, fn, first, other):
    ROWS[name] = (lambda: (fn, first, lambda: other), kind, then, now)


def plus(x, b=0):
    return x + (1 if b else 2)


class Net(torch.nn.Module):
    gain = 2.0

    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 3)
        self.steps = 3
        self.register_buffer("held", torch.ones(3))

    def forward(self, x):
        return self.lin(x) * self.gain * self.steps * self.held


def net(change, *args):
    made = Net()
    return made.forward, (x(), *args), lambda: (change(made), (x(), *args))[1]


arguments("a string", "value", "'Hello'", "'Hi'", lambda x, b: x + len(b), (x(), "Hello"), (x(), "Hi"))
arguments("an int", "value", "1", "2", lambda x, n: x * [1, 2, 3][n], (x(), 1), (x(), 2))
arguments("a float", "value", "0.5", "0.75", lambda x, n: x * n, (x(), 0.5), (x(), 0.75))
arguments("a bool", "value", "True", "False", plus, (x(), True), (x(), False))
arguments("None", "value", "None", "2.0", lambda x, n: x + 1 if n is None else x * n, (x(), None), (x(), 2.0))
arguments(
    "another type", "value", "2", "'a'", lambda x, n: x + 1 if type(n) is int else x - 1, (x(), 2), (x(), "a")
)
arguments("a list's length", "length", "2", "3", lambda x, n: x * len(n), (x(), [1, 2]), (x(), [1, 2, 3]))
arguments(
    "a list's item", "value", "2", "3", lambda x, n: x * [1, 2, 3, 4][n[1]], (x(), [1, 2]), (x(), [1, 3])
)
arguments(
    "a dict's keys",
    "keys",
    "['a']",
    "['b']",
    lambda x, d: [x * len(k) for k in d],
    (x(), {"a": 1}),
    (x(), {"b": 1}),
)
arguments(
    "a dict's order", "keys", "['a', 'b']", "['b', 'a']", lambda x, d: [x * d[k] for k in d],
    (x(), {"a": 1, "b": 2}), (x(), {"b": 2, "a": 1}),
)  # fmt: skip
arguments(
    "membership", "presence", "absent", "1", lambda x, d: x + 1 if "a" in d else x - 1,
    (x(), {"b": 1}), (x(), {"a": 1}),
)  # fmt: skip
arguments("a set", "value", "{1}", "{2}", lambda x, s: x + 1 if 1 in s else x - 1, (x(), {1}), (x(), {2}))
arguments(
    "a range",
    "value",
    "range(0, 2)",
    "range(0, 3)",
    lambda x, r: x * len(r),
    (x(), range(2)),
    (x(), range(3)),
)
arguments(
    "a tensor's type",
    "type",
    "torch.Tensor",
    "torch.nn.parameter.Parameter",
    plus,
    (x(),),
    (torch.nn.Parameter(x()),),
)
arguments("a dtype", "dtype", "torch.float32", "torch.float64", plus, (x(),), (x().double(),))
arguments("a device", "device", "cpu", "meta", plus, (x(),), (x().to("meta"),))
arguments("requires_grad", "requires_grad", "False", "True", plus, (x(),), (x().requires_grad_(),))
arguments("a rank", "rank", "2", "3", plus, (x(),), (x()[None],))
arguments("a size", "size", "2", "4", plus, (x(),), (torch.ones(4, 3),))
arguments(
    "a stride", "stride", "contiguous (3, 1)", "transposed (1, 2)", plus, (x(),), (torch.ones(3, 2).t(),)
)
arguments(
    "an index", "value", "1", "2", lambda x, i: x[i] + 1, (torch.ones(4), torch.tensor(1)),
    (torch.ones(4), torch.tensor(2)),
)  # fmt: skip
SHARED = x()
arguments(
    "one tensor twice",
    "aliasing",
    "different objects",
    "one object",
    lambda x, y: x + y,
    (x(), x()),
    (SHARED, SHARED),
)
arguments(
    "one object twice",
    "aliasing",
    "one object",
    "different objects",
    lambda x, y: x + y,
    (SHARED, SHARED),
    (x(), x()),
)


@row("mark", "[]", "[0]")
def a_mark():
    marked = x()
    dynacheck.mark_dynamic(marked, 0)
    return plus, (x(),), lambda: (marked,)


@row("expression", "holds: 2 == 2", "x.size()[0] is 5, y.size()[0] is 4")
def a_size_of_another():
    def f(x, y):
        return x + 1 if x.shape[0] == y.shape[0] else x - 1

    for tensor in (first := (x(), x())):
        dynacheck.maybe_mark_dynamic(tensor, 0)
    return f, first, lambda: tuple(map(marked_rows, (5, 4)))


def marked_rows(n):
    made = torch.ones(n, 3)
    dynacheck.maybe_mark_dynamic(made, 0)
    return made


@row("size", "x.size()[0] <= 4", "9")
def a_range_of_a_size():
    return lambda x: x + 1 if x.shape[0] <= 4 else x - 1, (marked_rows(3),), lambda: (marked_rows(9),)


def unbacked(n, shape_id="rows", **bounds):
    made = torch.ones(n, 3)
    dynacheck.mark_unbacked(made, 0, shape_id=shape_id, **bounds)
    return (made,)


@row("mark", "{0: 'rows'}", "{0: 'lines'}")
def a_shape_id():
    return plus, unbacked(4), lambda: unbacked(4, "lines")


@row("mark", "{0: (2, 8)}", "{0: (2, 9)}")
def bounds_of_an_unbacked_size():
    return plus, unbacked(4, min=2, max=8), lambda: unbacked(4, min=2, max=9)


class Noted(torch.Tensor):
    """Made of a tensor, with a context."""

    @staticmethod
    def __new__(cls, inner, note):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner, note):
        self.inner, self.note = inner, note

    def __tensor_flatten__(self):
        return ["inner"], {"note": self.note}

    @staticmethod
    def __tensor_unflatten__(inner, context, outer_size, outer_stride):
        return Noted(inner["inner"], context["note"])

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*torch.utils._pytree.tree_map_only(Noted, lambda t: t.inner, args), **kwargs or {})


arguments(
    "a wrapper's context", "value", "{'note': 1}", "{'note': 2}", lambda x: x.sin(),
    (Noted(x(), 1),), (Noted(x(), 2),),
)  # fmt: skip
arguments(
    "a tensor in a wrapper", "dtype", "torch.float32", "torch.float64", lambda x: x.sin(),
    (Noted(x(), 1),), (Noted(x().double(), 1),),
)  # fmt: skip


@row("value", "2.0", "3.0")
def a_global():
    def change():
        globals()["SCALE"] = 3.0
        return (x(),)

    globals()["SCALE"] = 2.0
    return lambda x: x * SCALE, (x(),), change


@row("value", "2.0", "3.0")
def a_global_of_a_module():
    module.scale = 2.0
    return lambda x: x * module.scale, (x(),), lambda: (setattr(module, "scale", 3.0), (x(),))[1]


@row("value", "2.0", "3.0")
def a_closure_cell():
    scale = 2.0

    def change():
        nonlocal scale
        scale = 3.0
        return (x(),)

    return lambda x: x * scale, (x(),), change


@row("value", "2", "3")
def a_default():
    def f(x, n=2):
        return x * n

    def change():
        f.__defaults__ = (3,)
        return (x(),)

    return f, (x(),), change


@row("code", None, None)
def a_functions_code():
    def helper(x):
        return x + 1

    def change():
        helper.__code__ = (lambda x: x - 1).__code__
        return (x(),)

    return lambda x: helper(x), (x(),), change


@row("identity", "autocast object", "another autocast object")
def a_context_manager():
    def f(x, context):
        with context:
            return x + 1

    first, other = (torch.autocast("cpu", torch.bfloat16) for _ in range(2))
    return f, (x(), first), lambda: (x(), other)


@row("aliasing", "one object", "different objects")
def an_object():
    class Key:
        pass

    one, other = Key(), Key()
    return lambda x, k: x + 1 if k is one else x - 1, (x(), one), lambda: (x(), other)


@row("value", "3", "4")
def an_attribute():
    return net(lambda made: setattr(made, "steps", 4))


@row("presence", "absent", "4.0")
def an_attribute_over_the_classs():
    return net(lambda made: setattr(made, "gain", 4.0))


@row("training", "True", "False")
def a_training_flag():
    made = torch.nn.Sequential(torch.nn.Dropout(0.0))
    return made.forward, (x(),), lambda: (made.eval(), (x(),))[1]


@row("hooks", "0", "1")
def a_hook():
    return net(lambda made: made.lin.register_forward_hook(lambda *args: None))


@row("dtype", "torch.float32", "torch.float64")
def a_buffer():
    return net(lambda made: setattr(made, "held", made.held.double()))


def ambient(name, kind, then, now, enter):
    def make():
        return plus, (x(),), lambda: (x(),)

    ROWS[name] = (make, kind, then, now, enter)


@contextlib.contextmanager
def put_back(read, write, value):
    before = read()
    write(value)
    try:
        yield
    finally:
        write(before)


ambient("grad mode", "grad_mode", "True", "False", torch.no_grad)
ambient("inference mode", "inference_mode", "False", "True", torch.inference_mode)
ambient("autocast", "autocast", None, None, lambda: torch.autocast("cpu", torch.bfloat16))
ambient(
    "default dtype", "default_dtype", "torch.float32", "torch.float64",
    lambda: put_back(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
)  # fmt: skip
ambient("default device", "default_device", "None", "'meta'", lambda: torch.device("meta"))
ambient(
    "deterministic", "deterministic", "False", "True",
    lambda: put_back(
        torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True
    ),
)  # fmt: skip
ambient("function mode", "function_mode", None, None, lambda: torch.overrides.BaseTorchFunctionMode())
ambient(
    "threads", "global_state", str(torch.get_num_threads()), str(torch.get_num_threads() + 1),
    lambda: put_back(torch.get_num_threads, torch.set_num_threads, torch.get_num_threads() + 1),
)  # fmt: skip


def guards_in_python():
    return {
        type(installed.guard).__name__
        for state in _C.states()
        for entry in state.entries
        if entry.owner is not None
        for installed in entry.owner.guards.slow
    }


@pytest.mark.parametrize("name", ROWS)
def test_a_kind_of_guard(name, engine):
    make, kind, then, now, *enter = ROWS[name]
    fn, first, other = make()
    compiled = dynacheck.compile(fn, backend="eager")
    with dynacheck.observe() as seen:
        compiled(*first)
        assert entry_count() and not guards_in_python()
        compiled(*first)
        assert [call.outcome for call in seen.calls] == ["miss", "hit"], seen.recompiles
        with enter[0]() if enter else contextlib.nullcontext():
            compiled(*other())
    (again,) = seen.recompiles
    found = next((change for change in again.changes if change.kind == kind), None)
    assert found is not None, again.changes
    assert then is None or found.was == then
    assert now is None or found.became == now
    assert not found.varies or type(found.then) is type(found.now)
    assert found.line and found.text and found.was and found.became and found.hint
