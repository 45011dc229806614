"""Breaks in comprehensions: since 3.12 those are part of their frame (PEP 709) and run by themselves between two graphs."""

import sys

import dynacheck
import pytest
import torch

WHOLE = {
    "list": "y = x + 1\nreturn y, [print(i) or y * i for i in range(2)]",
    "set": "return x + len({print(i) or i for i in range(2)})",
    "dict of two loops": "i, j = 7, 8\nd = {(i, j): print(i) for i in range(2) for j in range(2)}\nreturn x + i + j, d",
    "unbound outside": "d = [print(i) or i for i in range(2)]\ntry:\n    i\nexcept NameError as e:\n    return x + d[1], str(e)",
    "bound outside": "i = 10\nd = [print(i) or i for i in range(2)]\nreturn x + i + d[1]",
    "nested": "return x + [[print(i, j) or i * j for j in range(2)] for i in range(2)][1][1]",
    "filtered": "return x + len([i for i in range(4) if i % 2 and not print(i)])",
    "value of a tensor": "y = x + 1\nreturn y + [v.sum().item() for v in (x, y)][0]",
    "branch on a tensor": "return x + len([i for i in range(3) if x.sum() > i])",
    "walrus": "y = 5\nd = [(y := i, print(i)) for i in range(2)]\nreturn x + y, d",
    "free variable": "k = x * 2\ng = lambda: k\nreturn g() + [print(i) or k * i for i in range(2)][1]",
    "on the stack": "return (x + 1, x * 2, [print(i) or i for i in range(2)], x - 1)",
    "in a call": "return torch.add(x, other=[print(i) or i for i in range(2)][1], alpha=2)",
    "under no_grad": "with torch.no_grad():\n    d = [print(i) or x * i for i in range(2)]\n    y = x + 1\nreturn y + d[1]",
    "two": "return x + [print(i) or i for i in range(2)][1] + [print(i) or i for i in range(3)][1]",
    "empty": "return x + len([print(i) for i in ()])",
    "raising": "y = x * 2\nd = [1 // i for i in (1, 0) if not print(i)]\nreturn y, d",
    "calling": "return x + [called(x, i) for i in range(2)][1]",
    "unpacked": "a, *b = [print(i) or x * i for i in range(3)]\nreturn a + b[1]",
}
LEFT = {
    "walrus that may not bind": "d = [(y := i, print(i)) for i in range(2)]\nreturn x + y",
    "captured": "d = [print(i) or (lambda: i) for i in range(2)]\nreturn x + d[0]()",
    "in a loop": "for k in range(2):\n    d = [print(i) or x * i for i in range(2)]\nreturn d[1] + 1",
    "in a try": "try:\n    return x + [1 // i for i in (1, 0) if not print(i)][0]\nexcept ZeroDivisionError:\n    return x",
}


@pytest.mark.parametrize("name", [*WHOLE, *LEFT])
def test_body(name, engine, seen, capsys):
    lines = "".join(f"    {line}\n" for line in {**WHOLE, **LEFT}[name].splitlines())
    scope = {"torch": torch}
    exec(
        f"def called(x, i):\n    y = x + i\n    print(i)\n    return y * 2\n\ndef program(x):\n{lines}", scope
    )

    def outcome(fn):
        found = []
        for _ in range(2):
            try:
                found.append(repr(fn(torch.ones(2))))
            except ZeroDivisionError as error:
                found.append((str(error), error.__traceback__.tb_next.tb_lineno))
        return found, capsys.readouterr().out

    assert outcome(dynacheck.compile(scope["program"], backend="eager")) == outcome(scope["program"])
    given_up = [skip.reason for skip in seen.skipped if skip.reason.startswith("DC20")]
    if sys.version_info >= (3, 12) and name not in ("raising", "unbound outside"):
        assert bool(given_up) is (name in LEFT)
    assert seen.graph_breaks or name == "empty"
