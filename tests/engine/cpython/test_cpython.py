"""CPython's own tests, the body of each compiled, do what they do plain."""

from __future__ import annotations

import fnmatch
import importlib.util
from typing import Any

import pytest
from engine.cpython.expected_failures import EXPECTED, TOO_LONG
from engine.cpython.running import MODULES, problems, run_module

QUICK = ("test_generator_stop", "test_keywordonlyarg", "test_super", "test_exception_variations")
"""Modules that are run always."""
LEAST_TRANSLATED = 0.6
"""Share of a module's tests of which a part must have been translated."""

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("test.test_list") is None, reason="this Python comes without its own tests"
)


def matching(name: str, patterns: dict[str, str]) -> list[str]:
    return [pattern for pattern in patterns if fnmatch.fnmatchcase(name, pattern)]


def check(module: str) -> None:
    """Run a module: tests differ exactly where the table says so."""
    expected = EXPECTED.get(module, {})
    ran = [t for t in run_module(module, skip=TOO_LONG.get(module, ())) if t["plain"] != "skipped"]
    bad = {t["test"]: "; ".join(problems(t)) for t in ran if problems(t)}
    print(share(module, ran))
    unexpected = [f"{name}: {text}" for name, text in bad.items() if not matching(name, expected)]
    assert not unexpected, "\n".join(unexpected)
    met = {pattern for name in bad for pattern in matching(name, expected)}
    passing = sorted(set(expected) - met)
    assert not passing, f"these don't fail any more: {passing}"
    translated = sum(1 for t in ran if t.get("entries"))
    assert translated >= LEAST_TRANSLATED * len(ran), share(module, ran)


def share(module: str, ran: list[dict[str, Any]]) -> str:
    translated = sum(1 for t in ran if t.get("entries"))
    whole = sum(1 for t in ran if t.get("entries") and not t.get("skips"))
    unbroken = sum(1 for t in ran if t.get("entries") and not t.get("skips") and not t.get("breaks"))
    return (
        f"{module}: {len(ran)} tests, {translated} translated in part or whole, "
        f"{whole} without a frame left alone, {unbroken} without a break"
    )


def known(module: str) -> bool:
    return importlib.util.find_spec(f"test.{module}") is not None


@pytest.mark.parametrize("module", QUICK)
def test_module(module: str) -> None:
    check(module)


@pytest.mark.slow
@pytest.mark.parametrize("module", [m for m in MODULES if m not in QUICK])
def test_every_module(module: str) -> None:
    if not known(module):
        pytest.skip(f"this Python has no {module}")
    check(module)


def test_table_names_modules() -> None:
    assert {*EXPECTED, *TOO_LONG} <= set(MODULES)
