"""Runs the commands that pages show and puts what they print below them. Used by generate.py.

A block whose first line is `# file: NAME` is written to a folder, in the order of the page; a `console` block
with `$ pytest ...` is run there.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# file: (\S+)\n")
WIDTH = "100"
PROGRAMS = {"pytest": ("-m", "pytest", "-p", "no:cacheprovider", "--no-header"), "python": ()}


def run(command: str, folder: Path, python: str = sys.executable) -> str:
    """What a command of a page prints."""
    program, *args = shlex.split(command.removeprefix("$ "))
    if program not in PROGRAMS:
        raise ValueError(f"pages run {' and '.join(PROGRAMS)} only, not {program}")
    ignored = ("PYTEST", "DYNACHECK", "CI", "BUILD_NUMBER")  # pytest words its summary differently in CI
    env = {name: value for name, value in os.environ.items() if not name.startswith(ignored)}
    env |= {"COLUMNS": WIDTH, "NO_COLOR": "1"}
    found = subprocess.run(
        [python, *PROGRAMS[program], *args],
        cwd=folder, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if found.returncode not in (0, 1):  # of pytest, 1: tests failed, which pages may show
        raise RuntimeError(f"{command} ended with {found.returncode}:\n{found.stdout}{found.stderr}")
    return found.stdout.strip().replace(f"{folder}{os.sep}", "")


def filled(page: str) -> str:
    """The page with what its commands print now."""
    with tempfile.TemporaryDirectory() as name:
        return filled_in(Path(name), page)


def filled_in(folder: Path, page: str, python: str = sys.executable) -> str:
    """The same, with the page's files left in a folder."""

    def block(match: re.Match[str]) -> str:
        language, body = match.groups()
        file = FILE.match(body)
        if language == "console":
            command = body.splitlines()[0]
            return f"```console\n{command}\n{run(command, folder, python)}\n```"
        if file:
            path = folder / file.group(1)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body[file.end() :])
        return match.group()

    return BLOCK.sub(block, page)


def runs(page: str) -> bool:
    """True if a page shows what a command prints."""
    return any(match.group(1) == "console" for match in BLOCK.finditer(page))


def same(a: str, b: str) -> bool:
    """True if two pages differ in times, versions and addresses only."""
    return _steady(a) == _steady(b)


def _steady(text: str) -> str:
    text = re.sub(r"\b[\d.]+ ms\b", "N ms", text)
    text = re.sub(r"\b0x[0-9a-f]+", "0xN", text)
    text = re.sub(r"first call (?:N|[\d.]+) m?s( \(.*?\))?", "first call N", text)
    text = re.sub(r"in \d+\.\d+s( \([\d:]+\))?", "in N s", text)
    text = re.sub(r"torch \d[\w.+]*", "torch N", text)
    return re.sub(r"[-=]{5,}", "---", text)
