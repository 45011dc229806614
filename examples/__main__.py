"""`python -m examples`: the examples, which have to pass, then the failing group, which has to fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def run(*args: str) -> tuple[int, str]:
    """Run pytest, showing what it prints; returns its exit code and its last line."""
    command = [sys.executable, "-m", "pytest", "-o", "addopts=--import-mode=importlib", *args]
    with subprocess.Popen(command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True) as process:
        last = ""
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip(" =\n") or last
    return process.returncode, last


def main() -> int:
    passed, _ = run("examples", "--ignore=examples/failing", "-v")
    print("\nThe next tests fail on purpose: this is what reports look like.\n", flush=True)
    failed, last = run("examples/failing")
    if passed:
        print("\nexamples: a test that should pass failed")
    elif failed != 1 or "passed" in last or "error" in last:
        print("\nexamples: every test of the failing group should fail")
        return 1
    else:
        print("\nexamples: all as it should be")
    return passed


if __name__ == "__main__":
    sys.exit(main())
