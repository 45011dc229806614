"""What the plugin costs a run: loaded and not used, and for each test under test beyond what it compiles.

Run it from the repository's root: `python tests/benchmarks/bench_plugin.py`. Figures are the least processor time of
several runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

RUNS, TESTS = 3, 500
LOADING = """
import time, pytest
start = time.process_time()
import pytest_dynacheck.plugin
print(time.process_time() - start)
"""
SUITES = {  # what is above each test
    "not under test": "",
    "under test, not isolated": "@pytest.mark.dynacheck(max_graphs=0, isolate=False)",
    "under test": "@pytest.mark.max_graphs(0)",
}


class Loop:
    """Times the tests of a run, without collecting and loading."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> object:
        start = time.process_time()
        result = yield
        self.seconds = time.process_time() - start
        return result


def loading() -> float:
    """Seconds that importing the plugin takes, pytest being there."""
    env = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", LOADING]
    found = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return float(found.stdout)


def per_test(marker: str, folder: Path) -> float:
    """Seconds a test that does nothing takes."""
    body = "".join(f"{marker}\ndef test_{n}(): pass\n" for n in range(TESTS))
    file = folder / f"test_{abs(hash(marker))}.py"
    file.write_text(f"import pytest, torch\n{body}")
    loop = Loop()
    code = pytest.main(
        ["-q", "-p", "no:cacheprovider", "--no-header", "--no-summary", str(file)], plugins=[loop]
    )
    if code:
        raise SystemExit(f"{file.name} ended with {code}")
    return loop.seconds / TESTS


def main() -> None:
    with tempfile.TemporaryDirectory() as name, open(os.devnull, "w") as nowhere:
        told, sys.stdout = sys.stdout, nowhere
        try:
            times = {title: [] for title in SUITES}
            for _ in range(RUNS):
                for title, marker in SUITES.items():
                    times[title].append(per_test(marker, Path(name)))
        finally:
            sys.stdout = told
    best = {title: min(found) for title, found in times.items()}
    alone = best["not under test"]
    rows = {
        "loading, in a run that doesn't use it (no torch)": min(loading() for _ in range(RUNS)),
        "a test under test": best["under test"] - alone,
        "isolation, of that": best["under test"] - best["under test, not isolated"],
    }
    for title, seconds in rows.items():
        print(f"{title:<50}{seconds * 1e3:7.2f} ms")


if __name__ == "__main__":
    main()
