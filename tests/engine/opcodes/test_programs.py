"""Every opcode's handler against plain Python: values, exception types and messages."""

from __future__ import annotations

from typing import Any

import pytest
from every_program import PROGRAMS
from interpreting import interpreted, plainly


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_program(fn: Any) -> None:
    assert interpreted(fn) == plainly(fn)
