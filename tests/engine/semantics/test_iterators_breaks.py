"""Iterators that outlive a break or the frame: the same type, the same place, the same container under them."""

import contextlib
import io

import dynacheck
import pytest
import torch
from engine.semantics.container_harness import names

MAKERS = {
    "keys": "iter(d)",
    "values": "iter(d.values())",
    "items": "iter(d.items())",
    "reversed keys": "reversed(d)",
    "reversed values": "reversed(d.values())",
    "reversed items": "reversed(d.items())",
    "set": "iter(s)",
    "deque": "iter(q)",
    "reversed deque": "reversed(q)",
    "list": "iter(a)",
    "reversed list": "reversed(a)",
    "tuple": "iter((1, 2, 3))",
    "string": "iter('abc')",
    "range": "iter(range(3))",
}
BEFORE = {"as it is": "pass", "grown": "d['z'] = 1\n    s.add(77)\n    q.append(8)\n    a.append(9)"}
AFTER = {"as it is": "pass", "grown": "d['y'] = 1\n    s.add(78)\n    q.append(9)\n    a.append(1)"}


@pytest.mark.parametrize("taken", [0, 1, 9])
@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", MAKERS)
def test_across_a_break(name, before, after, taken):
    text = (
        f"def program(x, d, s, q, a):\n    y = x + 1\n    {BEFORE[before]}\n    it = {MAKERS[name]}\n    held = [it]\n"
        f"    for _ in range({taken}):\n        next(it, None)\n    print('p')\n    {AFTER[after]}\n    try:\n"
        "        rest = list(it)\n    except RuntimeError as error:\n        rest = str(error)\n"
        "    return y * 2, rest, type(it).__name__, held[0] is it\n"
    )

    def results(compiled):
        scope = names()
        exec(text, scope)
        fn = dynacheck.compile(scope["program"], backend="eager") if compiled else scope["program"]
        deque = scope["collections"].deque
        with contextlib.redirect_stdout(io.StringIO()):
            return [fn(torch.ones(2), {"a": 1, "b": 2}, {5, 6}, deque([1, 2]), [3, 4])[1:] for _ in range(2)]

    dynacheck.reset()
    assert results(True) == results(False)
