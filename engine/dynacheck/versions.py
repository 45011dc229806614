"""Which Python and torch this is: the only place that asks, for logic."""

import importlib
import sys
from typing import Final

PYTHON: Final[tuple[int, int]] = sys.version_info[:2]

SUPPORTED: Final[tuple[tuple[int, int], ...]] = ((3, 11), (3, 12), (3, 13), (3, 14))

OLDEST_TORCH: Final[tuple[int, int]] = (2, 11)


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


def require() -> None:
    """Refuse a Python or torch that the engine isn't made for.

    Raises:
        ImportError: which it is, and what to do.
    """
    if PYTHON not in SUPPORTED:
        found = ".".join(map(str, PYTHON))
        raise ImportError(f"dynacheck needs CPython 3.11 to 3.14, not {found}: run it with one of these")
    oldest = ".".join(map(str, OLDEST_TORCH))
    advice = f"install it with: pip install 'torch>={oldest}'"
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(f"dynacheck needs torch {oldest} or later, and there is none; {advice}") from None
    version = str(torch.__version__)
    if _release(version) < OLDEST_TORCH:
        raise ImportError(f"dynacheck needs torch {oldest} or later, not {version}; {advice}")


def torch_since(major: int, minor: int) -> bool:
    """Return whether the torch that is loaded is that version or later."""
    return _release(str(sys.modules["torch"].__version__)) >= (major, minor)


def _release(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
