"""`python -m examples`: the examples, which have to pass, then the failing group, which has to fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def run(*args: str) -> tuple[int, list[str]]:
    """Run pytest, showing what it prints; returns its exit code and its lines."""
    command = [sys.executable, "-m", "pytest", "-o", "addopts=--import-mode=importlib", *args]
    env = {**os.environ, "COLUMNS": os.environ.get("COLUMNS", "110")}
    lines = []
    with subprocess.Popen(command, cwd=HERE.parent, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return process.returncode, lines


def main() -> int:
    passed, _ = run("examples", "--ignore=examples/failing", "--ignore=examples/projects", "-v")
    print("\nThe next tests fail on purpose: this is what reports look like.\n", flush=True)
    _, lines = run("examples/failing", "--no-header")
    outcomes = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    as_meant = "passed" not in lines[-1] and outcomes and all("BudgetExceeded" in line for line in outcomes)
    if passed:
        print("\nexamples: a test that should pass failed")
    elif not as_meant:
        print("\nexamples: every test of the failing group should be over its budget")
    else:
        print("\nexamples: all as it should be")
    return 0 if as_meant and not passed else 1


if __name__ == "__main__":
    sys.exit(main())
