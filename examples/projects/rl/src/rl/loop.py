"""Play, learn, repeat."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rl.env import Walk
from rl.policy import Policy, loss


class Learner:
    def __init__(
        self, policy: Policy, compile: Callable[..., Any] = torch.compile, discount: float = 0.9
    ) -> None:
        self.policy, self.discount = policy, discount
        self.act, self.loss = compile(policy.act), compile(loss)
        self.optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)

    @torch.no_grad()
    def play(self, env: Walk, steps: int) -> tuple[Tensor, Tensor, Tensor]:
        observation = env.reset()
        seen, done, rewards = [], [], []
        for _ in range(steps):
            action = self.act(observation, torch.rand(env.count, 2))
            seen.append(observation)
            done.append(action)
            observation, reward = env.step(action)
            rewards.append(reward)
        returns, total = [], torch.zeros(env.count)
        for reward in reversed(rewards):
            total = reward + self.discount * total
            returns.insert(0, total)
        return torch.stack(seen), torch.stack(done), torch.stack(returns)

    def learn(self, env: Walk, steps: int = 6) -> float:
        found = self.loss(self.policy, *self.play(env, steps))
        found.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.policy.decay()
        return found.item()
