"""The shortcut over unchanged state against the full walk, on plain objects: dict versions or watchers of this Python."""

import collections
import gc
import types
import weakref

import pytest
from dynacheck import _C

OPS, ACC = _C.GUARD_OPS, _C.GUARD_ACCESSORS


def value(expected):
    return OPS["VALUE"], (("CONST", expected),), None


def type_is(cls):
    return OPS["TYPE"], (("WEAK", cls),), None


def is_(obj):
    return OPS["IS"], (("WEAK", obj),), None


ABSENT = (OPS["ABSENT"], (), None)


def length(n):
    return OPS["LENGTH"], (n,), None


def keys(*names):
    return OPS["KEYS"], (tuple(("CONST", n) for n in names),), None


def node(accessor, operand, *checks, kids=(), slot=-1):
    operands = () if operand is None else (operand,)
    return ACC[accessor], operands, checks, tuple(kids), slot


class Thing:
    factor = 2

    def __init__(self):
        self.number = 1
        self.child = Child()
        self.table = {"a": 1, "b": [1, 2]}
        self.items = [Child(), 5]
        self.pair = (1, Child())
        self.cell = types.CellType(3)


class Child:
    def __init__(self):
        self.name = "child"
        self.other = 0

    def method(self):
        return 1


class Other(Thing):
    pass


def program():
    def child(accessor, operand, slot=-1):
        name = node("DICTATTR", "name", value("child"))
        return node(
            accessor, operand, type_is(Child), kids=[name, node("DICTATTR", "missing", ABSENT)], slot=slot
        )

    table = [node("KEY", "a", value(1)), node("KEY", "b", length(2), kids=[node("ITEM", 1, value(2))])]
    attributes = [
        node("DICTATTR", "number", value(1)),
        child("DICTATTR", "child", 0),
        node("DICTATTR", "table", keys("a", "b"), kids=table),
        node("DICTATTR", "items", length(2), kids=[child("ITEM", 0, 1), node("ITEM", 1, value(5))]),
        node("DICTATTR", "pair", length(2), kids=[child("ITEM", 1)]),
        node("DICTATTR", "cell", kids=[node("CELL", None, value(3))]),
        node("TYPEOF", None, is_(Thing), kids=[node("TYPEATTR", "factor", value(2))]),
    ]
    top = node("LOCAL", 0, type_is(Thing), kids=attributes)
    code = ("WEAK", Child.method.__code__)
    cls = node("PINNED", ("WEAK", Child), kids=[node("TYPEATTR", "method", (OPS["CODE"], (code,), None))])
    return _C.GuardProgram((None, (top, cls), (), 2, (0, 1)))


def f(x):
    return x


def store_number(thing, number):
    """An attribute store that the interpreter specialises."""
    thing.number = number


MUTATIONS = {
    "nothing": (lambda t: None, True),
    "attribute": (lambda t: setattr(t, "number", 2), False),
    "attribute to its equal": (lambda t: setattr(t, "number", int("1")), True),
    "specialised store": (lambda t: [store_number(t, i) for i in range(100)], False),
    "attribute deleted": (lambda t: delattr(t, "number"), False),
    "unrelated attribute": (lambda t: setattr(t, "unrelated", 1), True),
    "attribute through the dict": (lambda t: t.__dict__.__setitem__("number", 2), False),
    "dict updated": (lambda t: t.__dict__.update(number=3), False),
    "dict replaced": (lambda t: setattr(t, "__dict__", {}), False),
    "dict replaced by its equal": (lambda t: setattr(t, "__dict__", dict(t.__dict__)), True),
    "dict deleted": (lambda t: delattr(t, "__dict__"), False),
    "class": (lambda t: setattr(t, "__class__", Other), False),
    "attribute of a child": (lambda t: setattr(t.child, "name", "x"), False),
    "attribute appears on a child": (lambda t: setattr(t.child, "missing", 1), False),
    "unrelated attribute of a child": (lambda t: setattr(t.child, "other", 5), True),
    "equal child": (lambda t: setattr(t, "child", Child()), True),
    "key": (lambda t: t.table.__setitem__("a", 2), False),
    "key deleted": (lambda t: t.table.pop("a"), False),
    "key order": (lambda t: t.table.__setitem__("a", t.table.pop("a")), False),
    "table cleared": (lambda t: t.table.clear(), False),
    "nested list": (lambda t: t.table["b"].__setitem__(1, 3), False),
    "list item": (lambda t: t.items.__setitem__(1, 6), False),
    "list longer": (lambda t: t.items.append(1), False),
    "list replaced by its equal": (lambda t: setattr(t, "items", [Child(), 5]), True),
    "child in a list": (lambda t: setattr(t.items[0], "name", "x"), False),
    "child in a tuple": (lambda t: setattr(t.pair[1], "name", "x"), False),
    "tuple replaced": (lambda t: setattr(t, "pair", (1, Child())), True),
    "cell": (lambda t: setattr(t.cell, "cell_contents", 4), False),
    "class attribute": (lambda t: setattr(Thing, "factor", 3), False),
    "class attribute of a base": (lambda t: setattr(Child, "unrelated", 3), True),
    "method": (lambda t: setattr(Child, "method", lambda self: 2), False),
    "code": (lambda t: setattr(Child.method, "__code__", (lambda self: 3).__code__), False),
}


@pytest.fixture(autouse=True)
def same_classes():
    method, code = Child.method, Child.method.__code__
    yield
    method.__code__ = code
    Child.method, Thing.factor = method, 2
    if hasattr(Child, "unrelated"):
        del Child.unrelated
    _C.force("shortcut", 1)


def walked(p, thing):
    _C.force("shortcut", 0)
    verdict = p.check((thing,), f)
    _C.force("shortcut", 1)
    return verdict


@pytest.mark.parametrize("calls", [1, 5])
@pytest.mark.parametrize("name", MUTATIONS)
def test_after_a_mutation(name, calls):
    mutate, holds = MUTATIONS[name]
    thing, p = Thing(), program()
    for i in range(calls):
        assert p.check((thing,), f)
    mutate(thing)
    for _ in range(3):
        assert p.check((thing,), f) == walked(p, thing) == holds
        captured = p.captured((thing,), f)
        assert (captured is not None) == holds
        if holds:
            assert captured == (thing.child, thing.items[0])


def test_mutations_in_pairs():
    for first in MUTATIONS:
        for second in MUTATIONS:
            if {"class attribute", "method", "code", "class attribute of a base"} & {first, second}:
                continue
            thing, p = Thing(), program()
            for name in (first, second):
                assert p.check((thing,), f) == walked(p, thing)
                try:
                    MUTATIONS[name][0](thing)
                except (AttributeError, KeyError):
                    pass
                assert p.check((thing,), f) == walked(p, thing) == p.check((thing,), f)


def test_the_shortcut_is_used():
    thing, p = Thing(), program()
    for _ in range(10):
        assert p.check((thing,), f)
    assert p.stats()["hits"] in (0, 9)  # one group with enough nodes; none where dicts can't be followed
    for i in range(10):
        thing.unrelated = i
        assert p.check((thing,), f)
    assert p.stats()["walks"] == (1 if p.stats()["hits"] else 0) or p.stats()["hits"] == 0


def test_things_come_and_go():
    p = program()
    for i in range(500):
        thing = Thing()
        if i % 3 == 0:
            thing.child.name = "x"
        for _ in range(2):
            assert p.check((thing,), f) == (i % 3 != 0)
        ref = weakref.ref(thing.child)
        del thing
        assert ref() is None


def test_many_programs_watch_one_dict():
    thing = Thing()
    programs = [program() for _ in range(20)]
    for p in programs:
        assert p.check((thing,), f) and p.check((thing,), f)
    thing.number = 2
    assert not any(p.check((thing,), f) for p in programs)
    thing.number = 1
    del programs[::2]
    gc.collect()
    assert all(p.check((thing,), f) for p in programs)
    thing.child.name = "x"
    assert not any(p.check((thing,), f) for p in programs)


def test_many_dicts_are_watched():
    p = program()
    things = [Thing() for _ in range(400)]
    for thing in things:
        assert p.check((thing,), f)
    programs = [program() for _ in things]
    for p, thing in zip(programs, things):
        assert p.check((thing,), f) and p.check((thing,), f)
    for i, (p, thing) in enumerate(zip(programs, things)):
        if i % 2:
            thing.number = 5
    assert [p.check((t,), f) for p, t in zip(programs, things)] == [i % 2 == 0 for i in range(400)]
    things = things[::2]
    gc.collect()
    for p, thing in zip(programs[::2], things):
        assert p.check((thing,), f)


def test_globals():
    namespace = {"number": 1, "table": {"a": 1}, "f": None}
    exec("def f(x): return number, table", namespace)
    g = namespace["f"]
    nodes = (
        node("GLOBAL", "number", value(1)),
        node("GLOBAL", "table", keys("a"), kids=[node("KEY", "a", value(1))]),
        node("GLOBAL", "len", ABSENT),
        node("BUILTIN", "len", is_(len)),
    )
    p = _C.GuardProgram((None, nodes, (), 0, ()))
    for _ in range(3):
        assert p.check((1,), g)
    for name, new in (("number", 2), ("len", 3), ("table", {"a": 2})):
        had = namespace.get(name, MUTATIONS)
        namespace[name] = new
        assert not p.check((1,), g) and not p.check((1,), g)
        if had is MUTATIONS:
            del namespace[name]
        else:
            namespace[name] = had
        assert p.check((1,), g) and p.check((1,), g)
    namespace["table"]["a"] = 3
    assert not p.check((1,), g)
    namespace["table"]["a"] = 1
    namespace["step"] = 5
    assert p.check((1,), g)


def test_ordered_dicts():
    d = collections.OrderedDict(a=1, b=2, c=3, d=4)
    nodes = (
        node("LOCAL", 0, keys("a", "b", "c", "d"), kids=[node("KEY", k, value(v)) for k, v in d.items()]),
    )
    p = _C.GuardProgram((None, nodes, (), 0, ()))
    assert p.check((d,), f) and p.check((d,), f)
    d.move_to_end("a")
    assert not p.check((d,), f) and not walked(p, d)
