"""Hooks taken off and registered again between calls (row 31): their ids differ, what is called doesn't. Hooks that
break the call around them (row 32): the forward of torch's own module is then a frame of its own."""

import torch
from parity.harness import registry
from torch import nn

PROGRAMS, program = registry()
handles = []


def double(module, args, out):
    return out * 2


def more(module, args, named, out):
    return out + 1


def shifted(module, args):
    return (args[0] + 1,)


def anew(*kinds):
    def before(i, net):
        while handles:
            handles.pop().remove()
        for kind in kinds:
            hook, way, options = kind(i)
            handles.append(getattr(net[0], way)(hook, **options))

    return before


def again(name, *kinds, **figures):
    @program(f"hooks_again_{name}", 31, before=anew(*kinds), **figures)
    def _():
        handles.clear()
        return nn.Sequential(nn.Linear(2, 2), nn.ReLU()), [(torch.ones(1, 2),) for _ in range(4)]


def forward(i):
    return double, "register_forward_hook", {}


def with_keywords(i):
    return more, "register_forward_hook", {"with_kwargs": True}


def before_forward(i):
    return shifted, "register_forward_pre_hook", {}


def alternating(i):
    return (double if i % 2 else (lambda module, args, out: out + 1)), "register_forward_hook", {}


def always(i):
    return double, "register_forward_hook", {"always_call": True}


def takes_any(module, args, *rest):
    return (rest[-1] + 1) * len(rest)


def first_at_even_calls(i):
    return takes_any, "register_forward_hook", {"with_kwargs": i % 2 == 0}


def first_at_odd_calls(i):
    return takes_any, "register_forward_hook", {"with_kwargs": i % 2 == 1}


again("forward", forward, graphs=1, frames=(1, 1), entries=1)
again("before", before_forward, graphs=1, frames=(1, 1), entries=1)
again("two", forward, forward, before_forward, graphs=1, frames=(1, 1), entries=1)
again("keywords", with_keywords, graphs=1, frames=(1, 1), entries=1)
again("mixed", forward, with_keywords, graphs=1, frames=(1, 1), entries=1)
again("one_of_three", forward, with_keywords, forward, graphs=1, frames=(1, 1), entries=1)
again(
    "other_one",
    first_at_even_calls,
    first_at_odd_calls,
    graphs=1,
    frames=(1, 1),
    entries=1,
    torch_differs="it doesn't notice which hook gets keywords",
)
again("alternating", alternating, graphs=2, recompiles=1, frames=(2, 2), entries=2)
again(
    "always",
    lambda i: (double, "register_forward_hook", {"always_call": True}),
    graphs=4,
    recompiles=3,
    frames=(4, 4),
    entries=4,
)


def printing(module, args, *out):
    print("hook")


class Around(nn.Module):
    """Calls layers, of which those named have a hook, one after another or in a loop that prints."""

    def __init__(self, layers, way="register_forward_hook", hooked=(0,), in_loop=False):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.in_loop = in_loop
        for index in hooked:
            getattr(self.layers[index], way)(printing)

    def forward(self, x):
        if self.in_loop:
            for layer in self.layers:
                x = layer(x)
                print("layer")
            return x
        return self.layers[0](x) * 2


class OwnLinear(nn.Linear):
    """A class of the user's: its forward is torch's, which isn't a frame of its own."""


def breaking(name, make, **figures):
    @program(f"hook_breaks_{name}", 32, **figures)
    def _():
        return make(), [(torch.ones(2, 4),) for _ in range(2)]


def linears():
    return [nn.Linear(4, 4), nn.Linear(4, 4)]


breaking("linear", lambda: Around(linears()), graphs=2, breaks=2, entries=4)
breaking("before", lambda: Around(linears(), "register_forward_pre_hook"), graphs=2, breaks=2, entries=4)
breaking("norm", lambda: Around([nn.LayerNorm(4)]), graphs=2, breaks=2, entries=4)
breaking(
    "sequential", lambda: Around([nn.Sequential(nn.Linear(4, 4), nn.ReLU())]), graphs=2, breaks=2, entries=4
)
breaking("own_class", lambda: Around([OwnLinear(4, 4)]), graphs=1, breaks=2, entries=3)
breaking("root", lambda: Around(linears()).layers[0], graphs=1, breaks=2, entries=3)
breaking("first_of_two", lambda: Around(linears(), in_loop=True), graphs=1, breaks=2, entries=2)
breaking("second_of_two", lambda: Around(linears(), hooked=(1,), in_loop=True), graphs=0, breaks=2, entries=1)
breaking(
    "each",
    lambda: Around(linears(), hooked=(0, 1), in_loop=True),
    graphs=2,
    breaks=2,
    recompiles=1,
    entries=3,
)
