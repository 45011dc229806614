"""Contexts as blocks and decorators, nested and around breaks (row 44): what is set afterwards is eager's, too."""

import contextlib

import torch
from parity.harness import registry
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attention

PROGRAMS, program = registry()


def tensors(*shape):
    return lambda: [(torch.randn(shape or (3, 4), requires_grad=True),) for _ in range(2)]


def state(fn):
    return (
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"),
        torch.get_default_dtype(), str(torch.get_default_device()),
    )  # fmt: skip


def restore():
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)


def on(calls=None, graphs=1, entries=1, **figures):
    def add(fn):
        program(
            f"context_{fn.__name__}",
            44,
            graphs=graphs,
            entries=entries,
            state=state,
            teardown=restore,
            **figures,
        )(lambda: (fn, (calls or tensors())()))
        return fn

    return add


BROKEN = {"graphs": 2, "entries": 2, "breaks": 1}


@on()
def grad_modes(x):
    with torch.no_grad():
        y = x * 2
        with torch.enable_grad():
            z = x * 3
    with torch.set_grad_enabled(x.shape[0] > 5):
        w = x + 1
    with torch.inference_mode():
        v = x - 1
    return y, z, w, v + 1, torch.is_grad_enabled()


@on(graphs=2, entries=2, recompiles=1)
def grad_mode_left_off(x):
    torch.set_grad_enabled(False)
    return x * 2


@on(**BROKEN)
def grad_mode_left_off_before_a_break(x):
    torch.set_grad_enabled(False)
    y = x * 2
    print(torch.is_grad_enabled())
    z = y * x
    torch.set_grad_enabled(True)
    return y, z, x * 3


@on(**BROKEN)
def all_at_once_around_a_break(x):
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.T
        print(torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), y.dtype)
        z = y @ x
    return y, z, x @ x.T, torch.ones(1).device


@on(graphs=4, entries=4, breaks=3)
def inference_mode_around_a_break(x):
    with torch.inference_mode():
        y = x * 2
        print(torch.is_inference_mode_enabled())
        z = y + 1
    return z.is_inference(), x * 2


@on()
def autocasts_nested(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.T
        with torch.autocast("cpu", enabled=False):
            z = y.float() @ x
        v = x @ x.T
    return y, z, v, x @ x.T


@on()
def autocasts_per_device(x):
    with (
        torch.autocast("cuda", enabled=False),
        torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False),
    ):
        y = x @ x.T
        known = (
            torch.is_autocast_enabled("cpu"),
            torch.get_autocast_dtype("cpu"),
            torch.is_autocast_enabled("cuda"),
            torch.is_autocast_cache_enabled(),
        )
    with torch.amp.autocast("cpu"):
        return y, known, x @ x.T


@on(breaks=1, graphs=2, entries=2)
def branch_under_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.T
        if y.sum() > 0:
            return y @ x
        return y @ x + 1


@torch.no_grad()
def without(x):
    return x * 2


@torch.autocast("cpu", dtype=torch.bfloat16)
def in_half(x):
    return x @ x.T


@torch.inference_mode()
def inferring(x):
    return x + 1


@torch.enable_grad()
def enabled(x):
    return x * 7


@on()
def decorators(x):
    with torch.no_grad():
        y = enabled(x)
    return without(x), in_half(x), inferring(x) + 1, y


@on()
@torch.no_grad()
def decorated_itself(x):
    return x * 2


@on()
@torch.autocast("cpu", dtype=torch.bfloat16)
def decorated_by_autocast(x):
    return x @ x.T


@sdpa_kernel(SDPBackend.MATH)
def attended(x):
    return attention(x[None, None], x[None, None], x[None, None])


@on()
def decorated_by_a_kernel_choice(x):
    return attended(x + 1)


class Decorated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    @torch.no_grad()
    def quiet(self, x):
        return self.layer(x)

    @torch.autocast("cpu", dtype=torch.bfloat16)
    def forward(self, x):
        return self.quiet(x), self.layer(x)


program("context_decorated_methods", 44, graphs=1, entries=1)(lambda: (Decorated(), tensors()()))


@on(graphs=0, entries=0, breaks=1)
def devices(x):
    with torch.device("meta"):
        y = torch.ones(2)
        with torch.device("cpu"):
            z = torch.zeros(3)
        w = torch.tensor([1.0]), torch.arange(3), torch.rand(2)
    return y.device, z, [t.device for t in w], torch.ones(1).device


@on(graphs=0, entries=0, breaks=1)
def device_around_a_break(x):
    with torch.device("meta"):
        y = torch.ones(2)
        print(torch.ones(1).device)
        z = torch.ones(2)
    return y.device, z.device, torch.ones(1).device, x + 1


@on(graphs=2, entries=2, recompiles=1)
def default_dtype_left(x):
    torch.set_default_dtype(torch.float64)
    return torch.ones(2), x + torch.arange(4) / 2


@on(breaks=1, graphs=2, entries=2)
def default_dtype_before_a_break(x):
    torch.set_default_dtype(torch.float64)
    y = torch.ones(2)
    print(torch.get_default_dtype())
    z = torch.ones(2)
    torch.set_default_dtype(torch.float32)
    return y, z, torch.ones(2), x + 1


@on()
def profilers(x):
    with torch.profiler.record_function("one"), torch.autograd.profiler.record_function("two"):
        y = x * 2
    with torch.autograd.profiler.profile(enabled=False):
        return y + 1


@on()
def raised_inside(x):
    try:
        with torch.no_grad():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = x @ x.T
                raise ValueError("leaves")
    except ValueError:
        return y, x @ x.T, torch.is_grad_enabled()


@on()
def left_early(x):
    for n in range(3):
        with torch.no_grad():
            y = x * n
            if n == 1:
                break
    with torch.inference_mode(False), contextlib.nullcontext(), contextlib.suppress(ValueError):
        return y, x * 2


@on(breaks=1, graphs=2, entries=2)
def own_manager(x):
    @contextlib.contextmanager
    def quiet():
        before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)
        try:
            yield before
        finally:
            torch.set_grad_enabled(before)

    with quiet() as before:
        y = x * 2
    print("between")
    return y, before, x * 3


@on(entries=2, breaks=2)
def saved_tensors_hooks(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
        return (x * x).sum()


@on(graphs=0, breaks=2)
def anomaly(x):
    with torch.autograd.detect_anomaly(check_nan=False):
        return x * 2


@on()
def matmul_precision(x):
    torch.set_float32_matmul_precision("high")
    y = x @ x.T
    torch.set_float32_matmul_precision("highest")
    return y


@on(graphs=0, breaks=2)
def flags_of_backends(x):
    with torch.backends.mkldnn.flags(enabled=False):
        return x @ x.T
