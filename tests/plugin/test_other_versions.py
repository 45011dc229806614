"""Beside versions and plugins that this environment hasn't: the oldest pytest, and one that shuffles tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # each installs a package

HERE = Path(__file__).parent
OLDEST = "pytest==8.0.0"  # as pyproject.toml has it
SUITES = ("verdict", "markers", "fixture", "isolation", "check", "redirect", "tracebacks")


def installed(folder: Path, *requirements: str) -> dict[str, str]:
    """An environment in which packages of a folder come first, and only our plugin is loaded by itself."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), *requirements]
    subprocess.run(command, check=True)
    ignored = ("PYTEST", "COLUMNS")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ignored)}
    path = [str(folder), *(p for p in sys.path if p)]
    env |= {"PYTHONPATH": os.pathsep.join(path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return env | {"PYTEST_PLUGINS": "pytest_dynacheck.plugin"}


def run(env: dict[str, str], cwd: Path, *args: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    return done.stdout


def test_the_oldest_pytest(tmp_path):
    env = installed(tmp_path, OLDEST)
    files = [str(HERE / f"test_{name}.py") for name in SUITES]
    out = run(env, HERE.parent.parent, "-p", "pytester", *files)
    assert "pytest-8.0.0" in out and "passed" in out


def test_randomly_shuffles_and_counts_stay(tmp_path):
    env = installed(tmp_path / "packages", "--no-deps", "pytest-randomly")
    body = "\n".join(
        f"@pytest.mark.dynacheck(graphs={1 + n % 2})\ndef test_{n}():\n"
        f"    f = torch.compile(torch.sin)\n    f(X){', f(X[:2])' if n % 2 else ''}\n"
        for n in range(6)
    )
    (tmp_path / "test_it.py").write_text(f"import pytest\nimport torch\n\nX = torch.ones(4)\n\n{body}")
    orders = set()
    for seed in ("1", "2", "3"):
        out = run(env, tmp_path, "-v", "-p", "pytest_randomly", f"--randomly-seed={seed}", "test_it.py")
        orders.add(tuple(line.partition(" ")[0] for line in out.splitlines() if "PASSED" in line))
    assert len(orders) > 1 and {len(order) for order in orders} == {6}
