"""Generated programs as trees of statements, so that a failing one can be cut down."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator


@dataclasses.dataclass
class Clause:
    """A header (`if a:`, `else:`), the lines of its body that must stay, and the statements that may go."""

    header: str
    fixed: list[str]
    body: list[Statement]


@dataclasses.dataclass
class Statement:
    """A simple statement (its text) or a compound one (its clauses)."""

    text: str = ""
    clauses: list[Clause] = dataclasses.field(default_factory=list)

    def lines(self, indent: str = "") -> Iterator[str]:
        for line in self.text.splitlines():
            yield indent + line
        for clause in self.clauses:
            yield indent + clause.header
            inner = indent + "    "
            yield from (inner + line for line in clause.fixed)
            for statement in clause.body:
                yield from statement.lines(inner)
            if not clause.fixed and not clause.body:
                yield inner + "pass"


Body = list[Statement]


def text_of(body: Body) -> str:
    return "".join(f"{line}\n" for statement in body for line in statement.lines())


def bodies(body: Body) -> Iterator[Body]:
    """Every list of statements in a program, outermost first."""
    yield body
    for statement in body:
        for clause in statement.clauses:
            yield from bodies(clause.body)


GROUP = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
PLACEHOLDERS = ("1", "x", "(1)")


def simpler_lines(line: str) -> Iterator[str]:
    """The line with one group in brackets replaced by something small, or by what it holds."""
    for found in GROUP.finditer(line):
        before, group, after = line[: found.start()], found.group(), line[found.end() :]
        for small in (*PLACEHOLDERS, group[1:-1]):
            if len(small) < len(group) and small != group:
                yield before + small + after
    head, equals, value = line.partition(" = ")
    if equals and len(value) > 1:
        yield head + " = 1"
        yield head + " = x"


class Shrinker:
    """Cuts a failing program down while it keeps failing.

    Args:
        fails: says whether a text still fails; text that is no program doesn't.
        budget: how often to ask.
    """

    def __init__(self, fails: Callable[[str], bool], budget: int = 600) -> None:
        self.fails = fails
        self.budget = budget

    def ask(self, program: Body) -> bool:
        if self.budget <= 0:
            return False
        self.budget -= 1
        return self.fails(text_of(program))

    def shrink(self, program: Body) -> str:
        """The text of the smallest program that was found."""
        while self.once(program):
            pass
        return text_of(program)

    def once(self, program: Body) -> bool:
        """One sweep; whether anything could go."""
        before = text_of(program)
        for body in list(bodies(program)):
            self.drop_runs(program, body)
        for body in list(bodies(program)):
            self.flatten(program, body)
        for body in list(bodies(program)):
            self.simplify(program, body)
        return self.budget > 0 and text_of(program) != before

    def attempt(self, program: Body, body: Body, new: Body) -> bool:
        old = body[:]
        body[:] = new
        if self.ask(program):
            return True
        body[:] = old
        return False

    def drop_runs(self, program: Body, body: Body) -> None:
        size = max(1, len(body) // 2)
        while size:
            start = 0
            while start < len(body):
                if not self.attempt(program, body, body[:start] + body[start + size :]):
                    start += size
            size //= 2

    def flatten(self, program: Body, body: Body) -> None:
        """Put the body of a compound statement in its place, or leave clauses out."""
        for index in range(len(body) - 1, -1, -1):
            statement = body[index]
            for clause in statement.clauses:
                if self.attempt(program, body, body[:index] + clause.body + body[index + 1 :]):
                    break
            else:
                for clause in statement.clauses[1:]:
                    kept = [c for c in statement.clauses if c is not clause]
                    smaller = Statement(statement.text, kept)
                    if self.attempt(program, body, [*body[:index], smaller, *body[index + 1 :]]):
                        statement = smaller

    def simplify(self, program: Body, body: Body) -> None:
        for statement in body:
            again = bool(statement.text) and "\n" not in statement.text
            while again:
                again = False
                old = statement.text
                for line in simpler_lines(old):
                    statement.text = line
                    if self.ask(program):
                        again = True
                        break
                    statement.text = old
