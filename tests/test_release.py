"""What is released: the source archive and the wheel made of it, used as a user's project would."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import dynacheck
import pytest

ROOT = Path(__file__).resolve().parent.parent
USER = """
import dynacheck
import pytest
import torch
from pytest_dynacheck import Args, BudgetExceeded


def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


@pytest.mark.max_graphs(1)
def test_one_graph() -> None:
    compiled = torch.compile(scaled)
    for _ in range(2):
        compiled(torch.ones(3), 0.5)


def test_engine() -> None:
    compiled = dynacheck.compile(scaled, backend="eager")
    with dynacheck.observe() as report:
        compiled(torch.ones(3), 0.5)
    assert report.counts["graphs"] == 1
    assert Args(1).args == (1,) and issubclass(BudgetExceeded, BaseException)
    assert "PLACE" in (dynacheck.__file__ or "")
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the source archive and the wheel that is made of it."""
    folder = tmp_path_factory.mktemp("dist")
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    subprocess.run(
        [sys.executable, "-m", "build", "-o", folder, ROOT], env=env, check=True, capture_output=True
    )
    return folder


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The wheel, unpacked where it can be imported from."""
    place = tmp_path_factory.mktemp("place")
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(place)
    return place


def test_the_source_archive_builds_elsewhere(built):
    (archive,) = built.glob("*.tar.gz")
    names = {name.partition("/")[2] for name in tarfile.open(archive).getnames()}
    sources = {p.relative_to(ROOT).as_posix() for p in ROOT.glob("engine/dynacheck/csrc/*.[ch]")}
    assert sources <= names and {"LICENSE", "README.md", "pyproject.toml", "setup.py"} <= names


def test_the_wheel_has_types_and_no_sources_of_c(installed):
    names = {p.relative_to(installed).as_posix() for p in installed.rglob("*")}
    assert {"dynacheck/py.typed", "pytest_dynacheck/py.typed", "dynacheck/_C.pyi"} <= names
    assert any(name.startswith("dynacheck/_C.") and name.endswith((".so", ".pyd")) for name in names)
    assert not any(name.endswith((".c", ".h")) or name.startswith("tests") for name in names)


def test_the_wheel_is_described(installed):
    (metadata,) = installed.glob("*.dist-info/METADATA")
    text = metadata.read_text()
    for field in ("Name: pytest-dynacheck", "License-Expression: MIT", "Requires-Python: >=3.11", "Requires-Dist: torch",
                  "Classifier: Framework :: Pytest", "Description-Content-Type: text/markdown"):  # fmt: skip
        assert field in text
    assert (metadata.parent / "entry_points.txt").read_text().split() == [
        "[pytest11]", "dynacheck", "=", "pytest_dynacheck.plugin"
    ]  # fmt: skip


def test_type_checkers_see_the_public_names():
    stub = (ROOT / "engine" / "dynacheck" / "__init__.pyi").read_text()
    typed = set(re.findall(r"from dynacheck\.(\S+) import (\w+) as \2$", stub, re.MULTILINE))
    assert typed == {(module, name) for name, module in dynacheck._PUBLIC.items()}


def test_a_users_tests_run_with_the_wheel(installed, tmp_path):
    (tmp_path / "test_user.py").write_text(USER.replace("PLACE", installed.name))
    env = os.environ | {"PYTHONPATH": str(installed)}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_user.py"],
        cwd=tmp_path, env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    assert "2 passed" in run.stdout


@pytest.mark.parametrize(
    "checker", [("mypy", "--strict"), ("pyright", "--pythonpath", sys.executable)], ids=["mypy", "pyright"]
)
def test_a_users_types_are_checked(installed, tmp_path, checker):
    if importlib.util.find_spec(checker[0]) is None:
        pytest.skip(f"{checker[0]} isn't installed")
    (tmp_path / "user.py").write_text(USER + "\nwrong: str = dynacheck.observe()\n")
    env = os.environ | {"PYTHONPATH": str(installed), "MYPYPATH": str(installed)}
    run = subprocess.run(
        [sys.executable, "-m", *checker, "user.py"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    faults = [line for line in run.stdout.splitlines() if "error" in line and "user.py:" in line]
    assert len(faults) == 1 and "str" in faults[0], run.stdout + run.stderr
