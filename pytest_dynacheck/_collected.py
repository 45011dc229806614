"""Which tests there are, run or not: so that a baseline's rows of tests that are gone can be told."""

from __future__ import annotations

import os
from typing import Any

import pytest

_PARTIAL = ("lf", "ignore", "ignore_glob", "pyargs")  # of what they name, some isn't even collected


class Collected:
    """Names of all tests that were collected, deselected ones included; a plugin of its own.

    Under xdist workers collect and tell the controller.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.names: set[str] = set()
        self.skipped: set[str] = set()
        self.broken = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.names.update(item.nodeid for item in items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.broken = self.broken or report.failed
        if report.skipped:  # a module that skips itself
            self.skipped.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["dynacheck_collected"] = (sorted(self.names), sorted(self.skipped), self.broken)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        told = getattr(node, "workeroutput", {}).get("dynacheck_collected", ((), (), True))
        self.names.update(told[0])
        self.skipped.update(told[1])
        self.broken = self.broken or told[2]

    def is_gone(self, nodeid: str) -> bool:
        """True if this run would have collected the test if there were one."""
        if self.broken or nodeid in self.names or not self.names:
            return False
        if any(self._config.getoption(name, None) for name in _PARTIAL):
            return False
        if any(_covers(skipped, nodeid) for skipped in self.skipped):
            return False
        return any(_covers(argument, nodeid) for argument in self._arguments())

    def _arguments(self) -> list[str]:
        """What the run was asked for, written as node ids are."""
        found = []
        for argument in self._config.args:
            file, separator, rest = argument.partition("::")
            path = os.path.abspath(os.path.join(self._config.invocation_params.dir, file))
            relative = os.path.relpath(path, self._config.rootpath).replace(os.sep, "/")
            found.append(("" if relative == "." else relative) + separator + rest)
        return found


def _covers(argument: str, nodeid: str) -> bool:
    """True if the argument selects the test: a folder, a file, a class, a function or the test itself."""
    return not argument or nodeid == argument or nodeid.startswith(tuple(argument + end for end in "/:["))
