"""Context managers of torch as decorators inside of compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def decorated(context: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs another inside of a context manager, entered anew by each call."""

    def decorate_context(*args: Any, **kwargs: Any) -> Any:
        with context:
            return function(*args, **kwargs)

    decorate_context.__name__ = function.__name__
    decorate_context.__qualname__ = function.__qualname__
    return decorate_context


def call_compiled_module(self: Any, *args: Any, **kwargs: Any) -> Any:
    """What calling a compiled module does inside of a compiled function (interpreted)."""
    if self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks:
        return torch.nn.Module.__call__(self, *args, **kwargs)
    return self._modules["_orig_mod"](*args, **kwargs)
