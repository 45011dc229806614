"""Modules by kind (row 45): containers, state that forward changes, hooks, tied weights, parametrisations, swaps."""

import copy

import torch
from parity.harness import registry
from torch import nn
from torch.nn.utils import parametrizations, parametrize

PROGRAMS, program = registry()


def tensors(*shape, n=2):
    return lambda: [(torch.randn(shape or (3, 4)),) for _ in range(n)]


def on(calls=None, graphs=1, entries=1, **figures):
    def add(cls):
        program(f"module_{cls.__name__}", 45, graphs=graphs, entries=entries, **figures)(
            lambda: (cls(), (calls or tensors())())
        )
        return cls

    return add


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.made()

    def made(self):
        pass


@on()
class Containers(Net):
    def made(self):
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.heads = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Identity()})
        self.scales = nn.ParameterList([torch.ones(4), torch.zeros(4)])
        self.named = nn.ParameterDict({"w": torch.ones(4), "n": torch.zeros(4)})
        self.rest = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh(), nn.Dropout(0.0)))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) * self.scales[i % 2]
        for layer in self.layers[1:]:
            x = layer(x)
        for name, head in self.heads.items():
            x = x + head(x).sum() if name in self.heads else x
        for key in self.named:
            x = x + self.named[key]
        extra = (
            "w" in self.named,
            len(self.scales),
            len(self.layers),
            list(self.heads),
            self.rest[1][0] is self.rest[-1][0],
        )
        return (
            self.rest[:1](x),
            self.rest(x),
            extra,
            self.layers[-1](x),
            [p.shape for p in self.scales],
            self.heads["b"](x),
        )


@on()
class Tied(Net):
    def made(self):
        self.other = nn.Linear(4, 4)
        self.other.weight = self.layer.weight
        self.same = self.layer

    def forward(self, x):
        return self.other(self.same(self.layer(x))), self.same is self.layer, len(list(self.parameters()))


@on()
class BuffersChanged(Net):
    def made(self):
        self.register_buffer("total", torch.zeros(4))
        self.register_buffer("hidden", torch.zeros(4), persistent=False)
        self.register_buffer("missing", None)

    def forward(self, x):
        self.total.add_(x.sum(0))
        self.hidden = self.hidden + x.mean(0)
        return x + self.total + self.hidden, self.missing is None


@on(tensors(n=3), graphs=2, entries=2, recompiles=1)
class BufferAppears(Net):
    def made(self):
        self.register_buffer("cache", None, persistent=False)

    def forward(self, x):
        if self.cache is None:
            self.cache = x.sum(0)
        return x + self.cache


@on(graphs=2, entries=2, recompiles=1)
class RegistersABuffer(Net):
    def forward(self, x):
        if not hasattr(self, "late"):
            self.register_buffer("late", torch.ones(4))
        return x * self.late


class Scaled(nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, x):
        return x * self.by


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.width = 4
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)

    def forward(self, x):
        return self.second(self.first(x))


def parts(module):
    return sorted(vars(module)), [name for name, _ in module.named_modules()]


@on(tensors(n=3), graphs=2, entries=2, recompiles=1, state=parts)
class MakesAPart(Net):
    def made(self):
        self.part = None

    def forward(self, x):
        if self.part is None:
            self.part = Scaled(2.0)
        return self.part(x)


@on(tensors(n=3), graphs=3, breaks=2, entries=3, recompiles=1, state=parts)
class MakesLayers(Net):
    def made(self):
        self.layers = None

    def forward(self, x):
        x = x * 2
        if self.layers is None:
            self.layers = Layers()
        return self.layers(x)


class Inner(nn.Module):
    def forward(self, x, scale=1):
        return x * scale


@on()
class HooksOfAllKinds(Net):
    def made(self):
        self.inner = Inner()
        self.inner.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
        self.inner.register_forward_pre_hook(
            lambda m, args, named: (args, {**named, "scale": 3}), with_kwargs=True
        )
        self.inner.register_forward_hook(lambda m, args, out: out * 2)
        self.inner.register_forward_hook(lambda m, args, named, out: out + named["scale"], with_kwargs=True)
        self.layer.register_forward_hook(lambda m, args, out: None, always_call=True)

    def forward(self, x):
        return self.inner(self.layer(x), scale=2)


def trained(module, tc):
    compiled = tc(module)

    def call(x):
        module.zero_grad()
        x = x.clone().requires_grad_()
        compiled(x).sum().backward()
        return x.grad, [p.grad.clone() for p in module.parameters()]

    return call


@on(build=trained, breaks=1)
class BackwardHooks(Net):
    def made(self):
        self.inner = nn.Linear(4, 4)
        self.inner.register_full_backward_hook(lambda m, before, after: (before[0] * 2,))

    def forward(self, x):
        return self.inner(self.layer(x))


@on(build=trained, breaks=1)
class BackwardPreHooks(Net):
    def made(self):
        self.inner = nn.Linear(4, 4)
        self.inner.register_full_backward_pre_hook(lambda m, after: (after[0] * 3,))

    def forward(self, x):
        return self.inner(self.layer(x))


@on(graphs=2, entries=3, breaks=3)
class RegistersAHookItself(Net):
    def forward(self, x):
        handle = self.layer.register_forward_hook(lambda m, args, out: out * 2)
        y = self.layer(x)
        handle.remove()
        return y + self.layer(x)


def swap(i, module):
    if i == 1:
        module.layer = nn.Linear(4, 4, bias=False)
    if i == 2:
        module.register_module("extra", nn.Linear(4, 4))
    if i == 3:
        del module.extra


@on(tensors(n=5), before=swap, graphs=3, entries=3, recompiles=2)
class Swapped(Net):
    def forward(self, x):
        x = self.layer(x)
        return self.extra(x) if hasattr(self, "extra") else x


@on()
class AsksForNames(Net):
    def made(self):
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x):
        names = [name for name, _ in self.named_parameters()] + [name for name, _ in self.named_buffers()]
        parts = [name for name, _ in self.named_modules()] + [name for name, _ in self.named_children()]
        total = sum(p.sum() for p in self.parameters()) + sum(b.sum() for b in self.buffers())
        found = (
            self.get_parameter("layer.weight"),
            self.get_submodule("layer") is self.layer,
            self.get_buffer("scale"),
        )
        return (
            x * total,
            names,
            parts,
            found,
            len(list(self.modules())),
            len(list(self.children())),
            self.training,
            sorted(self.state_dict()),
        )


@on(build=trained)
class Parametrized(Net):
    def made(self):
        parametrize.register_parametrization(self.layer, "weight", Symmetric())
        self.weighted = parametrizations.weight_norm(nn.Linear(4, 4))

    def forward(self, x):
        return self.weighted(self.layer(x))


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T


@on(build=trained)
class SpectralNorm(Net):
    def made(self):
        self.normed = parametrizations.spectral_norm(nn.Linear(4, 4))

    def forward(self, x):
        return self.normed(x) + self.layer(x)


@on()
class OldNorms(Net):
    def made(self):
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.weighted = nn.utils.weight_norm(nn.Linear(4, 4))
        self.spectral = nn.utils.spectral_norm(nn.Linear(4, 4))

    def forward(self, x):
        return self.weighted(x) + self.spectral(x)


@on()
class OrthogonalWeight(Net):
    def made(self):
        self.layer = parametrizations.orthogonal(nn.Linear(4, 4))

    def forward(self, x):
        with parametrize.cached():
            return self.layer(self.layer(x))


def alternate(i, module):
    module.train(i % 2 == 0)


@on(tensors(n=5), before=alternate, graphs=3, entries=3, breaks=1, recompiles=1)
class NormsAndDropout(Net):
    def made(self):
        self.norm, self.slow, self.drop = nn.BatchNorm1d(4), nn.BatchNorm1d(4, momentum=None), nn.Dropout(0.5)

    def forward(self, x):
        return (
            self.drop(self.slow(self.norm(self.layer(x)))),
            self.norm.running_mean.clone(),
            self.norm.num_batches_tracked + 0,
        )


@on(tensors(2, 5, 4), graphs=0, entries=0, breaks=1)
class Recurrent(Net):
    def made(self):
        self.rnn, self.lstm, self.gru = (
            nn.RNN(4, 4, batch_first=True),
            nn.LSTM(4, 4, 2, bidirectional=True),
            nn.GRU(4, 4),
        )
        self.cell = nn.LSTMCell(4, 4)

    def forward(self, x):
        y, h = self.rnn(x)
        z, (h, c) = self.lstm(y)
        w, h = self.gru(x)
        return z, h, c, w, self.cell(x[0])


@on()
class TrainsItself(Net):
    def made(self):
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        self.eval()
        y = self.drop(x)
        self.train()
        self.layer.eval()
        return y, self.layer(x), self.training, self.layer.training


@on(graphs=2, entries=3, breaks=2)
class Freezes(Net):
    def forward(self, x):
        self.layer.requires_grad_(False)
        y = self.layer(x)
        self.layer.requires_grad_(True)
        return y, self.layer(x)


class Averaged(Net):
    def made(self):
        self.average = copy.deepcopy(self.layer).requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            for mine, its in zip(self.average.parameters(), self.layer.parameters()):
                mine.mul_(0.9).add_(its, alpha=0.1)
        return self.average(x) + self.layer(x)


on()(Averaged)


def swap_weights(i, module):
    kept = [p.data for p in module.layer.parameters()]
    for p, its in zip(module.layer.parameters(), module.other):
        p.data = its
    module.other = kept


@on(tensors(n=3), before=swap_weights)
class SwappedWeights(Net):
    def made(self):
        self.other = [torch.ones(4, 4), torch.zeros(4)]

    def forward(self, x):
        return self.layer(x)


class LoRA(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base, self.active = base, True
        self.down, self.up = nn.Linear(4, 2, bias=False), nn.Linear(2, 4, bias=False)

    def forward(self, x):
        y = self.base(x)
        return y + self.up(self.down(x)) * 0.5 if self.active else y


def switch(i, module):
    module.layer.active = i % 2 == 0
    if i == 3:
        module.layer = module.layer.base


@on(tensors(n=5), before=switch, graphs=3, entries=3, recompiles=2)
class Adapted(Net):
    def made(self):
        self.layer = LoRA(self.layer)

    def forward(self, x):
        return self.layer(x).relu()


@on(graphs=2, entries=2, recompiles=1)
class AttributesChanged(Net):
    def made(self):
        self.step, self.history, self.last = 0.0, [], None

    def forward(self, x):
        self.last = x.sum()
        self.history.append(self.last)
        self.names = {"a": x * 2}
        return self.layer(x) + self.names["a"], len(self.history)


@on()
class CallsInOtherWays(Net):
    def forward(self, x):
        call = self.layer.__call__
        return (
            self.layer.forward(x),
            nn.Linear.forward(self.layer, x),
            call(x),
            nn.functional.linear(x, *self.layer.parameters()),
            getattr(self, "layer")(input=x),
            self._modules["layer"](x),
            super().__getattr__("layer")(x),
        )


@on()
class MadeInForward(Net):
    def forward(self, x):
        made = nn.ReLU()
        drop = nn.Dropout(0.5)
        return made(self.layer(x)), drop(x), nn.Softmax(-1)(x), nn.CrossEntropyLoss()(x, x.argmax(-1))


@on(entries=2, breaks=1)
class LayerMadeInForward(Net):
    def forward(self, x):
        made = nn.Linear(4, 2)
        return made(x)


@on()
class Asked(Net):
    def made(self):
        self.layer.tag = "kept"

    def forward(self, x):
        known = (
            isinstance(self.layer, nn.Linear),
            type(self.layer) is nn.Linear,
            hasattr(self, "nothing"),
            self.layer.in_features,
        )
        return (
            self.layer(x),
            known,
            getattr(self.layer, "tag", None),
            self.layer.weight.shape,
            self.layer.bias is not None,
            self.layer._get_name(),
            self.layer.__class__.__name__,
        )


@on()
class Casts(Net):
    def forward(self, x):
        return (
            self.layer(x.to(self.layer.weight.dtype)).to(torch.float64),
            next(self.parameters()).device,
            self.layer.weight.data.sum(),
            self.layer.weight.detach() * 2,
        )


@on()
class OwnGetattr(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)

    def forward(self, x):
        return x @ self.weight.T + self.bias


@on()
class ForwardOnly(Net):
    def forward(self, x, *rest, scale=2, **named):
        return self.layer(x) * scale, rest, named


class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.module = Asked()

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)[0]


on()(Wrapped)


class HoldsLazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.then = nn.LazyLinear(4), nn.Sequential(nn.LazyConv1d(3, 1), nn.LazyBatchNorm1d())

    def forward(self, x):
        return self.then(self.first(x)[:, :, None]).sum(-1)


def closed_over(make):
    """A module that isn't compiled itself: a function that is calls it."""
    module = make()
    return lambda x: module(x).relu()


for _name, _make in (("LazyClosedOver", lambda: nn.LazyLinear(4)), ("LazyInsideClosedOver", HoldsLazy)):
    program(
        f"module_{_name}", 13, graphs=1, entries=1, torch_differs="its first call draws no random numbers"
    )(lambda make=_make: (closed_over(make), tensors(2, 3, n=3)()))


class AroundCompiled(nn.Module):
    """A module whose child is compiled, too."""

    def __init__(self):
        super().__init__()
        self.child = nn.Linear(2, 2)

    def forward(self, x):
        return self.child(x) * 2


def _child_compiled(net, tc):
    # not set as an attribute: a compiled child renames its parameters
    compiled = tc(net.child)
    return tc(lambda x: compiled(x) + net(x))


@program("child_compiled_in_compiled", 45, graphs=1, entries=1, build=_child_compiled)
def _():
    return AroundCompiled(), [(torch.ones(1, 2),)] * 2
