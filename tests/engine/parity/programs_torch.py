"""What programs ask of torch beside operators (row 41): contexts, state dicts, weak references, text with sizes."""

import functools
import weakref

import torch
from parity.harness import registry
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention as attention
from torch.profiler import record_function
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

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


@on(lambda: [(torch.randn(1, 2, 16, 8),)] * 2)
def block_mask_made_in_the_frame(q):
    window = q.shape[2] // 4
    made = create_block_mask(lambda b, h, i, j: (i - j).abs() < window, None, None, 16, 16, device="cpu")
    return flex_attention(q, q, q, block_mask=made)


def differentiated(fn, tc):
    compiled = tc(fn)

    def call(x):
        result = compiled(x)
        result.sum().backward()
        return result.detach(), x.grad

    return call


def leaves():
    return [(torch.randn(3, 4, requires_grad=True),) for _ in range(2)]


@on(leaves, build=differentiated)
def hooks_on_an_input(x):
    x.register_hook(lambda grad: grad * 3)
    x.register_hook(lambda grad: grad + 1)
    x.register_post_accumulate_grad_hook(lambda tensor: tensor.grad.mul_(2))
    x.register_hook(lambda grad: grad * 100).remove()
    return x * 2


@on(leaves, build=differentiated, graphs=2, entries=2, breaks=1)
def hook_before_a_break(x):
    x.register_hook(lambda grad: grad * 3)
    y = x * 2
    print("between")
    return y * x


def save_products(ctx, operator, *args, **kwargs):
    kept = operator == torch.ops.aten.mm.default
    return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE


@on(leaves, build=differentiated)
def selective_checkpoint(x):
    contexts = functools.partial(create_selective_checkpoint_contexts, save_products)
    return checkpoint(lambda y: torch.sin(y @ y.T).relu(), x, use_reentrant=False, context_fn=contexts)


@on()
def tensor_of_traced_numbers(x):
    mixed = torch.tensor([[x[0, 0], 1.0], [2, x.sum()]], dtype=torch.float64)
    return mixed, torch.tensor((x.sum() > 0, x.sum() < 0)), torch.tensor([x[0, 0], x[1, 1]])


@on(breaks=1)
def out_that_is_resized(x):
    found = torch.empty(0)
    return torch.add(x, 1, out=found)


@on()
def assertion_of_torch(x):
    torch._assert(x.shape[0] == 3, "three rows")
    return x + 1
