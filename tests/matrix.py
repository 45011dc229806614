"""Runs the tests with another interpreter, one that has torch and the test extra; builds its C module in place first.

python tests/matrix.py VENV/bin/python                    # what depends on the release of Python and torch
python tests/matrix.py VENV/bin/python tests/plugin -x    # any arguments of pytest
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENGINE = ("native", "bytecode", "opcodes", "guards", "variables", "semantics", "parity", "report", "zoo")
DEPENDS = [*(f"tests/engine/{part}" for part in ENGINE), "tests/engine/test_decisions.py", "tests/plugin"]


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    python, *arguments = sys.argv[1:]
    path = os.pathsep.join([str(ROOT), str(ROOT / "engine")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "1"}
    build = [python, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(build, cwd=ROOT, env=environment, check=True)
    tests = [python, "-m", "pytest", "-q", *(arguments or DEPENDS)]
    return subprocess.run(tests, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
