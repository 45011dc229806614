"""Most random programs raise early. The statements that raise are taken out, so that more of a program runs."""

from __future__ import annotations

import contextlib
import io
import random
import traceback
import warnings

import torch
from engine.semantics.generated.compare import CALLS, limited, module_of
from engine.semantics.generated.grammar import generate, is_program
from engine.semantics.generated.program import Body, Statement, text_of

ROUNDS = 40


def lines_of(statement: Statement) -> int:
    return sum(1 for _ in statement.lines())


def locate(program: Body, line: int) -> tuple[Body, int] | None:
    """Where the innermost statement at a line is: its list and index."""
    start = 1
    for index, statement in enumerate(program):
        count = lines_of(statement)
        if start <= line < start + count:
            inner_start = start
            for clause in statement.clauses:
                inner_start += 1 + len(clause.fixed)
                inner_count = sum(map(lines_of, clause.body))
                if inner_start <= line < inner_start + inner_count:
                    return locate(clause.body, line - inner_start + 1)
                inner_start += inner_count or not clause.fixed
            return program, index
        start += count
    return None


def raising_line(text: str) -> int | None:
    """The line of `program` at which the plain program raises; None if its calls all return."""
    name = "generated_repair"
    random.seed(7)
    torch.manual_seed(7)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = module_of(text, name)
            with limited(20):
                for call in range(CALLS):
                    module.program(*module.make(call))
        except Exception as error:
            frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == f"<{name}>"]
            program = [i for i, f in enumerate(frames) if f.name == "program"]
            return frames[program[0]].lineno if program else None
    return None


def runnable(seed: int) -> Body:
    """The program of a seed, without most of the statements that raise out of it."""
    choose = random.Random(seed)
    program = generate(seed)
    for _ in range(ROUNDS):
        line = raising_line(text_of(program))
        if line is None or choose.random() < 0.04:
            break
        found = locate(program, line)
        if found is None:
            break
        body, index = found
        removed = body.pop(index)
        if not is_program(program):
            body.insert(index, removed)
            break
    return program
