"""All programs, by importing the modules that register them."""

import programs_exceptions
import programs_flow
import programs_generators
import programs_objects
import programs_values
from opcode_programs import PROGRAMS

__all__ = [
    "PROGRAMS",
    "programs_exceptions",
    "programs_flow",
    "programs_generators",
    "programs_objects",
    "programs_values",
]
