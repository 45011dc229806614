"""A tracing compiler front end for PyTorch: graphs, guards and the reasons for what happened."""

from __future__ import annotations

import importlib

# Public name -> module that defines it, imported on first use: `import dynacheck` loads nothing else.
_PUBLIC: dict[str, str] = {
    name: module
    for module, names in {
        "api": "compile reset",
        "backends.registry": "list_backends register_backend",
        "config": "configured",
        "errors": "BackendError ConstraintViolationError DynacheckError FailOnRecompileLimitHit InternalError "
        "InvalidBackend RecompileError Unsupported",
        "artifacts": "logs",
        "report": "Report observe",
    }.items()
    for name in names.split()
}

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
