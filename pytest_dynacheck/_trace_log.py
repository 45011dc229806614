"""pytest attaches its log handlers to torch's structured trace, which makes torch build every payload.

That costs a tenth of each capture and puts dozens of empty lines into the report of every failing test.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

_LOGGER = "torch.__trace"


@contextlib.contextmanager
def without_capture(keep: bool) -> Iterator[None]:
    """Takes pytest's handlers off torch's trace logger while the block runs.

    Args:
        keep: do nothing (the test asks for `caplog`).
    """
    logger = logging.getLogger(_LOGGER) if _LOGGER in logging.root.manager.loggerDict else None
    taken = (
        []
        if keep or logger is None
        else [h for h in logger.handlers if type(h).__module__.startswith("_pytest.")]
    )
    if logger is not None:
        for handler in taken:
            logger.removeHandler(handler)
    try:
        yield
    finally:
        if logger is not None:
            for handler in taken:
                logger.addHandler(handler)
