"""A run that uses nothing of the plugin: no torch, no engine, a few milliseconds."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import sys, time, pytest
start = time.process_time()
import pytest_dynacheck.plugin
took = time.process_time() - start
code = pytest.main(["-q", "-p", "no:cacheprovider", "test_one.py"])
print(took, code == 0, *(name in sys.modules for name in ("torch", "dynacheck", "pytest_dynacheck._active")))
"""


def test_an_idle_plugin_costs_nothing(tmp_path):
    (tmp_path / "test_one.py").write_text(
        "import pytest\n\n@pytest.fixture\ndef f(): pass\n\ndef test_one(f): pass\n"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("DYNACHECK_")}
    env["PYTHONPYCACHEPREFIX"] = str(tmp_path / "pyc")
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    times = []
    for _ in range(4):
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        )
        took, *rest = run.stdout.split()[-5:]
        assert rest == ["True", "False", "False", "False"]
        times.append(float(took))
    assert min(times) < 5e-3


def test_without_the_plugin(tmp_path):
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:dynacheck", "-p", "no:cacheprovider"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0
