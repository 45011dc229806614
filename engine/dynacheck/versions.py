"""Which Python and torch this is: the only place that asks, for logic."""

import sys
from typing import Final

PYTHON: Final[tuple[int, int]] = sys.version_info[:2]

SUPPORTED: Final[tuple[tuple[int, int], ...]] = ((3, 11), (3, 12), (3, 13), (3, 14))


def python_since(major: int, minor: int) -> bool:
    """Return whether this interpreter is that version or later.

    >>> python_since(3, 11)
    True
    """
    return sys.version_info >= (major, minor)


PY312: Final = python_since(3, 12)
PY313: Final = python_since(3, 13)
PY314: Final = python_since(3, 14)

SKIPS_POP_AFTER_LOOP: Final = PY313 and not PY314
"""Whether an exhausted FOR_ITER jumps past END_FOR and the POP_TOP after it, not past END_FOR alone."""


def torch_version() -> tuple[int, int] | None:
    """Return (major, minor) of the torch that is loaded, or None when it isn't imported.

    Returns:
        The first two components of `torch.__version__`; torch is never imported by asking.
    """
    torch = sys.modules.get("torch")
    version = getattr(torch, "__version__", None)
    if version is None:
        return None
    major, minor = str(version).split(".")[:2]
    return int(major), int(minor)
