"""`obj.__dict__` is where the attributes are: writes on either side are seen on the other, in order; names of globals too."""

import dynacheck
import pytest
import torch

BODIES = {
    "update": "o.__dict__.update(n=5)\nresult = o.n",
    "stored through the dict": "o.__dict__['new'] = x\nresult = o.new is x",
    "stored through the object": "d = o.__dict__\no.n = 7\nresult = d['n'], 'n' in d, len(d)",
    "kept view": "k = o.__dict__.keys()\no.later = 1\nresult = list(k)",
    "iterator notices": "i = iter(vars(o))\no.later = 1\ntry:\n    next(i)\nexcept RuntimeError as e:\n    result = str(e)",
    "deleted through the dict": "del o.__dict__['n']\nresult = hasattr(o, 'n'), getattr(o, 'n', 3)",
    "deleted through the object": "d = vars(o)\ndel o.n\nresult = 'n' in d, list(d)",
    "popped": "result = o.__dict__.pop('n'), o.__dict__.pop('n', 4), hasattr(o, 'n')",
    "cleared": "o.__dict__.clear()\no.z = 1\nresult = list(vars(o))",
    "order kept": "o.n = 5\nresult = list(vars(o)), list(vars(o).values())",
    "order after del": "del o.n\no.n = 5\nresult = list(vars(o))",
    "del twice": "del o.n\no.n = 5\ndel o.n\no.m = 1\no.n = 2\nresult = list(vars(o))",
    "the same dict": "result = o.__dict__ is o.__dict__, vars(o) is o.__dict__",
    "escaping": "d = o.__dict__\no.n = 8\nresult = [d]",
    "new object": "o = C()\nd = o.__dict__\nd['q'] = 1\no.n += 1\nresult = d, o.q, o.n, list(d)",
    "past a property": "o.__dict__['p'] = 3\nresult = o.p, vars(o)['p']",
    "property that caches": "result = o.lazy, o.lazy, o.__dict__['lazy']",
    "copied": "d = dict(vars(o))\no.n = 9\nresult = d",
    "merged": "result = {**o.__dict__, 'n': 4}, o.__dict__ | {'m': 1}",
    "two names": "q = o\nq.__dict__['n'] = 6\nresult = o.n",
    "alias read after break": "d = o.__dict__\nd['n'] = 2\nprint('p')\nd['n'] += 1\nresult = o.n, d is o.__dict__",
    "slots": "s = S()\ns.a = 1\ndel s.a\nresult = hasattr(s, 'a')\ns.a = 4\nresult = result, s.a",
    "slot of an argument": "del t.a\nresult = hasattr(t, 'a')\nt.a = 5",
    "global order": "global G\ndel G\nG = 5\nresult = [k for k in list(globals()) if k in 'GH']",
}


class C:
    def __init__(self):
        self.n = 1
        self.items = [1]

    p = property(lambda self: self.n * 2)

    @property
    def lazy(self):
        if "lazy" not in self.__dict__:
            self.__dict__["lazy"] = [self.n]
        return self.__dict__["lazy"]


class S:
    __slots__ = ("a",)


@pytest.mark.parametrize("name", BODIES)
def test_body(name):
    lines = BODIES[name].splitlines()
    lines = [*(line for line in lines if line.startswith("global")), "y = x + 1"] + [
        line for line in lines if not line.startswith("global")
    ]
    text = "def program(x, o, t):\n" + "".join(f"    {line}\n" for line in lines) + "    return y, result\n"

    def seen(compiled):
        scope = {"C": C, "S": S, "G": 1, "H": 2}
        exec(text, scope)
        fn = dynacheck.compile(scope["program"], backend="eager") if compiled else scope["program"]
        found = []
        for _ in range(2):
            o, t = C(), S()
            t.a = 1
            result = fn(torch.ones(2), o, t)[1]
            state = [(k, v if k != "new" else None) for k, v in vars(o).items()]
            found.append((result, state, getattr(t, "a", None), [k for k in scope if k in "GH"]))
        return found

    dynacheck.reset()
    with dynacheck.observe() as report:
        ours = seen(True)
    assert ours == seen(False)
    assert report.graphs or name in ("global order",)


class Own(dict):
    """Its attributes are its items."""

    def __init__(self, **items):
        super().__init__(**items)
        self.__dict__ = self


OWN = {
    "stored as an attribute": "g.q = 4\nresult = g['q'], list(g)",
    "stored as an item": "g['z'] = 5\nresult = g.z, list(g)",
    "changed": "g.n = 7\nresult = g.n, g['n'], g.get('n')",
    "deleted": "del g.n\nresult = len(g), 'n' in g, hasattr(g, 'n')",
    "missing": "result = hasattr(g, 'q'), getattr(g, 'q', 3), g.get('q')",
    "its dict": "result = vars(g) is g, g.__dict__ is g",
    "updated": "g.update(n=9)\nresult = g.n",
    "popped": "result = g.pop('n'), hasattr(g, 'n')",
}


@pytest.mark.parametrize("name", OWN)
def test_objects_that_are_their_own_dict(name):
    lines = "".join(f"    {line}\n" for line in OWN[name].splitlines())
    scope = {}
    exec(f"def f(x, g):\n{lines}    return x + 1, result", scope)

    def ran(fn):
        found = []
        for items in ({"n": 2}, {"n": 3}):
            g = Own(**items)
            y, result = fn(torch.ones(2), g)
            found.append((y.tolist(), result, dict(g), g.__dict__ is g))
        return found

    with dynacheck.observe() as report:
        assert ran(dynacheck.compile(scope["f"], backend="eager", fullgraph=True)) == ran(scope["f"])
    assert report.graphs


def test_one_with_a_dict_beside_it_is_another():
    def f(x, g):
        g.n = 5
        return x + g["n"]

    compiled = dynacheck.compile(f, backend="eager")
    assert compiled(torch.zeros(1), Own(n=2)).item() == 5
    other = Own(n=2)
    other.__dict__ = {"n": 1}
    assert compiled(torch.zeros(1), other).item() == 2
    assert other.__dict__ == {"n": 5} and dict(other) == {"n": 2}
