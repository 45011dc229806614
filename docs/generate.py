"""Writes the reference pages that follow from the code, and into other pages what their commands print.

`--check` only says which pages aren't up to date. A page in which only times differ stays as it is; `--times`, for
an idle machine, writes these too.

Run it from the repository's root: `python docs/generate.py`.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dynacheck
import shown
import support
from dynacheck import artifacts, config, events, reasons
from dynacheck.guards.base import KINDS
from dynacheck.hints import hint_for

import pytest_dynacheck
from pytest_dynacheck import _hooks, _marks, _options, _schema
from pytest_dynacheck import plugin as plugin_module
from pytest_dynacheck._benchmark import Benchmark
from pytest_dynacheck._benchmark_fixture import WithBenchmark
from pytest_dynacheck._fixture import Dynacheck

HERE = Path(__file__).parent / "reference"
NOTE = "<!-- written by docs/generate.py -->\n"


def _first(value: Any) -> str:
    """The first sentence of a docstring."""
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [
        " | ".join(head),
        " | ".join("---" for _ in head),
        *(" | ".join(map(_cell, row)) for row in rows),
    ]
    return "\n".join(f"| {line} |" for line in lines) + "\n"


def _signature(value: Any) -> str:
    if inspect.isclass(value):
        return ""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def engine() -> str:
    """Public names of the engine."""
    names = [(name, getattr(dynacheck, name)) for name in dynacheck.__all__]
    rows = [(f"`{name}`", _first(value)) for name, value in names]
    signatures = "\n".join(f"{name}{_signature(value)}" for name, value in names if _signature(value))
    settings = [
        (f"`{name}`", f"`{spec.default!r}`", spec.metadata["help"], f"`DYNACHECK_{name.upper()}`")
        for name, spec in config.Config.__dataclass_fields__.items()
    ]
    return "\n".join(
        [
            "# The engine: `import dynacheck`",
            "",
            "Names, arguments and meaning are those of `torch.compile`'s API where it has them.",
            "",
            _table(("name", "what it is"), rows),
            "```text",
            signatures,
            "```",
            "",
            "## Settings",
            "",
            "`dynacheck.config.recompile_limit = 2`, `with dynacheck.configured(recompile_limit=2): ...`, or an "
            "environment variable.",
            "",
            _table(("setting", "default", "meaning", "environment"), settings),
            "## Logs",
            "",
            "`DYNACHECK_LOGS=` or `dynacheck.logs(...)`, any of",
            f"{', '.join(f'`{name}`' for name in artifacts.ARTIFACTS)};",
            '`+guards` (`guards="+"`) shows guards below the values that they are about, with the lines that '
            "needed them. `recompiles` names every guard that failed, of each entry, with the value that came and the "
            "line.",
            "",
            "Of torch.compile's other artifacts, `recompiles_verbose` is `recompiles` here, `graph` is `graph_code`, "
            "`dynamic` is in `+guards` (conditions on sizes, with their lines); those of backends (`aot_graphs`, "
            "`output_code`, `cudagraphs`) are the backends' own: `TORCH_LOGS` selects them as ever. Those about torch's "
            "translator (`trace_source`, `trace_bytecode`) have no counterpart.",
            "",
            "## Events",
            "",
            "What reports and logs are made of, in the order in which it happens.",
            "",
            _table(("event", "what happened"), observed()),
        ]
    )


def plugin() -> str:
    """Markers, options, fixtures and names of the plugin."""
    options = [(f"`{_spelt(o)}`", f"`{o.dest}`", f"`{o.variable}`", o.help) for o in _options.OPTIONS]
    options += [(f"`{_spelt(o)}`", "", f"`{o.variable}`", o.help) for o in _options.FILES]
    options += [(f"`{flag}`", "", "", text) for flag, text in _options.ACTIONS.items()]
    options.append(("", f"`{_options.VERBOSITY}`", "", _options.VERBOSITY_HELP))
    names = [(f"`{n}`", _first(getattr(pytest_dynacheck, n))) for n in pytest_dynacheck.__all__]
    return "\n".join(
        [
            "# The plugin",
            "",
            "## Markers",
            "",
            *(f"- `{line.partition(': ')[0]}`: {line.partition(': ')[2]}" for line in _marks.LINES),
            "",
            "## Options",
            "",
            "A marker wins over the command line, that over the environment, that over the ini file.",
            "",
            _table(("option", "ini", "environment", "meaning"), options),
            "## Fixtures",
            "",
            _table(("fixture", "what it gives"), _fixtures()),
            "## Hooks",
            "",
            "For other plugins and `conftest.py`; [how to use them](../how-to/extend-it.md).",
            "",
            _table(("hook", "what it gives"), [(f"`{n}{_signature(f)}`", _first(f)) for n, f in _HOOKS]),
            "## Names",
            "",
            _table(("name", "what it is"), names),
        ]
    )


def _spelt(option: _options.Option) -> str:
    return f"{option.flag}={option.metavar}" if option.metavar else option.flag


def _fixtures() -> list[tuple[str, ...]]:
    """Fixtures with their parts; `_`-names aren't for tests."""
    rows = [(f"`{name}`", doc) for name, doc in _FIXTURES.items()]
    for name, cls in (("dynacheck", Dynacheck), ("dynacheck_benchmark", Benchmark)):
        for part, value in vars(cls).items():
            if not part.startswith("_") and inspect.getdoc(value) and part != "plain":
                rows.append((f"`{name}.{part}{_signature(value).replace('(self, ', '(')}`", _first(value)))
    rows.append(("`dynacheck_benchmark(target, *args, **kwargs)`", _first(Benchmark.__call__)))
    attributes = (inspect.getdoc(Benchmark) or "").partition("Attributes:")[2].split("\n    ")
    text = " ".join(" ".join(attributes).split())
    for name in ("speedup", "first_call", "first_call_cache", "break_even"):
        found = re.search(rf"\b{name}: (.*?)(?= \w+: |$)", text)
        rows.append((f"`dynacheck_benchmark.{name}`", found.group(1) if found else ""))
    return rows


_HOOKS = [(name, value) for name, value in vars(_hooks).items() if name.startswith("pytest_")]
_FIXTURES = {
    "dynacheck": _first(plugin_module.dynacheck),
    "dynacheck_device": _first(plugin_module.dynacheck_device),
    "dynacheck_benchmark": _first(WithBenchmark.dynacheck_benchmark),
}


def results() -> str:
    """What is in the JSON file."""
    lines = [
        "# The JSON file",
        "",
        "`--dynacheck-json=FILE` writes one document about the run, whole or not at all. Under pytest-xdist the",
        "controller writes it. [schema.json](schema.json) is its JSON Schema; fields may be added without a new",
        "version, none is removed or changes its meaning.",
        "",
        _fields(_schema.DOCUMENT),
    ]
    for name, definition in _schema.DEFINITIONS.items():
        lines += [f"## {name}", "", definition["description"], "", _fields(definition)]
    return "\n".join(lines)


def _fields(record: dict[str, Any]) -> str:
    rows = []
    for name, field in record["properties"].items():
        optional = "" if name in record["required"] else " (may be missing)"
        rows.append((f"`{name}`", _kind(field), field.get("description", "") + optional))
    return _table(("field", "type", "meaning"), rows)


def _kind(field: dict[str, Any]) -> str:
    """A field's type in words."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})"
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{json.dumps(value)}`" for value in field["enum"])
    kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
    kind = " or ".join(kinds)
    if "items" in field:
        return f"{kind} of {_kind(field['items'])}"
    if isinstance(field.get("additionalProperties"), dict):
        return f"{kind} of {_kind(field['additionalProperties'])}"
    return kind


def causes() -> str:
    """Reasons of breaks and skips, kinds of recompiles."""
    rows = [
        (f"[`{r.id}`](reasons.md#{r.id.lower()})", r.title, r.text, r.hint) for r in reasons.all_reasons()
    ]
    kinds = [(f"`{kind}`", hint_for(events.ChangeRow(kind, "x", "x", 1, 2))) for kind in KINDS]
    return "\n".join(
        [
            "# Causes",
            "",
            "Every cause has one key, without line numbers, the same in reports and in `allow`:",
            "",
            "- `break:<reason>@<file>:<function>`",
            "- `recompile:<kind>:<source>@<file>:<function>`",
            "- `eager:<limit, skip, stance, raised or fault>@<file>:<function>`",
            "- `nothing-compiled`",
            "",
            "## Reasons",
            "",
            "DC1xx: the graph breaks. DC2xx: the frame is given up. DC3xx: the frame is left alone by rule.",
            "[Each with a program](reasons.md) that gives it.",
            "",
            _table(("id", "reason", "text", "what to do"), rows),
            "## Kinds of recompiles",
            "",
            _table(("kind", "what to do"), kinds),
        ]
    )


def examples() -> str:
    """A program for each reason, and what it says."""
    lines = [
        "# Reasons, with examples",
        "",
        "A program for each [reason](causes.md) of a graph break, of giving a frame up and of leaving it alone, and",
        "what is said of it when it runs as `model.py`. In all of them:",
        "",
        "```python",
        "x = torch.arange(4.0)",
        'compiled = functools.partial(dynacheck.compile, backend="eager")',
        "```",
        "",
    ]
    for reason in reasons.all_reasons():
        torchs = f" torch.compile calls it “{reason.torch}”." if reason.torch else ""
        lines += [f"## {reason.id}", "", f"**{reason.title}**.{torchs}", "", support.program(reason)]
    return "\n".join(lines)


def supported() -> str:
    """Opcodes, builtins and functions of the standard library."""
    names = [".".join(map(str, version)) for version in support.VERSIONS]
    return "\n".join(
        [
            "# What the engine translates",
            "",
            "Found by asking the engine when this page was written (Python 3.11). Functions written in Python, of any",
            "module, are traced as they are and need no row here; what isn't traced is a",
            "[graph break](causes.md), not an error.",
            "",
            "## Builtins",
            "",
            _table(("builtin", "for example", "what becomes of it"), support.builtins()),
            "Exceptions are raised and caught as in Python.",
            "",
            "## Standard library",
            "",
            "Functions and methods written in C, or with a meaning of their own while tracing:",
            "",
            _table(("module", "functions"), support.handled()),
            "## Opcodes",
            "",
            "Empty: that version of Python hasn't the instruction.",
            "",
            _table(("opcode", *names, "why not"), support.opcodes()),
        ]
    )


def observed() -> list[tuple[str, str]]:
    """What `dynacheck.observe()` and logs are made of."""
    kinds = [k for k in vars(events).values() if inspect.isclass(k) and issubclass(k, events.Event)]
    return [(f"`{k.__name__}`", _first(k)) for k in kinds if k is not events.Event]


ROOT = HERE.parent.parent
SHOWN = tuple(
    p for p in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))) if shown.runs(p.read_text())
)
PAGES: dict[str, Callable[[], str]] = {
    "engine.md": engine,
    "plugin.md": plugin,
    "causes.md": causes,
    "json.md": results,
}
if sys.version_info[:2] == (3, 11):  # other versions have other functions
    PAGES["support.md"] = supported
    PAGES["reasons.md"] = examples


def main(check: bool, times: bool) -> int:
    stale = []
    wanted = {HERE / name: NOTE + page() for name, page in PAGES.items()}
    wanted[HERE / "schema.json"] = json.dumps(_schema.DOCUMENT, indent=2) + "\n"
    with ThreadPoolExecutor(2) as pool:
        wanted |= zip(SHOWN, pool.map(lambda path: shown.filled(path.read_text()), SHOWN))
    for path, text in wanted.items():
        have = path.read_text() if path.exists() else ""
        if not (shown.same(have, text) if path in SHOWN and not times else have == text):
            stale.append(path.name)
            if not check:
                path.write_text(text)
    if check and stale:
        print(f"not up to date: {', '.join(stale)}; run: python docs/generate.py")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:], "--times" in sys.argv[1:]))
