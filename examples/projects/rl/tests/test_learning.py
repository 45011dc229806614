import pytest
import torch
from rl.env import Walk
from rl.loop import Learner
from rl.policy import Policy


@pytest.fixture
def learner():
    torch.manual_seed(0)
    return Learner(Policy())


@pytest.mark.dynacheck(graphs=2, graph_breaks=0, recompiles=0)
def test_one_graph_to_act_and_one_to_learn(learner):
    env = Walk()
    for _ in range(3):
        learner.learn(env)


def test_learning_is_steady(learner, dynacheck):
    env = Walk()
    learner.learn(env)
    with dynacheck.steady():
        for _ in range(3):
            learner.learn(env)


def test_as_in_eager():
    losses = []
    for compile in (torch.compile, lambda fn: fn):
        torch.manual_seed(0)
        learner, env = Learner(Policy(), compile=compile), Walk()
        losses.append([learner.learn(env) for _ in range(3)])
    assert losses[0] == pytest.approx(losses[1])
