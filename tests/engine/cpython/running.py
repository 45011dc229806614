"""CPython's test modules run in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SECONDS = 1800
"""How long a module may take."""

MODULES = (
    "test_augassign", "test_baseexception", "test_binop", "test_builtin", "test_class", "test_complex",
    "test_collections", "test_contains", "test_contextlib", "test_copy", "test_dataclasses", "test_defaultdict",
    "test_descr", "test_dict",
    "test_enum",
    "test_exceptions", "test_float", "test_grammar", "test_int", "test_isinstance", "test_itertools", "test_math",
    "test_types",
    "test_dictviews", "test_exception_variations", "test_functools", "test_generator_stop",
    "test_generators", "test_keywordonlyarg", "test_list", "test_named_expressions", "test_operator", "test_patma",
    "test_property", "test_raise", "test_scope", "test_slice", "test_super", "test_tuple", "test_unpack", "test_with",
    "test_yield_from",
)  # fmt: skip
"""The modules of the `test` package that are run, where this Python has them; `table.py` runs any."""


class Crashed(Exception):
    """A test module's process ended without telling of any test."""


def run_module(
    module: str, only: tuple[str, ...] = (), seconds: float = SECONDS, skip: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """The outcomes of a module's tests.

    A test that takes the process down counts as crashed; the others are run without it.

    Args:
        module: name of a module of the `test` package.
        only: names of tests, `Class.method`; empty for all.
        seconds: how long it may take.
        skip: names of tests that aren't run.

    Raises:
        Crashed: the process failed before the first test.
    """
    found: list[dict[str, Any]] = []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "engine")))}
    while True:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(HERE / "run_module.py"), module, folder]
            command += ["--only", *only, "--skip", *skip, *[t["test"] for t in found]]
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            try:
                out, err = process.communicate(timeout=seconds)
                how = f"the process ended with {process.returncode}"
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                how = f"the process took more than {seconds} s"
        lines = [json.loads(line) for line in out.splitlines() if line.startswith('{"')]
        found += [line for line in lines if "test" in line]
        if process.returncode == 0:
            return found
        if not lines or "start" not in lines[-1]:
            raise Crashed(f"{module}: {how}\n{err[-3000:]}")
        found.append({"test": lines[-1]["start"], "plain": "", "ours": how, "text": err[-3000:]})


def problems(test: dict[str, Any]) -> list[str]:
    """In what a test's compiled run differs from its plain one."""
    if test["plain"] == "skipped":
        return []
    found = []
    if test["ours"] != test["plain"]:
        found.append(f"plain it {test['plain']}, compiled: {test['ours']}")
    if test.get("raised") and test["plain"] == "passed":
        found.append(f"interpreted it raises: {test['raised'][0]}")
    found += [f"fault: {fault.splitlines()[0]}" for fault in test.get("faults", ())]
    return found
