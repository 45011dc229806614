"""The tutorial, typed by hand: from an empty directory and a new environment to a green job."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tutorial" / "first-test.md"

pytestmark = pytest.mark.slow  # it builds the wheel and installs torch


def docs_shown() -> ModuleType:
    spec = importlib.util.spec_from_file_location("shown", ROOT / "docs" / "shown.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_from_an_empty_directory_to_a_green_job(tmp_path):
    shown, text = docs_shown(), PAGE.read_text()
    folder, wheels = tmp_path / "work", tmp_path / "wheels"
    folder.mkdir()
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "DYNACHECK"))}
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(wheels), str(ROOT)]
    subprocess.run(build, env=env, check=True, capture_output=True)
    (wheel,) = wheels.glob("*.whl")

    def typed(command: str) -> None:
        """A line as the page has it, but with this version of the plugin and torch as the tests have it."""
        command = re.sub(r"^python3 ", f"{sys.executable} ", command)
        command = command.replace(" --index-url https://download.pytorch.org/whl/cpu", "")
        command = re.sub(r"^pip install ", f"pip install -c {ROOT / 'constraints.txt'} ", command)
        command = command.replace("pytest-dynacheck", str(wheel))
        script = f"test ! -e .venv || . .venv/bin/activate\n{command}\n"
        done = subprocess.run(
            ["bash", "-ec", script], cwd=folder, env=env | {"CI": "true"}, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"

    blocks = [match.groups() for match in shown.BLOCK.finditer(text)]
    for command in next(body for language, body in blocks if language == "text").splitlines():
        typed(command)
    python = str(folder / ".venv" / "bin" / "python")
    assert shown.same(shown.filled_in(folder, text, python), text)

    (workflow,) = folder.glob(".github/workflows/*.yml")
    steps = re.findall(r"- run: (.+)", workflow.read_text())
    assert steps[-1].startswith("pytest")
    for name in ("dynacheck.json", "junit.xml"):
        (folder / name).unlink()
    for command in steps:
        typed(command)
    results = json.loads((folder / "dynacheck.json").read_text())
    suite = ET.parse(folder / "junit.xml").getroot()[0]
    assert results["verdicts"] == {"ok": int(suite.attrib["tests"])} and suite.attrib["failures"] == "0"
