"""Training steps (row 29): optimizers compiled by themselves and in steps with backward, clipping, schedulers."""

import torch
from parity.harness import registry
from torch import nn

PROGRAMS, program = registry()

ROUNDING = "bias corrections are computed in float32 tensors, eagerly in Python floats"
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd_momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, foreach=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "adam_foreach": lambda p: torch.optim.Adam(p, lr=0.1, foreach=True),
    "adam_fused": lambda p: torch.optim.Adam(p, lr=0.1, fused=True),
    "adam_tensor_rate": lambda p: torch.optim.Adam(p, lr=torch.tensor(0.1)),
    "adamw_amsgrad": lambda p: torch.optim.AdamW(p, lr=0.1, amsgrad=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.1, momentum=0.5),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.1),
    "asgd": lambda p: torch.optim.ASGD(p, lr=0.1),
}


class Training:
    """A model, its optimizer and a step."""

    def __init__(self, make_optimizer, step=None):
        self.model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
        self.optimizer = make_optimizer(self.model.parameters())
        self.step = step(self.model, self.optimizer) if step is not None else None

    def loss(self, x, y):
        return nn.functional.mse_loss(self.model(x), y)


def parameters(training):
    return [p.detach().clone() for p in training.model.parameters()]


def batches(n):
    return [(torch.randn(3, 4), torch.randn(3, 2)) for _ in range(n)]


def optimizer_alone(training, tc):
    step = tc(training.optimizer.step)

    def call(x, y):
        training.optimizer.zero_grad()
        training.loss(x, y).backward()
        step()

    return call


def whole_step(training, tc):
    return tc(training.step)


def alone(name, **figures):
    options = {"torch_differs": ROUNDING} if "adam" in name and "fused" not in name else {}

    @program(f"optimizer_{name}", 29, build=optimizer_alone, state=parameters, **figures, **options)
    def _():
        return Training(OPTIMIZERS[name]), batches(4)


def whole(name, optimizer="sgd_momentum", calls=4, **figures):
    options = {"torch_differs": ROUNDING} if optimizer == "adam" else {}
    if name == "manual":
        options["torch_differs"] = "gradients that the frame sets to None keep their values"

    def add(step):
        @program(f"train_{name}", 29, build=whole_step, state=parameters, **figures, **options)
        def _():
            return Training(OPTIMIZERS.get(optimizer, optimizer), step), batches(calls)

    return add


alone("sgd", graphs=1, breaks=1, frames=(8, 8), entries=2)
alone("sgd_momentum", graphs=2, breaks=1, recompiles=1, frames=(9, 9), entries=3)
alone("adam", graphs=1, breaks=1, frames=(8, 8), entries=2)
alone("adam_foreach", graphs=1, breaks=1, frames=(8, 8), entries=2)
alone("adam_fused", graphs=0, breaks=4, frames=(12, 11), entries=4)
alone("adam_tensor_rate", graphs=1, breaks=1, frames=(8, 8), entries=2)
alone("adamw_amsgrad", graphs=1, breaks=1, frames=(8, 8), entries=2)
alone("adagrad", graphs=1, breaks=1, frames=(8, 8), entries=2)
alone("rmsprop", graphs=1, breaks=1, frames=(8, 8), entries=2)
alone("nadam", graphs=1, breaks=1, frames=(8, 8), entries=2)
alone("asgd", graphs=1, breaks=1, frames=(8, 8), entries=2)


@whole("sgd", graphs=4, breaks=4, recompiles=1, frames=(14, 14), entries=7)
def _(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@whole("adam", "adam", graphs=3, breaks=4, frames=(13, 13), entries=6)
def _(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@whole("zero_grad_last", graphs=3, breaks=4, recompiles=1, frames=(14, 14), entries=6)
def _(model, optimizer):
    def step(x, y):
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    return step


@whole("clip_norm", graphs=4, breaks=4, recompiles=1, frames=(14, 14), entries=6)
def _(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()

    return step


@whole("clip_value", graphs=4, breaks=4, recompiles=1, frames=(14, 14), entries=6)
def _(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.1)
        optimizer.step()

    return step


@whole("scheduler", calls=5, graphs=3, breaks=5, recompiles=1, frames=(15, 15), entries=7)
def _(model, optimizer):
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    def step(x, y):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        scheduler.step()

    return step


@whole("accumulation", graphs=2, breaks=2, recompiles=1, frames=(11, 10), entries=3)
def _(model, optimizer):
    def step(x, y):
        for part, wanted in ((x, y), (x * 2, y)):
            (nn.functional.mse_loss(model(part), wanted) / 2).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


@whole("scaler", graphs=3, breaks=6, recompiles=1, frames=(16, 16), entries=8)
def _(model, optimizer):
    scaler = torch.amp.GradScaler("cpu")

    def step(x, y):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


@whole("closure", graphs=4, breaks=5, recompiles=1, frames=(17, 17), entries=8)
def _(model, optimizer):
    def step(x, y):
        def closure():
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            return loss

        return optimizer.step(closure).detach()

    return step


@whole("manual", graphs=2, breaks=1, frames=(3, 3), entries=2)
def _(model, optimizer):
    def step(x, y):
        nn.functional.mse_loss(model(x), y).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None

    return step


def two_rates(parameters):
    first, *others = parameters
    return torch.optim.SGD([{"params": [first]}, {"params": others, "lr": 0.5}], lr=0.1, momentum=0.5)


@whole("two_groups", two_rates, graphs=3, breaks=4, recompiles=1, frames=(14, 14), entries=6)
def _(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    return step


class Summing(torch.optim.Optimizer):
    """An optimizer of the user's, with state that it makes in its step."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.1})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if "sum" not in state:
                    state["sum"] = torch.zeros_like(parameter)
                state["sum"].add_(parameter.grad)
                parameter.add_(state["sum"], alpha=-group["lr"])


@whole("own_optimizer", Summing, graphs=3, breaks=2, recompiles=1, frames=(5, 5), entries=4)
def _(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    return step


class Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 0.5 * (1 + torch.tanh(x))

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


def with_gradients(fn, tc):
    compiled = tc(fn)

    def step(x, layer):
        loss = compiled(x, layer)
        loss.backward()
        return loss, layer.weight.grad.clone()

    return step


@program("function_of_a_view_that_varies", 29, graphs=2, recompiles=1, entries=2, build=with_gradients)
def _():
    layer = nn.Linear(4, 8)
    return lambda x, layer: Halved.apply(layer(x)).sum(), [(torch.ones(2, n, 4), layer) for n in (3, 5, 6)]
