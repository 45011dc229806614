"""One handler per opcode, grouped as in the `dis` documentation; importing the package fills the table."""

from dynacheck.opcodes import (
    building,
    calls,
    exceptions_with,
    formatting,
    functions,
    generators,
    imports,
    intrinsics,
    jumps,
    loads_stores,
    matching,
    names,
    operators,
    stack,
)

__all__ = [
    "building",
    "calls",
    "exceptions_with",
    "formatting",
    "functions",
    "generators",
    "imports",
    "intrinsics",
    "jumps",
    "loads_stores",
    "matching",
    "names",
    "operators",
    "stack",
]
