"""What the engine translates, found by asking it: opcodes by version, builtins, a program for each reason."""

from __future__ import annotations

import contextlib
import inspect
import io
import itertools
import linecache
import logging
import os
import sys
import sysconfig
import textwrap
from typing import Any
from unittest import mock

import dynacheck
import programs
import torch
import torch.utils.checkpoint
from dynacheck import events, reasons
from dynacheck.handlers import registry
from dynacheck.opcodes.known import OPCODES
from dynacheck.opcodes.table import FIRST, LAST, UNSUPPORTED, table

VERSIONS = [(FIRST[0], minor) for minor in range(FIRST[1], LAST[1] + 1)]

BUILTINS = {  # an expression with each, over a tensor x
    "abs": "abs(-2), abs(x)",
    "all": "all([1, 2])",
    "any": "any(n > 1 for n in (1, 2))",
    "ascii": "ascii('é')",
    "bin": "bin(5)",
    "bool": "bool([])",
    "bytearray": "len(bytearray(b'ab'))",
    "bytes": "bytes([1, 2])",
    "callable": "callable(len)",
    "chr": "chr(97)",
    "classmethod": "Thing.made(2).n",
    "compile": "compile('1', 'f', 'eval')",
    "complex": "complex(1, 2)",
    "delattr": "delattr(thing, 'n')",
    "dict": "dict(a=1, b=x)",
    "dir": "dir(thing)[-1]",
    "divmod": "divmod(7, 2)",
    "enumerate": "list(enumerate('ab'))",
    "eval": "eval('1 + 1')",
    "exec": "exec('a = 1')",
    "filter": "list(filter(None, [0, 1]))",
    "float": "float('1.5')",
    "format": "format(1.5, '.2f')",
    "frozenset": "frozenset({1, 2})",
    "getattr": "getattr(thing, 'm', 3)",
    "globals": "globals()['thing'].n",
    "hasattr": "hasattr(x, 'shape')",
    "hash": "hash('a') == hash('a')",
    "hex": "hex(255)",
    "id": "id(thing) == id(thing)",
    "input": "input()",
    "int": "int('3')",
    "isinstance": "isinstance(x, torch.Tensor)",
    "issubclass": "issubclass(bool, int)",
    "iter": "next(iter([1]))",
    "len": "len(x)",
    "list": "list('ab')",
    "locals": "locals()['x'].shape",
    "map": "list(map(len, ['a', 'bc']))",
    "max": "max(1, 2), max([3, 4], key=abs)",
    "memoryview": "len(memoryview(b'ab'))",
    "min": "min(x.shape)",
    "next": "next(iter(()), 3)",
    "object": "object() is None",
    "oct": "oct(8)",
    "open": "open(os.devnull).close()",
    "ord": "ord('a')",
    "pow": "pow(2, 5, 7)",
    "print": "print('seen')",
    "property": "thing.double",
    "range": "sum(range(4))",
    "repr": "repr([1, 'a'])",
    "reversed": "list(reversed([1, 2]))",
    "round": "round(2.567, 1)",
    "set": "len({1, 2} | set([3]))",
    "setattr": "setattr(thing, 'n', 5)",
    "slice": "x[slice(0, 1)].shape",
    "sorted": "sorted([2, 1], key=lambda n: -n)",
    "staticmethod": "Thing.plus(1, 2)",
    "str": "str(1.5).upper()",
    "sum": "sum([1, 2], 3)",
    "super": "Thing().told()",
    "tuple": "tuple([1, x])",
    "type": "type(thing) is Thing",
    "vars": "vars(thing)['n']",
    "zip": "list(zip('ab', [1, 2], strict=True))",
    "__import__": "__import__('math').pi",
}


class _Base:
    def told(self) -> str:
        return "told"


class Thing(_Base):
    """What the examples use."""

    def __init__(self, n: int = 1) -> None:
        self.n = n

    def told(self) -> str:
        return super().told()

    @property
    def double(self) -> int:
        return self.n * 2

    @classmethod
    def made(cls, n: int) -> Thing:
        return cls(n)

    @staticmethod
    def plus(a: int, b: int) -> int:
        return a + b


_numbers = itertools.count()


def _report(lines: list[str]) -> Any:
    """The Report of one call of a function with these lines."""
    file = f"<doctest support {next(_numbers)}>"
    names: dict[str, Any] = {
        "torch": torch, "os": os, "sys": sys, "logging": logging, "Thing": Thing, "thing": Thing(),
    }  # fmt: skip
    exec(compile("def f(x):\n" + "".join(f"    {line}\n" for line in lines), file, "exec"), names)
    dynacheck.reset()
    with (
        dynacheck.observe() as report,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.suppress(ValueError, EOFError, OSError),
    ):
        dynacheck.compile(names["f"], backend="eager")(torch.ones(3, 4))
    return report


def program(reason: reasons.Reason) -> str:
    """A program that gives a reason, and what a report says of it, after seeing that it does.

    Raises:
        AssertionError: it gives another, or there is no program.
    """
    assert reason.id in programs.PROGRAMS, f"add a program that gives {reason.id} to docs/programs.py"
    lines = inspect.getsource(programs.PROGRAMS[reason.id]).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("def ")) + 1
    text = textwrap.dedent("\n".join(lines[start:])).replace("  # noqa: B018", "")
    file = os.path.join(os.getcwd(), "model.py")  # which isn't there, and is named in keys
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    seen: list[events.Event] = []
    dynacheck.reset()
    logs = [logging.getLogger(name) for name in ("dynacheck", "torch")]
    events.observers.add(seen.append)
    try:
        with (
            dynacheck.observe() as report,
            dynacheck.configured(raise_internal_errors=False),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            mock.patch.multiple(logs[0], disabled=True),
            mock.patch.multiple(logs[1], disabled=True),
        ):
            exec(compile(text, file, "exec"), dict(vars(programs)))
    finally:
        events.observers.remove(seen.append)
        del linecache.cache[file]
    given = [event for event in seen if getattr(event, "reason", None) == reason.id]
    assert given, (reason.id, text, seen)
    return f"```python\n{text}\n```\n\n```text\n{_told(reason, report, given)}\n```\n"


def _told(reason: reasons.Reason, report: Any, given: list[Any]) -> str:
    """The row of a report about a reason; what an event says where no row is about it."""
    rows = [b for b in report.graph_breaks if b.reason == reason.id]
    if rows:
        row = rows[0]
        hint = [f"  hint: {row.hint}"] if row.hint else []
        return "\n".join([f"{row.file}:{row.line} in {row.function}: {row.title}", f"    {row.text}",
                          f"  {row.message}", *hint, f"  key: {row.cause}"])  # fmt: skip
    told = [e.message for e in given if getattr(e, "message", "")]
    keys = [f"  key: {run.cause}" for run in report.eager_runs][:1]
    text = told[0] if told else reason.title
    stdlib = sysconfig.get_path("stdlib") + os.sep
    return "\n".join([text.replace(stdlib, ""), *keys])


def builtins() -> list[tuple[str, str, str]]:
    """Each builtin, an example, and what becomes of it."""
    rows = []
    for name, expression in BUILTINS.items():
        report = _report(["y = x + 1", f"value = {expression}", "return y * 2"])
        broke = [f"graph break [{b.reason}](causes.md)" for b in report.graph_breaks]
        rows.append((f"`{name}`", f"`{expression}`", broke[0] if broke else "traced"))
    return rows


def opcodes() -> list[tuple[str, ...]]:
    """Each opcode and whether a handler serves it, by version."""
    tables = [table(version) for version in VERSIONS]
    rows = []
    for name in sorted(set().union(*(OPCODES[version] for version in VERSIONS))):
        cells = [
            "" if name not in OPCODES[version] else "yes" if name in handlers else "no"
            for version, handlers in zip(VERSIONS, tables, strict=True)
        ]
        rows.append((f"`{name}`", *cells, UNSUPPORTED.get(name, "")))
    return rows


_SPELT = {"posix": "os", "nt": "os"}


def handled() -> list[tuple[str, str]]:
    """Functions of the standard library with a meaning of their own, by module."""
    by_module: dict[str, set[str]] = {}
    handled = [function for function, _ in registry._handlers.values() if function not in registry.refused]
    for function in handled:
        module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
        if isinstance(module, str) and isinstance(name, str):
            top = _SPELT.get(module, module.removeprefix("_"))
            if top in sys.stdlib_module_names and top != "builtins" and not name.startswith("_"):
                by_module.setdefault(top, set()).add(name)
    return [
        (f"`{module}`", ", ".join(f"`{n}`" for n in sorted(names)))
        for module, names in sorted(by_module.items())
    ]
