"""Namespaces of frames, classes and modules, and classes made in the frame, where torch.compile gives something else."""

import collections
import math
import sys
import types

import dynacheck
import pytest
import torch

BODIES = {
    "order of slots": "b = 4\na = x + 1\nresult = list(locals())",
    "cells come last": "b = 4\ng = lambda: b\nb = 5\nresult = list(locals()), locals()['b']",
    "one dict, or one each": "d = locals()\ny = x + 1\ne = locals()\nresult = d is e, list(d), list(e)",
    "deleted": "y = 3\nd = locals()\ndel y\nlocals()\nresult = list(d)",
    "in a comprehension": "result = [sorted(locals()) for i in range(2)]",
    "after a break": "a = 4\nprint('a')\nd = locals()\nresult = list(d), d['a']",
    "around a break": "d = locals()\nprint('a')\nz = 1\nresult = list(locals()), list(d)",
    "of a callee": "result = list(taking(x, 1)), taking(x, 1)['e']",
    "formatted": "a = 3\nresult = '{a}'.format(**locals()), '%(a)s' % vars()",
    "changed class": "Derived.z = 5\nresult = Derived.__dict__['z']",
    "class changed behind it": "d = Derived.__dict__\nDerived.z = 5\nresult = d['z']",
    "namespace can't be written": "try:\n    Base.__dict__['a'] = 1\nexcept TypeError as e:\n    result = str(e)",
    "nor deleted from": "try:\n    del Base.__dict__['a']\nexcept TypeError as e:\n    result = str(e)",
    "nor deleted from by number": "try:\n    del Base.__dict__[0]\nexcept TypeError as e:\n    result = str(e)",
    "no namespace": "try:\n    vars(3)\nexcept TypeError as e:\n    result = str(e)",
    "slots have none": "try:\n    vars(Slotted())\nexcept TypeError as e:\n    result = str(e), list(Slotted.__dict__)",
    "changed module": "world.n = 5\nresult = vars(world)['n']",
    "changed global": "global COUNT\nCOUNT = 5\nresult = here.__dict__['COUNT']",
    "module written through": "vars(world)['m'] = 4\nresult = world.m",
    "names of a module": "result = [n for n in dir(world) if n[0] != '_']",
    "made in this module": "P = collections.namedtuple('P', 'a')\nresult = P.__module__, repr(P(1)), f'{P(2)}'",
    "made in another": "P = make('P', 'a')\nresult = P.__module__, P.__qualname__, P.__doc__, P.a.__doc__",
    "bad names": "try:\n    collections.namedtuple('P', 'a def')\nexcept ValueError as e:\n    result = str(e)",
    "bad calls": "P = collections.namedtuple('P', 'a')\ntry:\n    P(1, 2)\nexcept TypeError as e:\n    result = str(e)",
    "kept over a break": "P = collections.namedtuple('P', 'a')\np = P(1)\nprint('a')\nresult = type(p) is P, p == P(1)",
    "another each time": "P = collections.namedtuple('P', 'a')\nresult = P is make('P', 'a'), P",
    "objects of one": "C = type('C', (Base,), {'k': 3})\nresult = C().m(), C().k, type(C()) is C",
    "written to": "C = type('C', (), {'k': 3})\nC.k = 5\nresult = C.k, list(C.__dict__)",
    "of a list": "C = type('C', (), {'k': [1]})\nC.k.append(2)\nresult = C.k",
    "module and name": "C = type('C', (), {})\nresult = C.__module__, C.__qualname__, repr(C), list(vars(C))",
    "bad bases": "try:\n    type('C', (bool,), {})\nexcept TypeError as e:\n    result = str(e)",
    "hook of the base": "C = type('C', (Hooked,), {})\nresult = C.made, Hooked.count",
    "raised": "E = type('E', (Exception,), {'code': 3})\ntry:\n    raise E(1)\nexcept E as e:\n    result = e.args, e.code, repr(e)",
}


class Base:
    def m(self):
        return 1


class Derived(Base):
    pass


class Slotted:
    __slots__ = ("a",)


class Hooked:
    count = 0

    def __init_subclass__(cls):
        cls.made = True
        Hooked.count += 1


def outcome(body, compiled):
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    here = types.ModuleType("namespaces_here")
    world = types.ModuleType("namespaces_world")
    world.n = 1
    exec("import collections\ndef make(*args):\n    return collections.namedtuple(*args)\n", world.__dict__)
    vars(here).update(
        Base=Base, Derived=type("Derived", (Base,), {}), Slotted=Slotted, Hooked=Hooked, here=here, world=world,
        make=world.make, collections=collections, math=math, COUNT=1,
    )  # fmt: skip
    Hooked.count = 0
    sys.modules[here.__name__], sys.modules[world.__name__] = here, world
    text = (
        f"def taking(d, e, f=2):\n    return locals()\n\ndef program(x):\n{lines}    return x + 1, result\n"
    )
    exec(text, vars(here))
    fn = dynacheck.compile(here.program, backend="eager") if compiled else here.program
    try:
        found = [fn(torch.ones(2)) for _ in range(3)]
        return [repr(f) for f in found], sorted(n for n in vars(world)), here.COUNT
    finally:
        del sys.modules[here.__name__], sys.modules[world.__name__]


@pytest.mark.parametrize("name", BODIES)
def test_body(name, engine, capsys):
    with dynacheck.observe() as report:
        seen = outcome(BODIES[name], True)
    printed = capsys.readouterr().out
    assert seen == outcome(BODIES[name], False)
    assert printed == capsys.readouterr().out
    assert report.graphs or report.skipped


def test_renamed_classes_and_functions_are_noticed(engine, seen):
    class Named:
        """first"""

    def named():
        """first"""

    def program(x):
        names = [(o.__name__, o.__qualname__, o.__module__, o.__doc__) for o in (Named, named)]
        return x * len(names[0][0] + names[1][0]), names

    compiled = dynacheck.compile(program, backend="eager")
    for attribute in (None, "__name__", "__qualname__", "__module__", "__doc__"):
        for renamed in (Named, named) if attribute else ():
            setattr(renamed, attribute, "another")
            assert repr(compiled(torch.ones(2))) == repr(program(torch.ones(2)))
        assert repr(compiled(torch.ones(2))) == repr(program(torch.ones(2)))
    assert seen.graphs and not seen.skipped
