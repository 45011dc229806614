import pytest
import torch
from server.engine import Engine
from server.model import Decoder


@pytest.fixture
def engine():
    torch.manual_seed(0)
    return Engine(Decoder())
