"""The three ways in which metadata propagation gives no result."""

from __future__ import annotations


class OperatorRaised(Exception):
    """The operator itself raises.

    Args:
        error: what it raises, without traceback.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.error = error

    @property
    def exc(self) -> BaseException:
        """The exception that the operator raises."""
        return self.error


class DataDependent(Exception):
    """The result depends on the tensors' data.

    Args:
        reason: what torch says about it.
        size: the result's size does, so that it can be a symbol.
    """

    def __init__(self, reason: str, size: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.size = size


class UnsupportedOperator(Exception):
    """Metadata propagation can't tell what the operator returns.

    Args:
        reason: why.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
