"""A policy, and what it learns from."""

import torch
from torch import Tensor, nn


class Policy(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 2))
        self.register_buffer("explore", torch.tensor(0.5))

    def forward(self, observation: Tensor) -> Tensor:
        return self.net(observation)

    def act(self, observation: Tensor, noise: Tensor) -> Tensor:
        """An action each: mostly the best one, now and then any."""
        best = self(observation).argmax(-1)
        return torch.where(noise[:, 0] < self.explore, (noise[:, 1] < 0.5).long(), best)

    def decay(self, factor: float = 0.9) -> None:
        self.explore.mul_(factor)


def loss(policy: Policy, observations: Tensor, actions: Tensor, returns: Tensor) -> Tensor:
    chosen = torch.log_softmax(policy(observations), -1).gather(-1, actions.unsqueeze(-1)).squeeze(-1)
    return -(chosen * (returns - returns.mean())).mean()
