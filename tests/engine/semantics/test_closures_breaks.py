"""Cells, bound methods and what else has an identity of its own, across breaks and out of the frame."""

import contextlib
import io

import dynacheck
import pytest
import torch

BODIES = {
    "deleted argument cell": "del k\nprint('p')\ndef g():\n    return k\ntry:\n    result = g()\nexcept NameError:\n    result = 'gone'",
    "deleted and stored": "del k\nk = 5\nprint('p')\ng = lambda: k\nresult = g()",
    "deleted, read behind": "def g():\n    return k\ndel k\nprint('p')\ntry:\n    result = k\nexcept NameError as e:\n    result = 'gone'",
    "unbound behind": "g = lambda: v\nprint('p')\ntry:\n    result = v\nexcept NameError as e:\n    result = type(e), str(e)\nv = 1",
    "unbound twice behind": "g = lambda: v\nprint('p')\nprint('q')\ntry:\n    del v\nexcept NameError as e:\n    result = type(e), str(e)\nv = 1",
    "unbound, read at a break": "g = lambda: v\nprint('p')\ntry:\n    print(v)\nexcept NameError as e:\n    result = type(e), str(e)\nv = 1",
    "unbound in the closure": "g = lambda: v\nprint('p')\ntry:\n    result = g()\nexcept NameError as e:\n    result = type(e), str(e)\nv = 1",
    "unbound argument behind": "g = lambda: k\ndel k\nprint('p')\ntry:\n    result = k\nexcept NameError as e:\n    result = type(e), str(e)",
    "made behind": "print('p')\nv = k\ndef g():\n    nonlocal v\n    v += 1\n    return v\nprint('q')\nresult = g(), v",
    "three breaks": "def g():\n    nonlocal k\n    k += 1\n    return k\nprint(g())\nprint(k)\nk += 5\nprint(g())\nresult = g",
    "written by the closure": "def g():\n    nonlocal k\n    k += 1\ng()\nprint('p')\ng()\nresult = k",
    "written behind": "g = lambda: k\nprint('p')\nk = 9\nresult = g()",
    "two closures": "f = lambda: k\ndef g():\n    nonlocal k\n    k *= 2\nprint('p')\ng()\nresult = f(), k",
    "escapes": "def g():\n    nonlocal k\n    k += 1\n    return k\nprint('p')\ng()\nresult = g",
    "iterator in a cell": "d = {'a': 1}\nd['b'] = 2\ni = iter(d)\nnext(i)\ng = lambda: next(i)\nprint('p')\nresult = g()",
    "one method twice": "m = o.grow\nresult = [m, m]",
    "one method, broken": "m = o.grow\nh = [m]\nprint('p')\nresult = h[0] is m, m()",
    "two methods": "result = [o.grow, o.grow]",
    "methods of a list": "m = o.items.append\nh = [m, m]\nprint('p')\nresult = h[0] is h[1], m is h[0], m(1)",
    "method of a tensor": "m = x.add\nh = [m, m]\nprint('p')\nresult = h[0] is h[1]",
    "value of a nullcontext": "from contextlib import nullcontext\nc = nullcontext([k])\nh = c.__enter__\nwith c as v:\n    print(v)\nresult = [c.enter_result, v, h()]",
    "nullcontext escapes": "from contextlib import nullcontext\nresult = vars(nullcontext(k))",
    "C method of an object": "m = o.__eq__\nresult = [m, m]",
}


class Box:
    def __init__(self):
        self.items = [1]

    def grow(self):
        self.items.append(len(self.items))
        return len(self.items)


def relations(value):
    """What a result is, and which of its parts are one object."""
    if callable(value):
        return value.__name__, value() if value.__name__ == "g" else None
    if isinstance(value, list):
        return [[a is b for b in value] for a in value]
    return value


@pytest.mark.parametrize("name", BODIES)
def test_body(name):
    lines = "".join(f"    {line}\n" for line in BODIES[name].splitlines())
    text = f"def program(x, k, o):\n    y = x + 1\n{lines}    return y * 2, result\n"

    def seen(compiled):
        scope = {}
        exec(text, scope)
        fn = dynacheck.compile(scope["program"], backend="eager") if compiled else scope["program"]
        with contextlib.redirect_stdout(io.StringIO()):
            boxes = [Box(), Box()]
            results = [fn(torch.ones(2), 3, box)[1] for box in boxes]
        return [relations(r) for r in results], [box.items for box in boxes]

    dynacheck.reset()
    assert seen(True) == seen(False)
