import pytest
import torch
import vision.convnet
import vision.transformer  # noqa: F401
from vision.registry import MODELS, create


@pytest.fixture(params=sorted(MODELS))
def model(request):
    torch.manual_seed(0)
    return create(request.param)


@pytest.mark.max_graphs(1)
@pytest.mark.max_graph_breaks(0)
@torch.no_grad()
def test_eval_is_one_graph(model):
    compiled = torch.compile(model.eval())
    for _ in range(2):
        assert compiled(torch.randn(4, 3, 32, 32)).shape == (4, 10)


@pytest.mark.dynacheck(graphs=1, graph_breaks=0, recompiles=0)
def test_training_is_one_graph(model):
    compiled = torch.compile(model.train())
    for _ in range(3):
        compiled(torch.randn(4, 3, 32, 32)).sum().backward()


@pytest.mark.dynacheck(max_graphs=2, max_recompiles=0, allow={"recompile:size:x*": 1})
@torch.no_grad()
def test_any_batch_size(model):
    compiled = torch.compile(model.eval())
    for size in (4, 6, 3, 12):
        compiled(torch.randn(size, 3, 32, 32))


def test_compiled_is_as_eager(model, dynacheck):
    calls = [torch.randn(2, 3, 32, 32) for _ in range(2)]
    dynacheck.check(model.eval(), calls)
