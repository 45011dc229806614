"""Runs the opcode tests beside this file on other interpreters, without torch.

    python tests/engine/opcodes/elsewhere.py python3.12 python3.13

Each interpreter gets a venv of its own, the native module built for it and a stand-in for torch; the tests
that compile (`test_compiled.py`) need a real one and are left out. Arguments after `--` go to pytest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "native"))

import elsewhere as native  # noqa: E402  (the native module's tests' script: it makes the venv and builds)


def run(python: str, arguments: list[str]) -> int:
    """Run the tests on one interpreter; returns pytest's exit status."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made = native.make_venv(python, folder / "venv")
        lib = native.build(made, folder, False)
        tests = folder / "tests"
        shutil.copytree(
            HERE, tests, ignore=shutil.ignore_patterns("__pycache__", "test_compiled.py", "elsewhere.py")
        )
        code = (
            "import sys, pytest; sys.path[:0] = [sys.argv.pop(1), '.'];"
            "import stand_in_torch; stand_in_torch.install(); sys.exit(pytest.main())"
        )
        command = [made, "-c", code, str(lib), "-q", "--import-mode=importlib", "-p", "no:cacheprovider", "."]
        environment = {**os.environ, "PYTHONPATH": str(lib)}
        return subprocess.run([*command, *arguments], cwd=tests, env=environment).returncode


def main() -> int:
    own, _, rest = " ".join(sys.argv[1:]).partition(" -- ")
    failed = 0
    for python in own.split():
        print(f"== {python}", flush=True)
        failed |= run(python, rest.split())
    return failed


if __name__ == "__main__":
    sys.exit(main())
