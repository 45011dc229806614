"""Texts of reports in files, one per report; `python tests/plugin/golden_files.py` writes them anew.

Times, versions and lines of the tests' own harness change without a change of reports; they are
replaced before comparing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"
_WRITES = "DYNACHECK_WRITES_GOLDEN_FILES"


def steady(text: str) -> str:
    """A report without what changes from run to run."""
    text = re.sub(r"\d+ ms", "N ms", text)
    text = re.sub(r"torch \d[\w.+]*", "torch N", text)
    text = re.sub(r"parity/harness\.py:\d+", "parity/harness.py:N", text)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip() + "\n"


def compare(name: str, text: str) -> None:
    """Hold a report against its file; when files are being written, write it.

    Raises:
        AssertionError: the two differ, or there is no file.
    """
    path, found = FOLDER / f"{name}.txt", steady(text)
    if os.environ.get(_WRITES):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found)
    assert path.exists(), f"no {path.name}; run python tests/plugin/golden_files.py and read what it wrote"
    assert found == path.read_text()


if __name__ == "__main__":
    command = [sys.executable, "-m", "pytest", "-q", str(Path(__file__).parent), "-k", "golden"]
    sys.exit(subprocess.run(command, env={**os.environ, _WRITES: "1"}).returncode)
