"""Every test starts and ends with a clean engine; faults of the engine are errors."""

from __future__ import annotations

import dynacheck
import pytest
from dynacheck import config


@pytest.fixture(autouse=True)
def engine():
    config.set_base(raise_internal_errors=True)
    dynacheck.reset()
    yield dynacheck
    dynacheck.reset()
    config.reset_base()
