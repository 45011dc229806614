"""The engine can be imported without torch, so that opcodes can be tried on interpreters that none is installed for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CODE = """
import stand_in_torch
stand_in_torch.install()
import dynacheck.handlers, interpreting
print(type(interpreting))
"""


def test_the_stand_in_for_torch_has_what_the_engine_asks_for():
    env = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", CODE]
    here = Path(__file__).parent
    done = subprocess.run(command, cwd=here, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "module" in done.stdout, done.stderr
