"""Files that a run writes at its end: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Put the text there; whoever reads the file meanwhile gets the old or the new one, never a part.

    Args:
        path: where to; missing folders are made, a link is followed.
        text: all of it.

    Raises:
        OSError: it can't be written; what was there still is.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():  # a pipe or terminal has no old content to keep
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_text(text, encoding="utf-8", errors="backslashreplace")
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
