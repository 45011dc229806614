"""Makes ``parity`` and ``histories`` importable: plain modules in folders next to each other."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))


@pytest.fixture(autouse=True)
def _quietly(quiet):
    """All of these tests."""
