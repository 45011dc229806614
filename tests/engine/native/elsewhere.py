"""Builds the native module for other interpreters, or with sanitizers, and runs the tests beside this file.

    python tests/engine/native/elsewhere.py python3.12 python3.13    # each interpreter, in a venv of its own
    python tests/engine/native/elsewhere.py --sanitize               # this one, with ASan and UBSan
    python tests/engine/native/elsewhere.py --sanitize --guards      # the tests of guards, which need torch

Arguments after `--` go to pytest. Nothing in the checkout changes; what needs torch is skipped without it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
NEEDS = ["setuptools>=80", "pytest>=8", "coverage"]


def make_venv(python: str, folder: Path) -> str:
    """A new environment with what the build and the tests need; returns its interpreter."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    made = str(folder / "bin" / "python")
    subprocess.run([made, "-m", "pip", "install", "-q", "--disable-pip-version-check", *NEEDS], check=True)
    return made


def build(python: str, folder: Path, sanitize: bool) -> Path:
    """Build the module from a copy of the sources; returns the folder to put on the path."""
    source, lib = folder / "source", folder / "lib"
    source.mkdir()
    for name in ("setup.py", "pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    (source / "README.md").touch()
    built_before = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
    package = source / "engine" / "dynacheck"
    shutil.copytree(ROOT / "engine" / "dynacheck", package, ignore=built_before)
    environment = {**os.environ, "DYNACHECK_SANITIZE": "1" if sanitize else ""}
    command = [python, "setup.py", "-q", "build_ext", "--build-lib", str(lib)]
    subprocess.run(command, check=True, cwd=source, env=environment, stderr=subprocess.DEVNULL)
    shutil.copytree(package, lib / "dynacheck", dirs_exist_ok=True)
    return lib


def sanitizer_environment() -> dict[str, str]:
    """What a Python that wasn't built with sanitizers needs to load a module that was."""
    compiler = os.environ.get("CC", "gcc").split()[0]
    libraries = [
        subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    return {
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",  # leaks: test_leaks.py counts blocks
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }


def run(
    python: str, lib: Path, folder: Path, sanitize: bool, arguments: list[str], where: Path = HERE
) -> int:
    tests = folder / "tests"
    shutil.copytree(where, tests, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(lib), "PYTHONFAULTHANDLER": "1"}
    if sanitize:
        environment.update(sanitizer_environment())
        arguments = ["--deselect", "test_leaks.py", "--ignore", "test_leaks.py", *arguments]
    # The import must find the copy even where the package is installed.
    code = (
        "import sys, pytest; sys.path.insert(0, sys.argv.pop(1)); import dynacheck; sys.exit(pytest.main())"
    )
    command = [python, "-c", code, str(lib), "-q", "--import-mode=importlib", "-p", "no:cacheprovider"]
    command += ["-p", "no:dynacheck", "-p", "no:xdist", "-p", "no:benchmark", "."]
    command += ["--ignore", "test_every_kind.py"]  # runs the whole engine, by fixtures that aren't copied
    return subprocess.run([*command, *arguments], cwd=tests, env=environment).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="*", help="interpreters; none: this one")
    parser.add_argument("--sanitize", action="store_true", help="build with ASan and UBSan")
    parser.add_argument("--guards", action="store_true", help="run the tests of guards; they need torch")
    own, _, rest = " ".join(sys.argv[1:]).partition(" -- ")
    options = parser.parse_args(own.split())
    failed = 0
    for python in options.pythons or [sys.executable]:
        print(f"== {python}{' with sanitizers' if options.sanitize else ''}", flush=True)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            used = make_venv(python, folder / "venv") if options.pythons else python
            lib = build(used, folder, options.sanitize)
            where = HERE.parent / "guards" if options.guards else HERE
            failed |= run(used, lib, folder, options.sanitize, rest.split(), where)
    return failed


if __name__ == "__main__":
    sys.exit(main())
