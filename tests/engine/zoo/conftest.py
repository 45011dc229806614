"""Makes the zoo's modules and the parity harness importable."""

import logging
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent), str(HERE.parents[1] / "benchmarks")]


@pytest.fixture(autouse=True)
def one_thread():
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)  # pytest would keep every record, which takes longer than the models do
    yield
    logging.disable(logging.NOTSET)
    torch.set_num_threads(threads)
