"""Containers of batches, caches and results, subclasses and modes by kind (row 47)."""

import collections
import dataclasses

import torch
from parity.harness import registry
from torch.overrides import TorchFunctionMode
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._python_dispatch import TorchDispatchMode

PROGRAMS, program = registry()


def on(calls, graphs=1, entries=1, **figures):
    def add(fn):
        program(f"batch_{fn.__name__}", 47, graphs=graphs, entries=entries, **figures)(lambda: (fn, calls()))
        return fn

    return add


def tensors():
    return [(torch.randn(3, 4),) for _ in range(2)]


class Batch(collections.UserDict):
    def __getattr__(self, name):
        try:
            return self.data[name]
        except KeyError:
            raise AttributeError(name) from None

    def to(self, dtype):
        self.data = {key: value.to(dtype) for key, value in self.data.items()}
        return self


@on(lambda: [(Batch(ids=torch.arange(4), mask=torch.ones(4)),) for _ in range(2)])
def user_dict(batch):
    batch["more"] = batch.mask * 2
    names = [name for name in batch]
    return (
        batch["ids"] + batch.ids,
        {**batch},
        names,
        len(batch),
        "ids" in batch,
        batch.get("none"),
        Batch(x=batch.mask).x,
    )


@on(lambda: [(Batch(ids=torch.arange(4), mask=torch.ones(4)),) for _ in range(2)])
def user_dict_moved(batch):
    batch.to(torch.float64)
    return batch.ids * batch.mask


@dataclasses.dataclass
class Output(collections.OrderedDict):
    logits: torch.Tensor = None
    loss: torch.Tensor = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if getattr(self, field.name) is not None:
                self[field.name] = getattr(self, field.name)

    def __getitem__(self, key):
        return super().__getitem__(key) if isinstance(key, str) else tuple(self.values())[key]


@on(tensors)
def ordered_output(x):
    out = Output(logits=x * 2, loss=x.sum())
    return out, out.logits, out["loss"], out[0], out[:1], list(out)


def library(calls=tensors, **figures):
    def add(fn):
        try:
            import transformers  # noqa: F401
        except ImportError:
            return fn
        return on(calls, **figures)(fn)

    return add


@library()
def model_output(x):
    from transformers.modeling_outputs import CausalLMOutputWithPast

    out = CausalLMOutputWithPast(logits=x * 2, loss=x.sum())
    return out.logits, out["loss"], out[0], out.to_tuple(), list(out.keys()), out.past_key_values


@library()
def model_output_returned(x):
    from transformers.modeling_outputs import BaseModelOutput

    return BaseModelOutput(last_hidden_state=x * 2)


def encoded():
    from transformers import BatchEncoding

    return [(BatchEncoding({"input_ids": torch.arange(4), "mask": torch.ones(4)}),) for _ in range(2)]


@library(encoded)
def batch_encoding(batch):
    return batch["input_ids"] * 2 + batch.mask, list(batch.keys()), len(batch), {**batch}["mask"] + 1


def dynamic_cache():
    from transformers import DynamicCache

    cache = DynamicCache()
    return [(torch.randn(1, 2, 1, 4), cache) for _ in range(4)]


@library(dynamic_cache, graphs=3, entries=3, recompiles=2)
def dynamic_cache_grows(x, cache):
    keys, values = cache.update(x, x * 2, 0)
    return (keys @ values.mT).sum(), cache.get_seq_length()


def static_cache():
    from transformers import LlamaConfig, StaticCache

    config = LlamaConfig(hidden_size=8, num_attention_heads=2, num_key_value_heads=2, num_hidden_layers=1)
    cache = StaticCache(config=config, max_cache_len=8)
    cache.early_initialization(1, 2, 4, torch.float32, torch.device("cpu"))
    return [(torch.randn(1, 2, 1, 4), cache, torch.tensor([i])) for i in range(3)]


@library(static_cache)
def static_cache_written(x, cache, position):
    keys, values = cache.update(x, x * 2, 0, {"cache_position": position})
    return (keys @ values.mT).sum()


class Named(torch.Tensor):
    @staticmethod
    def __new__(cls, data, name):
        made = torch.Tensor._make_subclass(cls, data)
        made.name_kept = name
        return made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(result, Named):
            result.name_kept = "computed"
        return result


@on(lambda: [(Named(torch.ones(3), "given"),) for _ in range(2)])
def subclass_with_attributes(x):
    y = x * 2
    return y.sum() + (1 if y.name_kept == "computed" else 2), x.name_kept, isinstance(y, Named)


class Unwrapped(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl


@on(lambda: [(torch.ones(3).as_subclass(Unwrapped),) for _ in range(2)])
def subclass_without_functions(x):
    y = x + 1
    return type(y) is torch.Tensor, y


@on(
    lambda: [(TwoTensor(torch.ones(n), torch.zeros(n)), torch.ones(n)) for n in (3, 4, 5)],
    graphs=2,
    entries=2,
    recompiles=1,
)
def wrapper_with_sizes(t, x):
    return (t * x).a + x.shape[0], t.sin()


class Doubling(TorchFunctionMode):
    def __init__(self, factor=2):
        super().__init__()
        self.factor = factor

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * self.factor if func is torch.sin else result


@on(tensors)
def modes_nested(x):
    with Doubling(), Doubling(3):
        y = torch.sin(x)
    return y, torch.sin(x)


@on(tensors, graphs=2, entries=2, breaks=1, torch_differs="the mode is asked twice")
def mode_around_a_break(x):
    with Doubling():
        y = torch.sin(x)
        print("between")
        return torch.sin(y)


MODE = Doubling(5)


@on(tensors)
def mode_of_the_program(x):
    with MODE:
        return torch.sin(x)


@on(tensors)
def functions_disabled(x):
    with torch._C.DisableTorchFunctionSubclass():
        return x + 1


class Counting(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@on(tensors, graphs=0, entries=0, breaks=1)
def dispatch_mode_entered(x):
    with Counting():
        y = x * 2
    return y + 1


class Tree:
    def __init__(self, x):
        self.left, self.right = x, [x * 2]


torch.utils._pytree.register_pytree_node(
    Tree, lambda t: ([t.left, t.right], None), lambda parts, _: Tree(parts[0])
)


@on(tensors)
def trees(x):
    from torch.utils import _pytree

    mapped = _pytree.tree_map(lambda t: t + 1, {"a": x, "b": [x, (x * 2,)]})
    flat, spec = _pytree.tree_flatten(mapped)
    return mapped, flat, _pytree.tree_unflatten(flat, spec)


Point = collections.namedtuple("Point", "x y")


@on(
    lambda: [
        (Point(torch.ones(2), torch.zeros(2)), {"a": [torch.ones(2)], 1: (torch.ones(2),)}) for _ in range(2)
    ]
)
def nested_arguments(point, given):
    given["new"] = point.x + 1
    given["a"].append(point.y)
    return Point(point.y, point.x), point._replace(x=given["a"][0]), given[1][0] * 2
