"""Makes ``parity`` and ``histories`` importable: plain modules in folders next to each other."""

import logging
import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).parents[1]))


@pytest.fixture(autouse=True)
def quiet():
    """One thread; no warning of a limit that a changing world reaches."""
    threads, level = torch.get_num_threads(), logging.root.manager.disable
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    yield
    torch.set_num_threads(threads)
    logging.disable(level)
