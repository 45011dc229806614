"""The public API: `compile` and what goes with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynacheck import _C
from dynacheck.backends import registry
from dynacheck.runtime.callback import FrameCallback, Job
from dynacheck.runtime.engine import engine


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: Any = None,
) -> Any:
    found = registry.find(backend, mode, options)
    region = engine.regions.find(found, dynamic)
    job = Job(found, region, fullgraph, dynamic)
    return _C.HookedCall(model, FrameCallback(job), region, whole=fullgraph)


def reset() -> None:
    engine.reset()
