import pytest
import torch
from finetune.data import batches
from finetune.model import Classifier
from finetune.train import train

from pytest_dynacheck import Args


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Classifier()


@pytest.mark.max_graphs(1)
@pytest.mark.max_graph_breaks(0)
def test_one_graph_for_the_whole_pass(model):
    losses = train(model, batches(4, size=4))
    assert all(loss > 0 for loss in losses)


def test_gradients_are_those_of_eager(model, dynacheck):
    calls = [Args(**batch) for batch in batches(2, size=4)]
    dynacheck.check(model, calls, grad=True)


@pytest.mark.dynacheck(max_recompiles=0, allow={"recompile:grad_mode:*": 1})
def test_evaluation_between_epochs(model):
    compiled = torch.compile(model)
    for _ in range(2):
        for batch in batches(2, size=4):
            compiled(**batch)[0].backward()
        with torch.no_grad():
            compiled(**batches(1, size=4)[0])
