"""What programs ask of torch beside operators (row 41): contexts, state dicts, weak references, text with sizes."""

import weakref

import torch
from parity.harness import registry
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention as attention
from torch.profiler import record_function

PROGRAMS, program = registry()


def tensors(*shape):
    return [(torch.randn(shape or (3, 4)),) for _ in range(2)]


def sizes():
    return [(torch.randn(n),) for n in (3, 4, 5)]


def on(calls=tensors, graphs=1, entries=1, **figures):
    def add(fn):
        program(f"torch_{fn.__name__}", 41, graphs=graphs, entries=entries, **figures)(lambda: (fn, calls()))
        return fn

    return add


def model(calls=tensors, graphs=1, entries=1, **figures):
    def add(cls):
        program(f"torch_{cls.__name__}", 41, graphs=graphs, entries=entries, **figures)(
            lambda: (cls(), calls())
        )
        return cls

    return add


@on(lambda: tensors(1, 2, 4, 8))
def sdpa_kernel_chosen(q):
    with sdpa_kernel(SDPBackend.MATH):
        y = attention(q, q, q)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True):
        return attention(y, q, q)


@on(lambda: tensors(1, 2, 4, 8), graphs=2, entries=2, breaks=1)
def sdpa_kernel_around_a_break(q):
    with sdpa_kernel(SDPBackend.MATH):
        q = q + 1
        print("between")
        return attention(q, q, q)


@on()
def profiler_scope(x):
    with record_function("scope") as scope:
        y = x + 1
    return y if scope is not None else x


@record_function("decorated")
def scoped(x):
    return x * 2


@on()
def profiler_scope_decorates(x):
    return scoped(x) + 1


class Holder:
    scale = 3.0


HOLDER = Holder()
REFERENCE = weakref.ref(HOLDER)


@on()
def weak_reference(x):
    found = REFERENCE()
    return x * found.scale if found is not None else x


@on(lambda: [(torch.randn(3, requires_grad=True),), (torch.randn(3),)], graphs=2, entries=2, recompiles=1)
def grad_fn_of_a_leaf(x):
    return x * 2 if x.grad_fn is None else x


@model()
class StateDict(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return x @ self.state_dict()["layer.weight"].T


@model()
class ConvertsItself(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        self.layer.to(x.device)
        return self.layer.to(torch.float32)(x)


@on(sizes, graphs=2, entries=2, recompiles=1)
def text_with_a_size(x):
    assert x.shape[0] > 1, f"{x.shape[0]} is too short"
    template = "{} of {}"
    return x + 1, [f"{x.shape[0]}", template.format(x.shape[0], 7)][:0]


@on(lambda: [(torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4))] * 2)
def loss_of_a_given_distance(a, b, c):
    return nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance())(a, b, c)


CAUSAL = create_block_mask(lambda b, h, i, j: i >= j, None, None, 16, 16, device="cpu")


@on(lambda: [(*(torch.randn(1, 2, 16, 8) for _ in range(3)), torch.randn(2))] * 2)
def flexible_attention(q, k, v, bias):
    biased = flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + bias[h] * (i - j))
    return biased, flex_attention(q, k, v, block_mask=CAUSAL)
