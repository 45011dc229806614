import pytest
import torch


@pytest.fixture
def torch_optimizer(dynacheck):
    """What the tests compile with: the backend is the run's (`--dynacheck-backend`)."""
    return lambda fn: dynacheck.compile(fn, fullgraph=True)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param
