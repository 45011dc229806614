"""Every test starts with a clean engine."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def clean(engine):
    """See `engine`."""
