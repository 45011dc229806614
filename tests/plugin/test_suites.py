"""Whole test suites, in the manner of known projects and of example projects: they pass, and each seeded fault is
caught and explained."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from dynacheck import versions

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = {path.parent.name: path.parent for path in sorted(ROOT.glob("tests/suites/*/faults.toml"))}
FOLDERS |= {path.parent.name: path.parent for path in sorted(ROOT.glob("examples/projects/*/faults.toml"))}


def faults(name: str) -> list[dict[str, Any]]:
    return tomllib.loads((FOLDERS[name] / "faults.toml").read_text())["fault"]


def seeded() -> list[Any]:
    """Every fault under both engines; in the slow set all of a folder but its first, and all under torch."""
    return [
        pytest.param(
            n, fault | fault.get(engine, {}), engine,
            id=f"{n}: {fault['name']}" + (" (torch)" if engine == "torch" else ""),
            marks=pytest.mark.slow if i or engine == "torch" else (),
        )
        for n in FOLDERS
        for i, fault in enumerate(faults(n))
        for engine in ("bundled", "torch")
    ]  # fmt: skip


def copied(project: Any, name: str) -> Path:
    if name == "vision" and not versions.torch_since(2, 13):
        pytest.skip("before torch 2.13 the fast path of nn.TransformerEncoder can't be propagated: it breaks")
    folder: Path = project.pytester.path
    shutil.copytree(FOLDERS[name], folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def put(folder: Path, file: str, old: str, new: str) -> None:
    text = (folder / file).read_text()
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
    (folder / file).write_text(text.replace(old, new))


def of(result: pytest.RunResult, outcome: str) -> set[str]:
    """Names of the tests with an outcome, without their files and classes."""
    found = (line.split(" ", 1)[1] for line in result.outlines if line.startswith(outcome))
    return {name.split(" - ")[0].split("::", 1)[1] for name in found}


@pytest.mark.parametrize("engine", ["bundled", pytest.param("torch", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FOLDERS)
def test_passes(project: Any, name: str, engine: str) -> None:
    copied(project, name)
    result = project.run("-rA", f"--dynacheck-engine={engine}")
    assert result.ret == 0, result.outlines
    assert len(of(result, "PASSED ")) > len({f for fault in faults(name) for f in fault["fails"]}) / 2


def test_what_differs_under_torch_has_a_reason() -> None:
    differing = [fault for name in FOLDERS for fault in faults(name) if "torch" in fault]
    assert len(differing) < 6
    assert all(fault["torch"]["because"] and {"says", "fails"} & set(fault["torch"]) for fault in differing)


@pytest.mark.parametrize(("name", "fault", "engine"), seeded())
def test_fault_is_caught_and_explained(project: Any, name: str, fault: dict[str, Any], engine: str) -> None:
    folder = copied(project, name)
    put(folder, fault["file"], fault["replace"], fault["by"])
    for file, old, new in fault.get("also", ()):
        put(folder, file, old, new)
    result = project.run("-rA", f"--dynacheck-engine={engine}")
    failed = of(result, "FAILED ")
    assert failed and all(any(name.endswith(end) for name in failed) for end in fault["fails"]), (
        result.outlines
    )
    assert all(any(name.endswith(end) for end in fault["fails"]) for name in failed), failed
    text = "\n".join(result.outlines)
    missing = [words for words in fault["says"] if words not in text]
    assert not missing, (missing, text)
