"""Which device a test runs on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_dynacheck._options import Settings
from pytest_dynacheck._session import SESSION

if TYPE_CHECKING:
    import torch


def device_for(request: pytest.FixtureRequest) -> torch.device:
    """The marker's device, else the run's; GPUs are spread over the workers of xdist."""
    import torch

    mark = request.node.get_closest_marker("dynacheck")
    settings: Settings = request.config.stash[SESSION].settings
    name = (mark.kwargs.get("device") if mark else None) or settings["device"]
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        name = "cuda" if count else "cpu"
    if name.startswith("cuda") and not count:
        pytest.skip(f"no GPU for device {name!r}")
    if name == "cuda":
        worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
        name = f"cuda:{int(worker.removeprefix('gw') or 0) % count}"
    return torch.device(name)
