"""Log records of one program under torch.compile and here: one of each event, in the same words, of the same line."""

import logging
import os
import re

import dynacheck
import pytest
import torch
import torch._dynamo
import torch._logging


def number(x, n):
    return x * n


def text(x, t):
    y = x + 1
    return y * len(t)


def branch(x):
    return x.sin() if x.shape[0] % 2 == 0 else x.cos()


def bounded(x):
    if x.shape[0] > 6:
        return x.sin()
    return x.cos()


def printing(x, n):
    y = x + 1
    print(end="")
    return y * n


def sizes(*found):
    return [(torch.ones(n),) for n in found]


X = torch.ones(3)
PROGRAMS = {
    "a number": (number, [(X, 2), (X, 3), (X, 4)], {}),
    "numbers that stay constant": (number, [(X, 2), (X, 3), (X, 4)], {"dynamic": False}),
    "a string": (text, [(X, "Hello"), (X, "Hi"), (X, "Hello")], {}),
    "a size": (number, [(torch.ones(n, 3), 2) for n in (3, 4, 5)], {}),
    "a branch on a size": (branch, sizes(4, 6, 8, 9), {}),
    "a bound of a size": (bounded, sizes(4, 9), {"dynamic": True}),
    "a dtype": (number, [(X, 2), (X.double(), 2)], {}),
    "a rank": (number, [(X, 2), (X[None], 2)], {}),
    "requires_grad": (number, [(X, 2), (torch.ones(3, requires_grad=True), 2)], {}),
    "a break": (printing, [(X, 2), (X, 3)], {}),
}
_TORCHS = {
    "recompiles": "torch._dynamo.guards.__recompiles",
    "graph_breaks": "torch._dynamo.symbolic_convert.__graph_breaks",
}


class Kept(logging.Handler):
    """Keeps the messages of one logger's own records."""

    def __init__(self):
        super().__init__()
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


def recorded(compiler, name, artifact):
    """The records of an artifact over a program's calls."""
    fn, calls, options = PROGRAMS[name]
    torch._dynamo.reset()
    dynacheck.reset()
    kept = Kept()
    logger = logging.getLogger(f"dynacheck.{artifact}" if compiler is dynacheck else _TORCHS[artifact])
    select = dynacheck.logs if compiler is dynacheck else torch._logging.set_logs
    select(**{artifact: True})
    logger.addHandler(kept)
    try:
        compiled = compiler.compile(fn, backend="eager", **options)
        for call in calls:
            compiled(*call)
    finally:
        logger.removeHandler(kept)
        select()
    return kept.messages


_FILE = os.path.basename(__file__)


def places(message):
    """Line numbers of the program that a record names, in the order that it names them."""
    return list(dict.fromkeys(re.findall(rf"{_FILE}\D{{1,8}}(\d+)", message)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_recompiles(name):
    ours, theirs = (recorded(compiler, name, "recompiles") for compiler in (dynacheck, torch))
    assert len(ours) == len(theirs) > 0
    for mine, its in zip(ours, theirs, strict=True):
        head, triggered, *guards = mine.splitlines()
        assert (
            triggered.strip() == its.splitlines()[1].strip() == "triggered by the following guard failure(s):"
        )
        assert set(places(its)) <= set(places(mine)) or "resume" in its
        assert all(guard.startswith("     - ") and "  # now " in guard for guard in guards)
        assert head.startswith(its.splitlines()[0].partition(" in ")[0]) or "resume" in its


def test_graph_breaks():
    (mine,), (its,) = (recorded(compiler, "a break", "graph_breaks") for compiler in (dynacheck, torch))
    assert mine.splitlines()[0].startswith("Graph break in user code at ")
    assert its.splitlines()[0].startswith("Graph break in user code at ")
    for wanted in ("Graph Break Reason: ", "User code traceback:", 'print(end="")'):
        assert wanted in mine and wanted in its
    assert places(mine)[0] == places(its)[0]
