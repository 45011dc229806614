"""Models by name."""

from collections.abc import Callable

from torch import nn

MODELS: dict[str, Callable[[], nn.Module]] = {}


def register(build: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    MODELS[build.__name__] = build
    return build


def create(name: str) -> nn.Module:
    if name not in MODELS:
        raise ValueError(f"no model {name!r}; there are {', '.join(sorted(MODELS))}")
    return MODELS[name]()
