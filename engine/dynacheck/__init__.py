"""A tracing compiler front end for PyTorch: graphs, guards and the reasons for what happened."""

from __future__ import annotations

import importlib

# Public name -> module that defines it, imported on first use: `import dynacheck` loads nothing else.
_PUBLIC: dict[str, str] = {
    name: module
    for module, names in {
        "api": "cache_entries compile disable error_on_graph_break graph_break is_compiling reset",
        "backends.registry": "list_backends register_backend",
        "config": "configured",
        "errors": "BackendError ConstraintViolationError DynacheckError FailOnRecompileLimitHit InternalError "
        "InvalidBackend RecompileError UncapturedHigherOrderOpError Unsupported",
        "artifacts": "logs",
        "explanation": "Explanation explain",
        "marks": "allow_in_graph assume_constant_result disallow_in_graph forbid_in_graph mark_dynamic mark_static "
        "mark_unbacked maybe_mark_dynamic nonstrict_trace substitute_in_graph",
        "report": "Report observe",
        "runtime.stance": "set_stance",
    }.items()
    for name in names.split()
}

# What works without torch, and with any.
_ALONE = ("config", "errors")

_MODULES = ("config", "errors", "events", "reasons", "testing")

__all__ = sorted({*_PUBLIC, "config"})


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if module not in _ALONE:
        importlib.import_module(f"{__name__}.versions").require()
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
