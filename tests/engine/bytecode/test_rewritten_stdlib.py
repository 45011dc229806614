"""Tests of the standard library pass with every function's code rewritten under the frame hook."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("dynacheck._C", reason="needs the native module")

FOLDER = Path(__file__).parent
ENGINE = FOLDER.parents[2] / "engine"
QUICK = ("test_list", "test_with", "test_super")
# code that is as long as it was, or longer, with other slots: the same names, lines and lifetimes
WHOLE = ("functools", "generators", "contextlib", "scope", "patma", "set", "coroutines", "exceptions", "call")
# under the hook the caller of a resume function keeps its arguments alive, and tracebacks name it:
# modules that ask for either are left out
SPLIT = ("exceptions", "extcall", "unpack_ex", "call")


def cases():
    for module in QUICK:
        for mode in ("rebuilt", "copied", "split"):
            yield pytest.param(mode, module)
    for mode, names in (("rebuilt", WHOLE), ("copied", WHOLE), ("split", SPLIT)):
        for name in names:
            yield pytest.param(mode, f"test_{name}", marks=pytest.mark.slow)


@pytest.mark.parametrize("mode, module", list(cases()))
def test_rewritten(mode, module):
    if importlib.util.find_spec("test") is None or importlib.util.find_spec(f"test.{module}") is None:
        pytest.skip("the interpreter came without its tests")
    path = os.pathsep.join((str(ENGINE), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(
        [sys.executable, str(FOLDER / "run_rewritten.py"), mode, f"test.{module}"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:] + done.stdout[-500:]
