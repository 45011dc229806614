"""A tracing compiler front end for PyTorch: graphs, guards and the reasons for what happened."""

from __future__ import annotations

import importlib

# Public name -> module that defines it, imported on first use: `import dynacheck` alone loads neither.
_PUBLIC: dict[str, str] = {}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> object:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
