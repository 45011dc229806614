"""A loss module of reinforcement learning, and functions around it."""

import copy

import torch
from torch import nn


class QLoss(nn.Module):
    def __init__(self, net, gamma=0.99):
        super().__init__()
        self.net, self.target = net, copy.deepcopy(net)
        self.register_buffer("gamma", torch.tensor(gamma))

    def forward(self, td):
        chosen = self.net(td["obs"]).gather(-1, td["action"]).squeeze(-1)
        with torch.no_grad():
            best = self.target(td["next"]).max(-1).values
        value = td["reward"] + self.gamma * best * ~td["done"]
        return (chosen - value).pow(2).mean()


def soft_update(loss, tau=0.1):
    """Move the target towards the network that learns."""
    with torch.no_grad():
        for old, new in zip(loss.target.parameters(), loss.net.parameters(), strict=True):
            old.lerp_(new, tau)


def discounted(rewards, gamma):
    out = torch.zeros_like(rewards)
    running = torch.zeros(rewards.shape[1:])
    for t in reversed(range(rewards.shape[0])):
        running = rewards[t] + gamma * running
        out[t] = running
    return out


def until_done(td):
    """The steps to the first end, or all if there is none: which code runs only the data tells."""
    if td["done"].any():
        return td["obs"][: int(td["done"].nonzero()[0])].sum()
    return td["obs"].sum()
