"""What tests import from `pytest_dynacheck`. Imports neither torch nor an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest.outcomes import Failed
else:
    Failed = pytest.fail.Exception


class BudgetExceeded(Failed):
    """A test compiled more than its budget allows, or not what it should.

    Raised when the test itself passed. It is an ordinary failure for xfail, reruns, `-x` and `--lf`.
    """

    __module__ = "builtins"  # so that summaries say BudgetExceeded, as pytest does for Failed

    def __init__(self, msg: str = "over budget") -> None:
        super().__init__(msg, pytrace=False)


class DynacheckUnusedAllowance(UserWarning):
    """An `allow` entry matched nothing: what it excused is fixed, and the entry can go."""


class Args:
    """The arguments of one call for `dynacheck.check`.

    Example:
        >>> Args(1, scale=2)
        Args(1, scale=2)
    """

    __slots__ = ("args", "kwargs")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        parts = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"Args({', '.join(parts)})"
