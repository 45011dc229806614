"""What the build says when it can't build, in one line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
pytest.importorskip("setuptools")
if not (ROOT / "setup.py").exists():
    pytest.skip("needs the sources", allow_module_level=True)


def build(folder, prelude="", **environment):
    """Runs `setup.py build_ext` on a copy of the sources, after `prelude` in the same interpreter."""
    for name in ("setup.py", "pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "README.md").touch()
    shutil.copytree(ROOT / "engine" / "dynacheck" / "csrc", folder / "engine" / "dynacheck" / "csrc")
    code = f"import runpy, sys, sysconfig; sys.argv = ['setup.py', '-q', 'build_ext']\n{prelude}\n"
    code += "runpy.run_path('setup.py', run_name='__main__')"
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert process.returncode != 0 and "Traceback" not in process.stderr
    return process.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("compiler", ["/no/such/compiler", "false"])
def test_missing_compiler(tmp_path, compiler):
    said = build(tmp_path, CC=compiler)
    assert said.startswith("pytest-dynacheck: can't build its C module")
    assert f"tried {compiler}; install gcc or clang" in said
    assert "csrc" not in said  # no command line of the compiler's


@pytest.mark.parametrize(
    "prelude, expected",
    [
        (
            "sys.version_info = type('V', (tuple,), dict(major=3, minor=15))((3, 15))",
            "isn't supported: use CPython 3.11 to 3.14",
        ),
        ("sys.implementation.name = 'pypy'", "pypy has no frame hook: use CPython"),
        ("sysconfig.get_path = lambda name: '/nowhere'", "headers are missing"),
        ("sysconfig.get_config_var = lambda name: 1", "free-threaded Python"),
    ],
)
def test_python_that_is_not_supported(tmp_path, prelude, expected):
    # setuptools first: the pretence is for setup.py alone
    said = build(tmp_path, "import setuptools, setuptools.command.build_ext, setuptools.dist\n" + prelude)
    assert said.startswith("pytest-dynacheck: can't build its C module") and expected in said
