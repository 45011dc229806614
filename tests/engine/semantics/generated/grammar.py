"""Programs from a seed."""

from __future__ import annotations

import random
import re
import warnings

from engine.semantics.generated.program import Body, Clause, Statement, text_of
from engine.semantics.generated.templates import EXPRESSIONS, LITERALS, PRELUDE, STATEMENTS

HOLE = re.compile(r"<([=~+]?)([a-z#])(?::([a-z]))?>")
PARAMETERS = "x, y, n, r, flag, s, items, pair, table, thing, other"
GROWING = ("*= 2", "+= <l>", "+= <~l>", "+= <s>", "+= <u>", "<<=", ".extend(<u>)", "[1:] = <l>")
"""Parts of statements that double what they change, again and again in a loop."""
INPUTS = (
    (
        "x",
        [
            "torch.arange(4.) + call",
            "torch.ones(4)",
            "(torch.arange(4.) - call).requires_grad_()",
            "torch.rand(4)",
        ],
    ),
    (
        "y",
        [
            "x",
            "torch.full((4,), 2.)",
            "x.detach()",
            "x.detach()[:]",
            "KEEP['tensor']",
            "torch.ones(4) * call",
        ],
    ),
    ("n", ["2", "call", "call + 2", "(1, True, 1.0)[call]", "3"]),
    ("r", ["0.5", "call / 2", "2.5"]),
    ("flag", ["True", "call == 1", "False"]),
    ("s", ["'abc'", "'ab'[:call]"]),
    ("items", ["[1, 2, 3]", "KEEP['items']", "[call, x]", "[1, [2]]", "[4, 5][call:]"]),
    ("pair", ["(1, 2)", "(call, 3)", "(3, 1, 2)"]),
    ("table", ["{'a': 1, 'b': 2}", "KEEP['table']", "{'a': items, 'b': x}", "{'b': call}"]),
    (
        "thing",
        [
            "Thing(call)",
            "KEEP['thing']",
            "Thing(1, x)",
            "G_THING",
            "Data(call, items)",
            "Base(2)",
            "Slotted(call)",
        ],
    ),
    ("other", ["thing", "Thing(3, y)", "KEEP['thing']", "Base(call)"]),
)


class Scope:
    """The variables of one generated function, by kind.

    Args:
        outer: the scope of the function around it.
    """

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer
        self.own: dict[str, list[str]] = {}
        self.assigned: set[str] = set()

    def add(self, kind: str, name: str) -> None:
        if name not in self.own.setdefault(kind, []):
            self.own[kind].append(name)
        self.assigned.add(name)

    def visible(self, kind: str) -> list[str]:
        names = list(self.own.get(kind, ()))
        if self.outer is not None:
            names += self.outer.visible(kind)
        return names


class Generator:
    """Makes one program.

    Each program uses a part of the statements, with weights of its own, so that programs differ in kind.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = 0
        self.scope = Scope()
        self.loops = 0
        self.weights = {
            name: weight * self.random.choice((0, 0.3, 1, 1, 3)) for name, (weight, _) in STATEMENTS.items()
        }
        self.weights["assign"] += 2
        for name in ("raise", "return", "jump"):
            self.weights[name] *= 0.3
        self.weights["def"] = self.random.choice((0, 1, 3))
        self.deepest = self.random.choice((1, 2, 2, 3))

    # -- expressions
    def expression(self, kind: str, depth: int) -> str:
        choose = self.random
        names = self.scope.visible(kind)
        if depth <= 0 or choose.random() < 0.3:
            if names and (depth < 0 or choose.random() < 0.7):
                return choose.choice(names)
            return choose.choice(LITERALS[kind])
        template = choose.choice(_ALTERNATIVES[kind])
        inner = self.fill(template, depth - 1, {})
        return inner if closed(inner) else f"({inner})"

    def fill(self, template: str, depth: int, marks: dict[str, str]) -> str:
        targets: list[tuple[str, str]] = []

        def hole(found: re.Match[str]) -> str:
            assign, kind, mark = found.groups()
            if kind in marks and assign in ("", "~") and mark is None:
                return marks[kind]
            if kind == "#":
                name = self.fresh()
                self.scope.assigned.add(name)
            elif assign == "~":
                return self.expression(kind, -1)
            elif assign:
                name = self.target(kind, assign == "+")
                targets.append((kind, name))
            else:
                return self.expression(kind, depth)
            if mark:
                marks[mark] = name
            return name

        text = HOLE.sub(hole, template)
        for kind, name in targets:
            self.scope.add(kind, name)
        return text

    def fresh(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def target(self, kind: str, again: bool = False) -> str:
        names = self.scope.own.get(kind, [])
        if names and (again or self.random.random() < 0.5):
            return self.random.choice(names)
        return self.fresh()

    # -- statements
    def body(self, depth: int, size: int) -> Body:
        found: Body = []
        for _ in range(size):
            found += self.statement(depth)
        return found

    def statement(self, depth: int) -> Body:
        names = list(self.weights)
        while True:
            name = self.random.choices(names, [self.weights[n] for n in names])[0]
            compound = name in ("def", "if", "data if", "for", "while", "try", "with", "match")
            if (compound and depth >= self.deepest) or (name == "jump" and not self.loops):
                continue
            break
        if name == "def":
            return self.function(depth)
        template = self.random.choice(STATEMENTS[name][1].split(";;"))
        while self.loops and any(part in template for part in GROWING):
            template = self.random.choice(STATEMENTS[name][1].split(";;"))
        looping = name in ("for", "while")
        self.loops += looping
        found = self.parse(template.split("\n"), depth, {})
        self.loops -= looping
        return found

    def parse(self, lines: list[str], depth: int, marks: dict[str, str]) -> Body:
        """Statements from the lines of a template."""
        found: Body = []
        index = 0
        while index < len(lines):
            line = lines[index]
            inner = []
            while index + 1 < len(lines) and lines[index + 1].startswith("    "):
                index += 1
                inner.append(lines[index][4:])
            index += 1
            if line == "BODY":
                found += self.body(depth + 1, self.random.randint(1, 3))
            elif not inner:
                found.append(Statement(self.fill(line, 2, marks)))
            else:
                clause = self.clause(line, inner, depth, marks)
                if (
                    line.split()[0].rstrip(":") in ("else", "elif", "except", "finally")
                    and found
                    and found[-1].clauses
                ):
                    found[-1].clauses.append(clause)
                else:
                    found.append(Statement(clauses=[clause]))
        return found

    def clause(self, line: str, inner: list[str], depth: int, marks: dict[str, str]) -> Clause:
        header = self.fill(line, 2, marks)
        fixed = [self.fill(text[1:], 1, marks) for text in inner if text.startswith("!")]
        body = self.parse([text for text in inner if not text.startswith("!")], depth, marks)
        return Clause(header, fixed, body)

    def function(self, depth: int) -> Body:
        """A nested function or generator, and often a call of it."""
        outer = self.scope
        name = self.fresh()
        parameter, default = self.fresh(), self.fresh()
        header = f"def {name}({parameter}, {default}={self.expression('i', 1)}):"
        loops, self.loops = self.loops, 0
        self.scope = Scope(outer)
        self.scope.add("t", parameter)
        self.scope.add("i", default)
        fixed = []
        shared = [(kind, n) for kind, names in outer.own.items() for n in names if n[0] != "G"]
        for kind, shared_name in self.random.sample(shared, min(len(shared), self.random.randint(0, 2))):
            line = f"nonlocal {shared_name}"
            if line not in fixed:
                fixed.append(line)
            self.scope.add(kind, shared_name)
        if self.random.random() < 0.2:
            fixed.append("global G_INT")
            self.scope.add("i", "G_INT")
        generator = self.random.random() < 0.25
        body = self.body(depth + 1, self.random.randint(1, 3))
        result = self.expression("t", 2)
        if generator:
            body.append(Statement(f"yield {result}"))
            body += self.body(depth + 1, 1)
        body.append(Statement(f"return {result}"))
        self.scope, self.loops = outer, loops
        made = Statement(clauses=[Clause(header, fixed, body)])
        if generator:
            target = self.target("g")
            outer.add("g", target)
            return [made, Statement(f"{target} = {name}({self.expression('t', 1)})")]
        outer.add("c", name)
        if self.random.random() < 0.7:
            target = self.target("t")
            call = f"{target} = {name}({self.expression('t', 1)})"
            outer.add("t", target)
            return [made, *self.body(depth, self.random.randint(0, 1)), Statement(call)]
        return [made]

    # -- programs
    def program(self) -> Body:
        scope = self.scope
        kinds = dict(zip(PARAMETERS.split(", "), "ttifbsludoo"))
        for name, kind in kinds.items():
            scope.add(kind, name)
        fixed = ["out = []"]
        if self.random.random() < 0.4:
            fixed.insert(0, "global G_INT, G_LIST")
            scope.add("i", "G_INT")
            scope.add("l", "G_LIST")
        body = self.body(0, self.random.randint(3, 9))
        shown = [self.expression(kind, 0) for kind in self.random.choices("tiloducv", k=3)]
        body.append(Statement(f"return {', '.join(shown)}, out"))
        values = [Statement(f"{name} = {self.random.choice(options)}") for name, options in INPUTS]
        make = Statement(
            clauses=[Clause("def make(call):", [], [*values, Statement(f"return {PARAMETERS}")])]
        )
        keep = "KEEP = {'tensor': torch.ones(4), 'items': [7, 8], 'table': {'a': 5}, 'thing': Thing(4)}"
        main = Statement(clauses=[Clause(f"def program({PARAMETERS}):", fixed, body)])
        return [*split(PRELUDE), Statement(keep), make, main]


def split(text: str) -> Body:
    """The statements of a text, each whole."""
    found: Body = []
    decorated = False
    for line in text.strip().splitlines():
        if found and (line.startswith(" ") or decorated):
            found[-1].text += "\n" + line
        else:
            found.append(Statement(line))
        decorated = line.startswith("@")
    return found


def _alternatives(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split("; ") if part.strip()]


_ALTERNATIVES = {kind: _alternatives(text) for kind, text in EXPRESSIONS.items()}


def closed(text: str) -> bool:
    """Whether an expression needs no brackets around it."""
    if re.fullmatch(r"[A-Za-z_][\w.]*|\d+", text):
        return True
    depth = 0
    for index, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0 and index < len(text) - 1:
            return False
    return text[0] in "([{"


def is_program(body: Body) -> bool:
    """Whether it compiles."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text_of(body), "<program>", "exec")
    except SyntaxError:
        return False
    return True


def generate(seed: int) -> Body:
    """The program of a seed: the first of its attempts that is one."""
    for attempt in range(100):
        program = Generator(seed * 100 + attempt).program()
        if is_program(program):
            return program
    raise ValueError(f"no program for seed {seed}")
