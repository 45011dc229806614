"""Programs whose Python values change between calls: counters, attributes, arguments, hooks, modes."""

import threading

import torch
from parity.harness import registry

PROGRAMS, program = registry()
TOTAL = 0


def xs(*shapes):
    return [(torch.ones(shape),) for shape in shapes]


@program("module_int_counter", 12, graphs=8, recompiles=8, frames=(9, 8))
def _():
    class Count(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def forward(self, x):
            self.n += 1
            return x * self.n

    return Count(), xs(*[3] * 12)


@program("module_int_only_written", 12, graphs=8, recompiles=8, frames=(9, 8))
def _():
    class Count(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def forward(self, x):
            self.n += 1
            return x * 2

    return Count(), xs(*[3] * 12)


@program("object_int_counter", 12, graphs=2, recompiles=1, frames=(2, 2), state=lambda f: f.box.n)
def _():
    class Box:
        n = 0

    box = Box()
    box.n = 0

    def f(x):
        box.n += 1
        return x * box.n

    f.box = box
    return f, xs(*[3] * 12)


@program("closure_dict_counter", 12, graphs=2, recompiles=1, frames=(2, 2), state=lambda f: f.box["n"])
def _():
    box = {"n": 0}

    def f(x):
        box["n"] += 1
        return x * box["n"]

    f.box = box
    return f, xs(*[3] * 12)


@program("global_counter", 12, graphs=8, recompiles=8, frames=(9, 8), state=lambda f: TOTAL)
def _():
    def f(x):
        global TOTAL
        TOTAL += 1
        return x * TOTAL

    return f, xs(*[3] * 12)


@program(
    "module_float", 13, graphs=2, recompiles=1, frames=(2, 2), before=lambda i, m: setattr(m, "s", 0.5 + i)
)
def _():
    class Scale(torch.nn.Module):
        def forward(self, x):
            return x * self.s

    return Scale(), xs(3, 3, 3, 3)


@program("int_argument_from_zero", 14, graphs=2, recompiles=1)
def _():
    def f(x, n):
        return x * n

    return f, [(torch.ones(3), n) for n in (0, 1, 2, 3, 4)]


@program("int_argument_to_zero", 14, graphs=2, recompiles=1)
def _():
    def f(x, n):
        return x * n

    return f, [(torch.ones(3), n) for n in (5, 6, 7, 1, 0)]


@program("int_argument_counts_a_loop", 14, graphs=3, recompiles=2)
def _():
    def f(x, n):
        for _ in range(n):
            x = x * 2
        return x

    return f, [(torch.ones(3), n) for n in (3, 4, 5)]


@program("int_argument_decides", 14, graphs=3, recompiles=2)
def _():
    def f(x, n):
        return x * n if n > 6 else x - n

    return f, [(torch.ones(3), n) for n in (2, 3, 8, 9)]


@program("number_types", 14, graphs=5, recompiles=4)
def _():
    def f(x, n):
        return x * n

    return f, [(torch.ones(3), n) for n in (1, 1.0, 2, 2.0, True)]


def train(*modes):
    return lambda i, m: m.train(modes[i])


@program("train_eval_linear", 22, graphs=1, before=train(True, False))
def _():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.layer(x)

    return Net(), xs((2, 3), (2, 3))


@program("train_eval_dropout", 22, graphs=2, recompiles=1, before=train(True, False, True))
def _():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.drop = torch.nn.Linear(3, 3), torch.nn.Dropout(0.5)

        def forward(self, x):
            return self.drop(self.layer(x))

    return Net(), xs((2, 3), (2, 3), (2, 3))


@program("train_eval_batchnorm", 22, graphs=3, recompiles=2, before=train(True, True, True, False))
def _():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(3)

        def forward(self, x):
            return self.norm(x)

    return Net(), xs((4, 3), (4, 3), (5, 3), (5, 3))


@program("dict_argument", 23, graphs=1)
def _():
    def f(batch):
        return batch["a"] + batch["b"]

    a, b = torch.ones(3), torch.ones(3)
    return f, [({"a": a, "b": b},), ({"a": a, "b": b, "c": 1},), ({"b": b, "a": a},)]


@program("dict_asked_for_a_key", 23, graphs=2, recompiles=1)
def _():
    def f(x, d):
        return x + 1 if "a" in d else x - 1

    return f, [(torch.ones(3), d) for d in ({}, {"a": 1}, {"b": 2})]


@program("dict_got_a_key", 23, graphs=2, recompiles=1)
def _():
    def f(x, d):
        return x + 1 if d.get("a") else x - 1

    return f, [(torch.ones(3), d) for d in ({"b": 2}, {"a": 1})]


@program("set_asked_for_an_item", 23, graphs=2, recompiles=1)
def _():
    def f(x, found):
        return x + 1 if "a" in found else x - 1

    return f, [(torch.ones(3), found) for found in (set(), {"a"})]


def halved(x):
    return x / 2


def doubled(x):
    return x * 2


@program("function_argument_varies", 23, graphs=2, recompiles=1)
def _():
    def f(x, fn):
        return fn(x) + 1

    return f, [(torch.ones(3), fn) for fn in (halved, doubled)]


@program("list_of_tensors", 23, graphs=3, recompiles=2)
def _():
    def f(items):
        total = items[0]
        for item in items[1:]:
            total = total + item
        return total

    return f, [([torch.ones(3) for _ in range(n)],) for n in (2, 3, 2, 4)]


def modes(i):
    return [torch.enable_grad, torch.no_grad, torch.inference_mode, torch.enable_grad, torch.no_grad][i]()


@program("grad_modes", 24, graphs=5, recompiles=4, around=modes)
def _():
    def f(x):
        return x * 2

    plain, wanting = torch.ones(3), torch.ones(3, requires_grad=True)
    return f, [(plain,), (plain,), (plain,), (wanting,), (wanting,)]


@program("kv_cache_cat", 30, graphs=3, recompiles=2)
def _():
    class Cache:
        def __init__(self):
            self.k = []

    def f(x, cache):
        if not cache.k:
            cache.k.append(x)
        else:
            cache.k[0] = torch.cat([cache.k[0], x], 0)
        return cache.k[0].sum()

    cache = Cache()
    return f, [(torch.ones(5, 2), cache)] + [(torch.ones(1, 2), cache) for _ in range(6)]


@program("cache_none_to_tensor", 30, graphs=2, recompiles=1)
def _():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = None

        def forward(self, x):
            if self.cache is None:
                self.cache = x * 2
            return x + self.cache

    return Net(), xs(3, 3, 3, 3)


STALE = "torch doesn't notice a hook registered after the first call"


def hook_on_child(i, model):
    if i == 1:
        model.layer.register_forward_hook(lambda module, args, out: out + 1)


def hook_on_root(i, model):
    if i == 1:
        model.register_forward_hook(lambda module, args, out: out + 1)


class WithLayer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x) * 2


@program("late_hook_child", 31, graphs=1, frames=(1, 1), before=hook_on_child, torch_differs=STALE)
def _():
    return WithLayer(), xs((2, 3), (2, 3))


@program("late_hook_root", 31, graphs=2, frames=(2, 2), before=hook_on_root)
def _():
    return WithLayer(), xs((2, 3), (2, 3))


@program("root_hook", 32, graphs=2, frames=(2, 2))
def _():
    model = WithLayer()

    def hook(module, args, out):
        return out.sin()

    model.register_forward_hook(hook)
    return model, xs((2, 3), (2, 3))


def local(**attributes):
    made = threading.local()
    vars(made).update(attributes)
    return made


def _with_local(name, fn, calls, graphs=1, recompiles=0, entries=1, **options):
    program(f"thread_local_{name}", 37, graphs=graphs, recompiles=recompiles, entries=entries, **options)(
        lambda: (fn, calls())
    )


def read_local(x, of):
    return x + of.value, of, hasattr(of, "missing"), getattr(of, "missing", 3)


def counted_local(x, of):
    of.n = getattr(of, "n", 0) + 1
    return x * 2, of.n


def deleted_local(x, of):
    y = x + of.value
    of.value = 5
    return y + of.value, vars(of)


def same_local():
    of = local()
    return [(torch.ones(3), of)] * 3


_with_local("read", read_local, lambda: [(torch.ones(3), local(value=2)) for _ in range(2)])
_with_local(
    "tensor", read_local, lambda: [(torch.ones(3), local(value=torch.ones(n))) for n in (3, 1)], 2, 1, 2
)
_with_local("other_value", read_local, lambda: [(torch.ones(3), local(value=n)) for n in (2, 3, 4)], 2, 1, 2)
_with_local("counted", counted_local, same_local, 3, 2, 3)
_with_local("written", deleted_local, lambda: [(torch.ones(3), local(value=2)) for _ in range(2)])


def in_a_thread(fn, tc):
    compiled = tc(fn)

    def run(x, of, thread):
        found = []
        if not thread:
            return compiled(x, of)
        other = threading.Thread(target=lambda: found.append(compiled(x, of)))
        other.start()
        other.join()
        return found

    return run


@program("thread_local_of_another_thread", 37, graphs=2, recompiles=1, entries=2, build=in_a_thread)
def _():
    of = local(n=4)
    return counted_local, [(torch.ones(3), of, False), (torch.ones(3), of, True)]


class Key:
    """An object that is hashed by identity."""


def in_a_set(x, a, b):
    return x + len({a, b})


def as_keys(x, a, b):
    return x + {a: 1, b: 2}[a]


def looked_for(x, a, b):
    return x + (1 if a in {b: 1} else 2)


def in_tuples(x, a, b):
    return x + len({(a, 1), (b, 1)})


def aliased(name, make, way):
    noticed = "tensors" in name  # by torch

    @program(
        f"alias_{name}",
        37,
        graphs=1 + noticed,
        recompiles=int(noticed),
        entries=1 + noticed,
        torch_differs="" if noticed else "it doesn't notice that two keys are one object",
    )
    def _():
        a, b, c = make(), make(), make()
        return way, [(torch.ones(2), *pair) for pair in ((a, b), (b, c), (a, a), (b, b), (a, c))]


for _way in (in_a_set, as_keys, looked_for, in_tuples):
    aliased(f"tensors_{_way.__name__}", lambda: torch.ones(2), _way)
aliased("objects_in_a_set", Key, in_a_set)
aliased("objects_as_keys", Key, as_keys)
aliased("objects_in_tuples", Key, in_tuples)
aliased("functions_in_a_set", lambda: lambda x: x, in_a_set)


@program("iterator_of_a_text_made_by_its_method", 37, graphs=1, entries=1)
def _():
    return lambda x: (x + 1, next("ab".__iter__())), [(torch.ones(2),)] * 3


@program("dispatch_disabled_is_asked_for", 37, graphs=1, entries=1)
def _():
    def f(x):
        with torch._C.DisableTorchFunctionSubclass():
            with torch._C.DisableTorchFunctionSubclass():
                x = x + 1
            inside = torch._C._is_torch_function_enabled()
        return x * 2, inside, torch._C._is_torch_function_enabled()

    return f, [(torch.ones(2),)] * 2


def capture(on):
    torch._dynamo.config.capture_scalar_outputs = on


@program(
    "check_of_a_captured_number",
    37,
    graphs=1,
    entries=1,
    setup=lambda: capture(True),
    teardown=lambda: capture(False),
    torch_differs="its message",
)
def _():
    def f(x, y):
        z = y.item()
        torch._check(z == 3)
        return x + z

    return f, [(torch.ones(2), torch.tensor([n])) for n in (3, 4, 3)]
