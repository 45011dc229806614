"""Names and attributes that aren't there: loads fail on the call that plain Python's do, also where nothing uses the value."""

import dynacheck
import pytest
import torch

BODIES = {
    "unused global": "g = G\ny = x + 1",
    "unused attribute": "a = o.a\ny = x + 1",
    "unused slot": "a = s.a\ny = x + 1",
    "unused cell": "a = cell\ny = x + 1",
    "unused key": "a = d['a']\ny = x + 1",
    "global in a container": "g = [G]\ny = x + 1",
    "written first": "o.b = 1\na = o.a\ny = x + 1",
    "slots take no others": "s.other = 1\ny = x + 1",
    "class attribute of a slotted one": "s.kind = 1\ny = x + 1",
    "slots of a new one": "n = S()\nn.a = 1\nn.other = 2\ny = x + 1",
}


class Plain:
    pass


class S:
    __slots__ = ("a",)
    kind = 0


@pytest.mark.parametrize("name", BODIES)
def test_body(name):
    lines = "".join(f"        {line}\n" for line in BODIES[name].splitlines())
    text = f"def make(cell):\n    def program(x, o, s, d):\n{lines}        return y\n        cell\n    return program\n"

    def seen(compiled):
        scope = {"S": S, "G": 1}
        exec(text, scope)
        program = scope["make"](1)
        fn = dynacheck.compile(program, backend="eager") if compiled else program
        found = []
        for there in (True, True, False, True):
            o, s, d = Plain(), S(), {}
            if there:
                o.a, s.a, d["a"], scope["G"] = 1, 2, 3, 4
                program.__closure__[0].cell_contents = 5
            else:
                del scope["G"], program.__closure__[0].cell_contents
            try:
                found.append(fn(torch.ones(2), o, s, d).tolist())
            except Exception as error:
                if isinstance(error, dynacheck.errors.DynacheckError):
                    raise
                found.append((type(error), str(error)))
            found.append((vars(o), hasattr(s, "a")))
        return found

    dynacheck.reset()
    assert seen(True) == seen(False)
