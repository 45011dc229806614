"""Accessors: the native program reaches the object that `fetch` reaches, or nothing where that finds nothing."""

import collections
import functools
import sys
import types
import weakref

import pytest
import torch
from dynacheck import _C
from dynacheck.guards import Absent, NotAbsent, TypeIs, build_program, install
from dynacheck.sources import (
    ABSENT,
    Captured,
    CAttr,
    CellContents,
    DictAttr,
    FrameGlobals,
    FrameView,
    Item,
    Key,
    KeyAt,
    Referent,
    Root,
    SlotAttr,
    TypeAttr,
    TypeOf,
)

SOME_GLOBAL = object()


class Base:
    inherited = object()


class Thing(Base):
    own = object()

    def __init__(self):
        self.attr = object()

    def method(self):
        pass


class Slotted:
    __slots__ = ("a", "unset")

    def __init__(self):
        self.a = object()


class Liar:
    """Its attributes lie; guards look at what is there."""

    def __getattribute__(self, name):
        raise AssertionError("user code ran in a guard")


class LyingList(list):
    def __getitem__(self, i):
        raise AssertionError("user code ran in a guard")


class LyingDict(dict):
    __getitem__ = get = keys = __iter__ = __contains__ = LyingList.__getitem__


def captures(value, *steps, func=lambda x: x):
    """What the native program and `fetch` find along the steps."""
    frame = FrameView(func, (value,))
    root = Root(frame)
    node = root.local("x", 0)
    for step in steps:
        node = node.child(step)
    compiled = build_program(root, None, (node,))
    native = compiled.program.captured(frame.args, frame.func)
    found = node.fetch(frame)
    assert native is not None
    return (ABSENT if native[0] is _C.NULL else native[0]), found


def with_attr(obj):
    object.__setattr__(obj, "attr", 1)
    return obj


def closure_of(n):
    return lambda: n


PARTIAL = functools.partial(print, 1, sep="")
ODICT = collections.OrderedDict(a=1, b=2)
ODICT.move_to_end("a")
TENSOR = torch.ones(2, requires_grad=True)
TENSOR.grad = torch.zeros(2)

PLACES = {
    "instance attribute": (Thing(), DictAttr("attr")),
    "no such attribute": (Thing(), DictAttr("nothing")),
    "attribute behind __getattribute__": (with_attr(Liar()), DictAttr("attr")),
    "attribute of a module": (sys.modules[__name__], DictAttr("SOME_GLOBAL")),
    "attribute of a function without a dict": (closure_of(1), DictAttr("x")),
    "instance attribute of a class": (Thing, DictAttr("own")),
    "attribute of an int": (1, DictAttr("real")),
    "type": (Thing(), TypeOf()),
    "class attribute": (Thing(), TypeOf(), TypeAttr("own")),
    "inherited": (Thing(), TypeOf(), TypeAttr("inherited")),
    "method": (Thing(), TypeOf(), TypeAttr("method")),
    "no class attribute": (Thing(), TypeOf(), TypeAttr("nothing")),
    "class attribute of no class": (Thing(), TypeAttr("own")),
    "slot": (Slotted(), SlotAttr("a")),
    "unset slot": (Slotted(), SlotAttr("unset")),
    "no slot": (Thing(), SlotAttr("own")),
    "function code": (closure_of(1), CAttr("__code__")),
    "function closure": (closure_of(1), CAttr("__closure__")),
    "function globals": (closure_of(1), CAttr("__globals__")),
    "bound self": (Thing().method, CAttr("__self__")),
    "bound function": (Thing().method, CAttr("__func__")),
    "partial": (PARTIAL, CAttr("keywords")),
    "slice": (slice(1, SOME_GLOBAL), CAttr("stop")),
    "property": (vars(type("P", (), {"p": property(len)}))["p"], CAttr("fget")),
    "property attribute of a user class": (type("P", (), {"p": property(len)})(), CAttr("p")),
    "grad": (TENSOR, CAttr("grad")),
    "no grad": (torch.ones(2), CAttr("grad")),
    "module dict": (sys.modules[__name__], CAttr("__dict__")),
    "bases": (Thing, CAttr("__bases__")),
    "cell": (closure_of(SOME_GLOBAL).__closure__[0], CellContents()),
    "empty cell": (types.CellType(), CellContents()),
    "no cell": (1, CellContents()),
    "weak reference": (weakref.ref(Thing), Referent()),
    "weak reference that died": (weakref.ref(Thing()), Referent()),
    "no weak reference": (Thing(), Referent()),
    "list item": ([1, SOME_GLOBAL], Item(1)),
    "tuple item": ((1, SOME_GLOBAL), Item(1)),
    "item of a lying list": (LyingList([SOME_GLOBAL]), Item(0)),
    "no item": ([1], Item(1)),
    "item of a dict": ({0: 1}, Item(0)),
    "key": ({"a": SOME_GLOBAL}, Key("a")),
    "key of a lying dict": (LyingDict({"a": SOME_GLOBAL}), Key("a")),
    "no key": ({"b": 1}, Key("a")),
    "key of a list": ([1], Key(0)),
    "int key": ({1: SOME_GLOBAL}, Key(True)),
    "tuple key": ({(1, 2): SOME_GLOBAL}, Key((1, 2))),
    "key at": ({"a": 1, SOME_GLOBAL: 2}, KeyAt(1)),
    "no key at": ({"a": 1}, KeyAt(1)),
    "key at of an ordered dict": (ODICT, KeyAt(1)),
    "key at of a lying dict": (LyingDict({"a": 1}), KeyAt(0)),
    "key at of a list": ([1], KeyAt(0)),
    "through nothing": (
        1,
        DictAttr("a"),
        Item(0),
        Key("x"),
        TypeOf(),
        TypeAttr("y"),
        CellContents(),
        CAttr("z"),
        KeyAt(1),
    ),
    "deep": ({"a": [(Thing(),)]}, Key("a"), Item(0), Item(0), DictAttr("attr")),
}


@pytest.mark.parametrize("name", PLACES)
def test_native_reaches_what_fetch_reaches(name):
    value, *steps = PLACES[name]
    native, fetched = captures(value, *steps)
    assert native is fetched or (type(native) is type(fetched) is tuple and native == fetched)


@pytest.mark.parametrize("name", [n for n in PLACES if n != "through nothing"])
def test_presence_of_every_place(name, shortcut, guarded):
    value, *steps = PLACES[name]

    def at(node):
        for step in steps:
            node = node.child(step)
        return node

    there = captures(value, *steps)[1] is not ABSENT
    assert guarded.passes(guarded.program(value, NotAbsent(), at=at), value) == there
    assert guarded.passes(guarded.program(value, Absent(), at=at), value) != there
    for other in (
        None,
        [],
        {},
        (),
        Thing(),
        Thing,
        1,
        with_attr(Liar()),
    ):  # any value must be looked at safely
        guarded.passes(guarded.program(value, NotAbsent(), at=at), other)


def test_what_a_frame_offers(guarded, shortcut):
    outer = object()

    def f(a, *rest, k=3, **more):
        return outer, len, SOME_GLOBAL

    args = (1, 3, (2,), {"z": 4})  # in slot order: positional, keyword-only, *, **
    frame = FrameView(f, args)
    root = Root(frame)
    cell = root.free("outer", f.__code__.co_freevars.index("outer"))
    nodes = [
        root.local("a", 0),
        root.local("k", 1),
        root.local("rest", 2),
        root.local("more", 3),
        cell,
        cell.child(CellContents()),
        root.global_("SOME_GLOBAL"),
        root.builtin("len"),
        root.module("collections"),
        root.module("collections").attr("OrderedDict"),
        root.child(FrameGlobals()),
        root.child(FrameGlobals()).key("SOME_GLOBAL"),
    ]
    for node in nodes:
        install(node, NotAbsent(), None)
    install(root.global_("no such global"), Absent(), None)
    install(root.builtin("no such builtin"), Absent(), None)
    install(root.module("no such module"), Absent(), None)
    install(root.free("x", 5), Absent(), None)
    compiled = build_program(root, None, nodes)
    for _ in range(3):
        native = compiled.program.captured(args, f)
        assert all(a is b for a, b in zip(native, [n.fetch(frame) for n in nodes]))
    assert native[4] is f.__closure__[0] and native[5] is outer and native[10] is globals()


def test_empty_argument_slots(guarded):
    compiled = guarded.program(1, Absent())
    assert guarded.passes(compiled, _C.NULL) and not guarded.passes(compiled, 1)


def test_captured_objects_are_held_weakly(guarded):
    import weakref

    thing = Thing()
    root = Root(guarded.frame(1))
    root.captured[7] = weakref.ref(thing)
    node = root.child(Captured(7))
    install(node, TypeIs(Thing), None)
    compiled = build_program(root, None, (node.attr("attr"),))
    assert guarded.passes(compiled, 1)
    assert compiled.program.captured((1,), guarded.frame(1).func) == (thing.attr,)
    del thing
    assert not compiled.program.alive and not compiled.check(guarded.frame(1))


def test_captures_keep_their_order(guarded):
    value = [1, 2, 3]
    root = Root(guarded.frame(value))
    nodes = [root.local("x", 0).item(i) for i in (2, 0, 1)]
    compiled = build_program(root, None, [*nodes, nodes[0]])
    assert compiled.program.captured((value,), guarded.frame(value).func) == (3, 1, 2, 3)
    assert compiled.program.captures == 4


def test_bad_specifications_are_refused():
    local = _C.GUARD_ACCESSORS["LOCAL"]
    for spec in (
        (1,),
        (None, (), (), 0),
        (None, ((99, (), (), (), -1),), (), 0, ()),
        (None, ((local, (0,), (), (), 3),), (), 0, ()),
        (None, ((local, (0,), ((99, (), None),), (), -1),), (), 0, ()),
        (None, ((local, (0,), ((_C.GUARD_OPS["TYPE"], (("WEAK", 1),), None),), (), -1),), (), 0, ()),
        (None, ((local, (0,), ((_C.GUARD_OPS["VALUE"], (5,), None),), (), -1),), (), 0, ()),
        (None, (5,), (), 0, ()),
        (None, (), (), 0, (1,)),
    ):
        with pytest.raises((TypeError, ValueError)):
            _C.GuardProgram(spec)
    assert _C.GuardProgram(()).check((1,), lambda x: x)
    with pytest.raises(ValueError):
        _C.GuardProgram(()).check((), lambda x: x)
