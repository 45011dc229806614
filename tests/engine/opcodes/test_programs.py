"""Every opcode's handler against plain Python: values, exception types and messages."""

from __future__ import annotations

from typing import Any

import programs_exceptions
import programs_flow
import programs_generators
import programs_objects
import programs_values
import pytest
from interpreting import interpreted, plainly
from opcode_programs import PROGRAMS


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_program(fn: Any) -> None:
    assert interpreted(fn) == plainly(fn)
