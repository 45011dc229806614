"""Symbolic sizes of one attempt."""

from __future__ import annotations

from typing import Any

import torch

from dynacheck.graph.facts import TensorRef


class SymbolicEnv:
    """An attempt's symbols."""

    fake_mode: Any

    def fake(self, ref: TensorRef) -> torch.Tensor:
        raise NotImplementedError

    def ref(self, tensor: torch.Tensor) -> TensorRef:
        raise NotImplementedError

    def reread(self) -> None:
        raise NotImplementedError
