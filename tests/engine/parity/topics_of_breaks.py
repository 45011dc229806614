"""Programs by topic: every body of `topics/` with a break of every kind at every place that it marks.

A body marks a place by `BREAK(value)` or `BREAK()`. A program is one body with one of its places, or all of them, made a
break; the others are the values alone. It is a file of its own, which the harness executes anew for every run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from parity.harness import Program

__all__ = ["KINDS", "TOPICS", "Variant", "variants"]

HERE = Path(__file__).parent / "topics"
TOPICS = sorted(path.stem for path in HERE.glob("*.py"))

PRELUDE = '''"""Made from {topic}."""

import torch
from parity.harness import Program, frozen

FLAG = torch.ones(1)


@torch.compiler.disable
def disabled(value=None):
    return value


def printing(value=None, flag=FLAG):  # a frame that gets no tensor is left alone by torch, for good
    print("here")
    return value

'''
EPILOGUE = """

def state(fn):
    return frozen([(name, found) for name, found in globals().items() if name.isupper()])


def make():
    return {body}, [(torch.ones(3),), (torch.ones(3) * 2,)]


PROGRAMS = [Program({name!r}, make, state=state, file=__file__)]
"""

KINDS = {
    "disabled": lambda value: ast.Call(ast.Name("disabled", ast.Load()), value, []),
    "printing": lambda value: ast.Call(ast.Name("printing", ast.Load()), value, []),
    "branch": lambda value: ast.IfExp(
        ast.parse("FLAG.sum() > 0", mode="eval").body, value[0] if value else ast.Constant(1), ast.Constant(2)
    ),
}


class Marks(ast.NodeTransformer):
    """Makes chosen marks breaks of a kind, and the others what they hold."""

    def __init__(self, kind: str, chosen: frozenset[int] | None) -> None:
        self.kind, self.chosen, self.count = kind, chosen, 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not isinstance(node.func, ast.Name) or node.func.id != "BREAK":
            return self.generic_visit(node)
        number, self.count = self.count, self.count + 1
        value = [self.visit(argument) for argument in node.args]
        if self.chosen is None or number in self.chosen:
            return KINDS[self.kind](value)
        return value[0] if value else ast.Constant(None)


@dataclass(frozen=True)
class Variant:
    """One program: a body, and where it breaks in which way (``place`` None: everywhere)."""

    topic: str
    body: str
    kind: str
    place: int | None

    @property
    def name(self) -> str:
        """What tests call it."""
        return f"{self.body}-{self.kind}-{'all' if self.place is None else self.place}"

    def program(self, folder: Path) -> Program:
        """Writes the program's file and returns what the harness runs."""
        tree = ast.parse((HERE / f"{self.topic}.py").read_text())
        chosen = None if self.place is None else frozenset({self.place})
        rest = [node for node in tree.body[1:] if not _is_body(node)]
        body = next(node for node in tree.body if _is_body(node) and node.name == self.body)
        body.decorator_list = []
        body = Marks(self.kind, chosen).visit(body)
        code = ast.unparse(ast.fix_missing_locations(ast.Module([*rest, body], [])))
        path = folder / f"{self.topic}_{self.name.replace('-', '_')}.py"
        end = EPILOGUE.format(body=self.body, name=self.name)
        path.write_text(PRELUDE.format(topic=self.topic) + code + end)
        return Program(self.name, lambda: (None, []), file=str(path))


def _is_body(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(found, ast.Name) and found.id == "program" for found in node.decorator_list
    )


def variants(topic: str) -> Iterator[Variant]:
    """The programs of a topic."""
    for node in ast.parse((HERE / f"{topic}.py").read_text()).body:
        if not _is_body(node):
            continue
        marks = Marks("disabled", frozenset())
        marks.visit(node)
        for kind in KINDS:
            for place in [*range(marks.count), *[None] * (marks.count > 1)]:
                yield Variant(topic, node.name, kind, place)
