"""Attributes by the rules of types, instance dicts, proxies, `__new__` of containers, what torch is asked (row 42)."""

import collections
import functools
import types
import typing

import torch
from parity.harness import registry

PROGRAMS, program = registry()


def two(*more):
    return [(torch.ones(3), *more), (torch.ones(3), *more)]


def traced(name, fn, calls=two, **figures):
    """A function of which one graph is made."""
    program(name, 42, **{"graphs": 1, "entries": 1, **figures})(lambda: (fn, calls()))


def plain_function(x):
    return x


class Shadowed:
    def __init__(self, x):
        self.__dict__["x"] = x

    @property
    def x(self):
        return -1

    def method(self):
        return self


BY_TYPE = ("__lt__", "__init__", "__reduce__", "__getattribute__", "__dir__")
OF_FUNCTIONS = (
    "__code__",
    "__globals__",
    "__closure__",
    "__builtins__",
    "__kwdefaults__",
    "__dict__",
    "nothing",
)


def has_by_type(x):
    of = (
        plain_function,
        lambda: 1,
        Shadowed(1),
        Shadowed.method,
        functools.partial(plain_function),
        [],
        3,
        x,
    )
    return x + 1, [hasattr(obj, name) for obj in of for name in BY_TYPE]


def has_of_functions(x):
    return x + 1, [hasattr(f, name) for f in (plain_function, lambda: 1) for name in OF_FUNCTIONS]


def has_of_classes_only(x):
    return x + 1, [hasattr(x, name) for name in ("__call__", "__name__", "mro", "__subclasses__", "nothing")]


traced("hasattr_by_type", has_by_type, torch_differs="torch finds no `__lt__` and the like in a tensor")
traced("hasattr_of_functions", has_of_functions)
traced("hasattr_of_what_only_classes_have", has_of_classes_only)


@program("instance_dict_behind_a_property", 42, graphs=1)
def _():
    def f(x, obj):
        return x + obj.__dict__["x"], obj.x, vars(obj)["x"], obj.__dict__.get("x")

    return f, two(Shadowed(3))


class WritesItsDict(torch.nn.Module):
    def forward(self, x):
        self.__dict__["a"] = 10
        return x * self.a + self.__dict__["a"], "a" in self.__dict__, self.__dict__.get("b")


@program("instance_dict_of_a_module_written", 42, graphs=1)
def _():
    return WritesItsDict(), two()


@program("proxy_of_a_dict_given", 42, graphs=1)
def _():
    given = {"a": 2, "b": 3}

    def f(x, proxy):
        return (
            x * proxy["a"],
            list(proxy),
            dict(proxy),
            proxy.copy(),
            proxy == given,
            proxy.get("c"),
            len(proxy),
        )

    return f, two(types.MappingProxyType(given))


class OwnDict(dict):
    def __new__(cls, *args, **named):
        return super().__new__(cls, *args, **named)


class OwnOrdered(collections.OrderedDict):
    def __new__(cls, *args, **named):
        return super().__new__(cls, *args, **named)


def new_containers(x):
    made = dict.__new__(dict)
    made["x"] = x + 1
    own = OwnDict(a=x)
    own["b"] = 2
    other = dict.__new__(OwnDict)
    other["c"] = 1
    return made, own, OwnOrdered([("a", 1)]), other


traced("new_of_containers", new_containers)
traced(
    "types_of_c_code_returned", lambda x: (x + 1, type({}.items()), type(collections.OrderedDict().keys()))
)


class Keyed:
    def __init__(self, value):
        self.value = value
        self.keys = lambda: ["a", "b"]

    def __getitem__(self, key):
        return self.value


@program("mapping_whose_keys_are_in_the_instance", 42, graphs=0, breaks=1)
def _():
    return lambda x: dict(Keyed(x), c=x), two()


@program("fromkeys_of_a_defaultdict", 42, graphs=0, breaks=1, entries=0)
def _():
    def f(x):
        found = collections.defaultdict.fromkeys("ab", 1)
        return x + found["a"], found, found.default_factory

    return f, two()


@program("tensors_in_tuples_of_other_lengths", 42, graphs=1, torch_differs="torch looks at lengths first")
def _():
    return lambda x: (x + 1, (x, 1) == (1,)), two()


@torch.jit.script_if_tracing
def scripted(x, by=2):
    return x * by


@functools.lru_cache
def cached(n):
    return n + 1


def cache_asked(x):
    cached(3)
    cached(3)
    return x + cached(3), cached.cache_info().hits


traced("script_if_tracing_called", lambda x: scripted(x) + scripted(x, by=3))
traced("jit_annotations", lambda x: torch.jit.annotate(int, torch.jit._unwrap_optional(x)) + 1)
program("cache_asked_for_its_hits", 42, graphs=0, breaks=1)(lambda: (cache_asked, two()))


def queries(x):
    return (
        x + torch.onnx.is_in_onnx_export() + torch.fx._symbolic_trace.is_fx_tracing(),
        torch.accelerator.is_available(),
        torch.accelerator.current_accelerator(),
        torch.autograd._is_checkpoint_valid(),
        torch.backends.cuda.matmul.allow_tf32,
    )


def in_place_with_factors(x, y, by):
    return x.addcmul_(y, y, value=by), torch._foreach_lerp_([x], [y], by), torch.addcdiv(x, y, y, value=by)


def full(x, by):
    return (
        torch.full((2,), by),
        torch.full((2,), by > 0),
        torch.full([1], fill_value=by.to(torch.int32)),
        x + 1,
    )


traced("queries_of_what_is_there", queries)
traced(
    "factors_that_are_tensors",
    in_place_with_factors,
    lambda: [(torch.ones(3), torch.full((3,), 2.0), torch.tensor(0.3)) for _ in range(2)],
)
traced(
    "full_of_a_tensor", full, lambda: two(torch.tensor(0.3)), torch_differs="torch fills a tensor of floats"
)


def called_by_name(x):
    found = []
    for call in (
        lambda: [1].__mul__(2.5),
        lambda: [1].__imul__("a"),
        lambda: (1,).__rmul__(None),
        lambda: [].__add__({}),
    ):
        try:
            call()
        except TypeError as error:
            found.append(str(error))
    return x + 1, found


program(
    "sequence_slots_called_by_name", 42, graphs=1, torch_differs="torch says it in the words of the operators"
)(lambda: (called_by_name, two()))


@program("set_of_tensors_given", 42, graphs=0, breaks=1, entries=0)
def _():
    def f(x, tensors):
        for tensor in tensors:
            x = x + tensor
        return x

    return f, two({torch.ones(1), torch.zeros(1)})


class Sequenced(typing.NamedTuple):
    a: torch.Tensor
    b: torch.Tensor

    def __getitem__(self, index):
        return Sequenced(self.a[index], self.b[index])


@program("named_tuple_with_items_of_its_own", 42, graphs=1)
def _():
    return lambda x, pair: (x + pair.a, pair.b), two(Sequenced(torch.ones(3), torch.zeros(3)))


class Doubled:
    def __set__(self, obj, value):
        obj.__dict__["field"] = value * 2


class OnlySets:
    field = Doubled()


def descriptor_that_only_sets(x):
    obj = OnlySets()
    obj.field = 10
    return x + obj.field, obj


traced("descriptor_that_only_sets", descriptor_that_only_sets)


@program("descriptor_that_only_sets_given", 42, graphs=1)
def _():
    given = OnlySets()
    given.field = 3
    return lambda x, obj: (x + obj.field, obj.__dict__), two(given)


def written_by_c(x):
    y = x.to(torch.cfloat)
    y.real = 10
    return y + 1


program("real_part_written", 42, graphs=2, breaks=1)(lambda: (written_by_c, two()))
traced(
    "getter_of_a_tensors_attribute",
    lambda x: (x + 1, torch.Tensor.shape.__get__(x), torch.Tensor.ndim.__get__(x)),
)
traced("flags_of_a_class", lambda x: (x + 1, torch.nn.Linear.__flags__ & 64))
traced("structseq_made", lambda x: (x + 1, tuple(torch.return_types.max((x, x + 2)))))


def text_of_functions(x):
    return x + 1, "plain_function" in str(plain_function), repr(plain_function) == str(plain_function)


traced("text_of_functions", text_of_functions)
