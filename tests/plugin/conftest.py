"""Runs of pytest inside pytest. In one process, because importing torch takes seconds."""

from __future__ import annotations

import sys
import textwrap
from types import ModuleType
from typing import Any

import pytest
import torch._dynamo  # noqa: F401  (before any inner run, which would forget it)
from _pytest import pytester as machinery
from dynacheck import config

PROGRAMS = """
import pytest
import torch


def clean(x):
    return torch.relu(x) + 1


def printing(x):
    y = x + 1
    print("seen")
    return y * 2


def looping(x):
    for _ in range(2):
        print("seen")
        x = x + 1
    return x


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 0.5

    def forward(self, x):
        return torch.relu(x) * self.scale


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        return x * self.steps


X = torch.ones(4)
"""


class KeepsLibraries(machinery.SysModulesSnapshot):
    """pytester forgets every module an inner run imported; torch can't be imported twice."""

    def restore(self) -> None:
        kept: dict[str, ModuleType] = {
            name: module
            for name, module in sys.modules.items()
            if "pytest-of-" not in str(getattr(module, "__file__", None) or "")
        }
        super().restore()
        for name, module in kept.items():
            sys.modules.setdefault(name, module)


class Project:
    """A folder with tests that use PROGRAMS, and how to run them."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.pytester.makepyfile(programs=PROGRAMS)

    def write(self, text: str, name: str = "test_it") -> None:
        self.pytester.makepyfile(**{name: "from programs import *\n" + textwrap.dedent(text)})

    def run(self, *args: str, text: str | None = None) -> pytest.RunResult:
        if text is not None:
            self.write(text)
        return self.pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly", *args)


@pytest.fixture
def _keeps_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machinery, "SysModulesSnapshot", KeepsLibraries)


@pytest.fixture
def project(_keeps_libraries: None, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("PYTEST_ADDOPTS", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "140")
    config.reset_base()  # inner runs share this process with tests of the engine, and with runs that were cut off
    return Project(pytester)
