"""Gradients in and around compiled code by kind (row 46)."""

import torch
from parity.harness import registry
from torch import nn
from torch.utils.checkpoint import checkpoint

PROGRAMS, program = registry()


def leaves(n=2):
    return [(torch.randn(3, 4, requires_grad=True),) for _ in range(n)]


def differentiated(fn, tc):
    compiled = tc(fn)

    def call(x):
        result = compiled(x)
        result.sum().backward()
        return result.detach(), x.grad

    return call


def on(calls=leaves, graphs=1, entries=1, build=differentiated, **figures):
    def add(fn):
        program(f"autograd_{fn.__name__}", 46, graphs=graphs, entries=entries, build=build, **figures)(
            lambda: (fn, calls())
        )
        return fn

    return add


def plainly(fn, tc):
    return tc(fn)


BROKEN = {"graphs": 2, "entries": 2, "breaks": 1}


@on()
def outputs_differentiable(x):
    y = x * 2
    return y.sin() + y.detach() + x[0].exp()


@on(build=plainly)
def flags_of_outputs(x):
    y, z = x * 2, x.detach() * 2
    with torch.no_grad():
        w = x * 3
    return (
        y.requires_grad,
        z.requires_grad,
        w.requires_grad,
        y.is_leaf,
        x.is_leaf,
        z.is_leaf,
        y,
        z,
        w,
    )


@on(build=plainly, graphs=2, entries=2, breaks=1)
def backward_inside(x):
    y = (x * x).sum()
    y.backward()
    return x.grad * 2


@on(build=plainly, graphs=2, entries=2, breaks=2)
def backward_with_a_gradient(x):
    y = x * x
    y.backward(torch.ones_like(y), retain_graph=True)
    torch.autograd.backward(y.sum())
    return x.grad


@on(build=plainly, graphs=3, entries=3, breaks=2)
def gradient_inside(x):
    y = (x**3).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    return first.detach(), second


@on(build=plainly, graphs=3, entries=3, breaks=3)
def gradient_of_what_is_made(x):
    w = (x * 2).detach().requires_grad_()
    return torch.autograd.grad((w * w).sum(), w, allow_unused=True)[0] + x


@on(build=plainly, graphs=2, entries=3, breaks=2)
def gradient_inside_around_a_break(x):
    y = (x * x).sum()
    print("between")
    return torch.autograd.grad(y, x)[0] * 2


def twice_differentiated(fn, tc):
    compiled = tc(fn, backend="aot_eager")

    def call(x):
        try:
            (first,) = torch.autograd.grad(compiled(x).sum(), x, create_graph=True)
            first.sum().backward()
            return x.grad
        except RuntimeError as error:
            return "double backward" in str(error)

    return call


@on(build=twice_differentiated, torch_differs="graphs of AOTAutograd have no second gradients")
def second_gradient_of_a_lowered_graph(x):
    return x**3


def twice(fn, tc):
    compiled = tc(fn)

    def call(x):
        (first,) = torch.autograd.grad(compiled(x).sum(), x, create_graph=True)
        (first * first).sum().backward()
        return first, x.grad

    return call


@on(build=twice)
def second_gradient(x):
    return (x**3).sin()


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.k * x.cos(), None


class Chosen(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        values, places = x.max(1)
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(places)
        ctx.set_materialize_grads(False)
        ctx.shape = x.shape
        return values, places

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad, _):
        (places,) = ctx.saved_tensors
        return torch.zeros(ctx.shape).scatter(1, places[:, None], grad[:, None])


@on()
def functions_of_the_users(x):
    values, places = Chosen.apply(Scaled.apply(x, 3.0))
    return values * places


@on(**BROKEN)
def function_before_a_break(x):
    y = Scaled.apply(x, 2.0)
    print("between")
    return Scaled.apply(y, 2.0)


@on()
def hooks_on_tensors(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 3)
    x.register_hook(lambda grad: grad + 1)
    return y.sin()


@on(graphs=0, entries=0, breaks=1)
def retains_a_gradient(x):
    y = x * 2
    y.retain_grad()
    return y.sin()


def accumulated(model, tc):
    compiled = tc(model)

    def call(x):
        for part in x.split(1):
            (compiled(part).square().mean() / 3).backward()
        kept = [p.grad.clone() for p in model.parameters()]
        model.zero_grad(set_to_none=len(kept) > 9)
        return kept

    return call


def model(name, build, graphs=1, entries=1, make=None, **figures):
    @program(f"autograd_{name}", 46, graphs=graphs, entries=entries, build=build, **figures)
    def _():
        net = (make or (lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))))()
        return net, [(torch.randn(3, 4),) for _ in range(3)]


model("accumulation", accumulated)


def mixed(model, tc):
    compiled, scaler = tc(model), torch.amp.GradScaler("cpu", init_scale=8.0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def call(x):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = compiled(x).float().square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach(), scaler.get_scale()

    return call


model("mixed_precision", mixed)


def penalised(model, tc):
    compiled = tc(model)

    def call(x):
        x = x.clone().requires_grad_()
        (grad,) = torch.autograd.grad(compiled(x).sum(), x, create_graph=True)
        grad.norm().backward()
        return grad.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None]

    return call


model("gradient_penalty", penalised)


class Checkpointed(nn.Module):
    def __init__(self, rate=0.0):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.drop = nn.Dropout(rate)

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(lambda y, layer=layer: self.drop(layer(y)).tanh(), x, use_reentrant=False)
        return x


def trained(model, tc):
    compiled = tc(model)

    def call(x):
        model.zero_grad()
        compiled(x).sum().backward()
        return [p.grad.clone() for p in model.parameters()]

    return call


model("checkpointed_layers", trained, make=Checkpointed)
model(
    "checkpointed_dropout",
    trained,
    make=lambda: Checkpointed(0.3),
    torch_differs="only AOTAutograd draws the same numbers again in the backward pass",
)


def frozen_between(model, tc):
    compiled, calls = tc(model), iter(range(9))

    def call(x):
        model[0].requires_grad_(next(calls) != 1)
        model.zero_grad()
        compiled(x).sum().backward()
        return [p.grad is None for p in model.parameters()]

    return call


model("frozen_between", frozen_between, graphs=2, entries=2, recompiles=1)


def under_no_grad(model, tc):
    compiled, calls = tc(model), iter(range(9))

    def call(x):
        with torch.set_grad_enabled(next(calls) != 1):
            return compiled(x).requires_grad

    return call


model("validated_between", under_no_grad, graphs=2, entries=2, recompiles=1)


@on(build=plainly)
def gradient_set(x):
    x.grad = torch.ones_like(x)
    y = x.grad * 2
    x.grad = None
    return y, x.grad is None


@on()
def detached_and_written(x):
    y = x * 2
    with torch.no_grad():
        y.mul_(2)
    z = y.clone()
    z[0] = 0
    return z + y.data


@on(build=plainly, graphs=0, breaks=2)
def saved_and_unsaved(x):
    with torch.autograd.graph.save_on_cpu():
        return x * x


@on()
def stopped_gradients(x):
    return torch.where(x > 0, x, x.detach()) + x.clamp(min=0) + x.round().detach() - (x - x.detach())


@on(lambda: [(torch.randn(3, 4, requires_grad=True, dtype=torch.float64),)] * 2, build=plainly)
def forward_mode(x):
    return torch.func.jvp(lambda y: y.sin(), (x,), (torch.ones_like(x),))
