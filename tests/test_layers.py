"""The architecture's rules: layers, sizes, cycles, habits, documented names."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"dynacheck": ROOT / "engine" / "dynacheck", "pytest_dynacheck": ROOT / "pytest_dynacheck"}
LAYERS = (
    ("errors", "versions", "config", "events", "reasons", "interop", "places", "marks"),
    ("bytecode",),
    ("sources", "accessors"),
    ("guards",),
    ("graph",),
    ("variables",),
    ("handlers",),
    ("opcodes",),
    ("translate",),
    ("backends",),
    ("runtime",),
    ("api", "explanation", "report", "records", "counting", "hints", "artifacts", "testing"),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
MAX_LINES, MAX_FUNCTION = 600, 80
MAX_PYTHON, MAX_C = 51_600, 5_000
SAYS_NOTHING = {"utils.py", "misc.py", "common.py", "helpers.py"}
ASKS_VERSIONS = {"versions.py", "build.py"}
NAMES_DYNAMO = re.compile(r"torch\._dynamo(\.|$)")


class Module:
    """One source file, parsed."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.text = path.read_text()
        self.tree = ast.parse(self.text)

    @property
    def shown(self) -> str:
        return str(self.path.relative_to(ROOT))

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node

    def imports(self) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
        """Each import with whether it is inside a function and whether it is only for type checkers."""
        yield from _imports(self.tree, False, False)

    def imported(self, node: ast.Import | ast.ImportFrom, known: set[str]) -> list[str]:
        """Modules of ours that an import names."""
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names if alias.name in known]
        base = node.module or ""
        if node.level:
            parts = self.name.split(".") if self.path.name == "__init__.py" else self.name.split(".")[:-1]
            parts = parts[: len(parts) - node.level + 1]
            base = ".".join([*parts, *([node.module] if node.module else [])])
        found = [f"{base}.{a.name}" if f"{base}.{a.name}" in known else base for a in node.names]
        return [name for name in found if name in known]


def _imports(
    node: ast.AST, inside: bool, typing: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, inside, typing
            continue
        checking = isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")
        deeper = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _imports(child, inside or deeper, typing or checking)


def _modules() -> list[Module]:
    found = []
    for package, root in PACKAGES.items():
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found.append(Module(".".join([package, *parts]), path))
    return found


MODULES = _modules()
NAMES = {module.name for module in MODULES}


def test_no_file_or_function_is_too_long():
    long = [f"{m.shown}: {m.text.count(chr(10))} lines" for m in MODULES if m.text.count("\n") > MAX_LINES]
    for module in MODULES:
        for function in module.functions():
            lines = (function.end_lineno or 0) - function.lineno + 1
            if lines > MAX_FUNCTION:
                long.append(f"{module.shown}:{function.lineno} {function.name}: {lines} lines")
    assert long == []


def test_the_whole_stays_small():
    assert sum(m.text.count("\n") for m in MODULES) < MAX_PYTHON
    c = [p.read_text().count("\n") for p in (PACKAGES["dynacheck"] / "csrc").glob("*.[ch]")]
    assert sum(c) < MAX_C


def test_every_file_of_the_engine_is_in_a_layer():
    tops = {m.name.split(".")[1] for m in MODULES if m.name.startswith("dynacheck.")}
    assert tops - set(RANK) == set()


def _edges() -> dict[str, set[str]]:
    edges: dict[str, set[str]] = defaultdict(set)
    for module in MODULES:
        for node, inside, typing in module.imports():
            if not inside and not typing:
                edges[module.name].update(n for n in module.imported(node, NAMES) if n != module.name)
    return edges


def test_imports_go_down():
    upward = []
    for name, targets in _edges().items():
        for target in targets:
            if not (name.startswith("dynacheck.") and target.startswith("dynacheck.")):
                continue
            if RANK[target.split(".")[1]] > RANK[name.split(".")[1]]:
                upward.append(f"{name} imports {target}")
    assert upward == []


def test_the_engine_knows_neither_pytest_nor_the_plugin():
    wrong = []
    for module in MODULES:
        if module.name.startswith("dynacheck"):
            for node, _, _ in module.imports():
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                wrong += [
                    f"{module.shown}: {n}" for n in names if re.match(r"_?pytest(_dynacheck)?(\.|$)", n)
                ]
    assert wrong == []


def test_there_are_no_cycles():
    edges, seen, done, cycles = _edges(), [], set(), []

    def visit(name: str) -> None:
        if name in seen:
            cycles.append(" -> ".join([*seen[seen.index(name) :], name]))
            return
        if name in done:
            return
        seen.append(name)
        for target in sorted(edges.get(name, ())):
            visit(target)
        seen.pop()
        done.add(name)

    for name in sorted(NAMES):
        visit(name)
    assert cycles == []


def test_own_modules_are_imported_at_the_top():
    inside = [
        f"{module.shown}:{node.lineno}"
        for module in MODULES
        for node, within, _ in module.imports()
        if within and module.imported(node, NAMES)
    ]
    assert inside == []


def test_nothing_loads_torchs_compiler_at_import_or_calls_the_engine_by_its_folder():
    wrong = []
    for module in MODULES:
        for node, inside, typing in module.imports():
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            for name in names:
                if name == "engine" or name.startswith("engine."):
                    wrong.append(f"{module.shown}:{node.lineno} imports {name}: engine/ is a source root")
                if NAMES_DYNAMO.match(name) and not inside and not typing:
                    wrong.append(f"{module.shown}:{node.lineno} imports {name} at import time")
    assert wrong == []


def test_errors_are_not_swallowed():
    swallowed = []
    for module in MODULES:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ExceptHandler):
                kind = ast.unparse(node.type) if node.type else ""
                empty = all(isinstance(s, ast.Pass | ast.Continue) for s in node.body)
                if kind in ("", "Exception", "BaseException") and empty:
                    swallowed.append(f"{module.shown}:{node.lineno}")
    assert swallowed == []


def test_versions_are_asked_in_one_place():
    asks = [
        m.shown
        for m in MODULES
        if m.name.startswith("dynacheck.")
        and "sys.version_info" in m.text
        and m.path.name not in ASKS_VERSIONS
    ]
    assert asks == []


def test_names_say_something():
    assert [m.shown for m in MODULES if m.path.name in SAYS_NOTHING] == []


def test_every_module_class_and_public_function_says_what_it_is():
    silent = []
    for module in MODULES:
        if not ast.get_docstring(module.tree) and module.text.strip():
            silent.append(module.shown)
        for node in module.tree.body:
            if (
                isinstance(node, ast.ClassDef)
                and not node.name.startswith("_")
                and not ast.get_docstring(node)
            ):
                silent.append(f"{module.shown}:{node.lineno} {node.name}")
    assert silent == []


PUBLIC = """
import importlib, sys
import dynacheck, pytest_dynacheck
for package in (dynacheck, pytest_dynacheck):
    for name in package.__all__:
        value = getattr(package, name)
        documented = bool(getattr(value, "__doc__", None))
        print(package.__name__, name, documented)
print("loaded", *(name for name in sys.modules if name == "engine" or name.startswith("engine.")))
"""


@pytest.fixture(scope="module")
def public() -> list[list[str]]:
    run = subprocess.run([sys.executable, "-c", PUBLIC], capture_output=True, text=True, check=True)
    return [line.split() for line in run.stdout.splitlines()]


def test_public_names_have_docstrings_and_a_place_in_the_reference(public):
    reference = "\n".join(p.read_text() for p in (ROOT / "docs" / "reference").rglob("*.md"))
    missing = []
    for package, name, documented in public[:-1]:
        if documented != "True":
            missing.append(f"{package}.{name} has no docstring")
        if not re.search(rf"`{name}\b", reference):
            missing.append(f"{package}.{name} isn't in docs/reference")
    assert missing == []


def test_no_module_is_loaded_by_its_folder(public):
    assert public[-1] == ["loaded"]


def test_the_readmes_test_command_is_what_ci_runs():
    readme, ci = (ROOT / "README.md").read_text(), (ROOT / ".ci" / "run").read_text()
    [command] = [line for line in ci.splitlines() if re.match(r"pip install .*&& pytest\b", line)]
    assert command in [line.strip() for line in readme.splitlines()]
