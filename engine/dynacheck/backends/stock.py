"""torch's own backends, loaded when one is first asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from dynacheck.backends.contract import GraphCompiler

INDUCTOR = "inductor"


def names(without: Iterable[str] = ()) -> list[str]:
    """The names torch knows, those for debugging included.

    Args:
        without: leave those with such tags out.
    """
    from torch._dynamo.backends import registry

    return list(registry.list_backends(exclude_tags=tuple(without)))


def lookup(
    name: str, mode: str | None, options: Any, dynamic: bool | None
) -> tuple[GraphCompiler, Mapping[str, Any]] | None:
    """A backend of torch's.

    Args:
        name: its name.
        mode: torch's `mode`.
        options: torch's `options`.
        dynamic: torch's `dynamic`, which some modes depend on.

    Returns:
        The callable and the keywords it still wants, or None if there is none of that name.
    """
    if name == INDUCTOR:
        wrapper: Any = torch._TorchCompileInductorWrapper
        return wrapper(mode, options, dynamic), {}
    if name not in names():
        return None
    from torch._dynamo.backends import registry

    keywords = {k: v for k, v in (("mode", mode), ("options", options)) if v and v != "default"}
    return registry.lookup_backend(name), keywords
