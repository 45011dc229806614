"""Hooks taken off and registered again between calls (row 31): their ids differ, what is called doesn't."""

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


again("forward", forward, graphs=1, frames=(1, 1), entries=1)
again("before", before_forward, graphs=1, frames=(1, 1), entries=1)
again("two", forward, forward, before_forward, graphs=1, frames=(1, 1), entries=1)
again("keywords", with_keywords, graphs=1, frames=(1, 1), entries=1)
again("mixed", forward, with_keywords, graphs=1, frames=(1, 1), entries=1)
again("alternating", alternating, graphs=2, recompiles=1, frames=(2, 2), entries=2)
again(
    "always",
    lambda i: (double, "register_forward_hook", {"always_call": True}),
    graphs=4,
    recompiles=3,
    frames=(4, 4),
    entries=4,
)
