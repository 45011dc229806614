"""The shortcut over unchanged state decides what the full walk decides, whatever is changed in between."""

import collections
import gc
import os
import types
import weakref

import pytest
import torch
from dynacheck import _C
from dynacheck.guards import (
    Absent,
    CodeIs,
    HasKey,
    Is,
    KeysAre,
    LengthIs,
    NotAbsent,
    PyCheck,
    SetIs,
    TensorMatch,
    TypeIs,
    ValueIs,
    build_program,
    install,
    mirror,
)
from dynacheck.sources import CAttr, CellContents, FrameView, KeyAt, Root, SlotAttr
from torch import nn


class Net(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.seq = nn.Sequential(*[nn.Linear(4, 4, bias=False) for _ in range(n)])
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x):
        return self.seq(x) * self.scale


class Linear2(nn.Linear):
    pass


def other_forward(self, x):
    return x


def weight(m):
    return m.seq[0].weight


def no_grad(fn):
    with torch.no_grad():
        fn()


def replaced_class(m, name, value):
    """Patches nn.Linear; undone by the test."""
    setattr(nn.Linear, name, value)


X = torch.randn(2, 4)

# mutation, and whether the guards still hold after it
MUTATIONS = {
    "nothing": (lambda m: None, True),
    "requires_grad_(False)": (lambda m: weight(m).requires_grad_(False), False),
    "data of the same shape": (lambda m: setattr(weight(m), "data", torch.randn(4, 4)), True),
    "data transposed": (lambda m: setattr(weight(m), "data", torch.randn(4, 4).t()), False),
    "data float64": (lambda m: setattr(weight(m), "data", weight(m).data.double()), False),
    "data of another shape": (lambda m: setattr(weight(m), "data", torch.randn(5, 4)), False),
    "data with 6 dimensions": (lambda m: setattr(weight(m), "data", torch.randn(1, 1, 1, 1, 4, 4)), False),
    "t_ without grad": (lambda m: no_grad(weight(m).t_), False),
    "resize_ without grad": (lambda m: no_grad(lambda: weight(m).data.resize_(2, 8)), True),
    "to meta": (lambda m: m.to(device="meta"), False),
    "new parameter of the same shape": (
        lambda m: setattr(m.seq[0], "weight", nn.Parameter(torch.randn(4, 4))),
        True,
    ),
    "new parameter of another shape": (
        lambda m: m.seq[0]._parameters.__setitem__("weight", nn.Parameter(torch.randn(4, 5))),
        False,
    ),
    "bias appears": (lambda m: setattr(m.seq[0], "bias", nn.Parameter(torch.randn(4))), False),
    "forward on the instance": (lambda m: setattr(m.seq[0], "forward", 1), False),
    "forward in the instance dict": (lambda m: m.seq[0].__dict__.__setitem__("forward", 1), False),
    "__class__": (lambda m: setattr(m.seq[0], "__class__", Linear2), False),
    "another Linear": (lambda m: m.seq.__setitem__(0, nn.Linear(4, 4, bias=False)), True),
    "a Linear of another size": (lambda m: m.seq.__setitem__(0, nn.Linear(4, 5, bias=False)), False),
    "append": (lambda m: m.seq.append(nn.Linear(4, 4, bias=False)), False),
    "_modules replaced": (lambda m: m.seq.__dict__.__setitem__("_modules", {}), False),
    "_modules replaced by its equal": (
        lambda m: m.seq.__dict__.__setitem__("_modules", dict(m.seq._modules)),
        True,
    ),
    "_parameters replaced": (lambda m: m.seq[0].__dict__.__setitem__("_parameters", {}), False),
    "__dict__ replaced": (lambda m: setattr(m.seq[0], "__dict__", {}), False),
    "__dict__ replaced by its equal": (
        lambda m: setattr(m.seq[0], "__dict__", dict(m.seq[0].__dict__)),
        True,
    ),
    "a gradient appears": (lambda m: m(X).sum().backward(), True),
    "a value changes in place": (lambda m: no_grad(lambda: weight(m).add_(1)), True),
    "the weight stops being a leaf": (
        lambda m: (weight(m).requires_grad_(False), weight(m).mul_(torch.ones(4, 4, requires_grad=True))),
        True,
    ),
    "another class of weight": (
        lambda m: setattr(weight(m), "__class__", type("P2", (nn.Parameter,), {})),
        False,
    ),
    "share_memory": (lambda m: m.share_memory(), True),
    "half": (lambda m: m.half(), False),
    "an unrelated attribute": (lambda m: setattr(m.seq[0], "zzz", 1), True),
    "an unrelated attribute, often": (lambda m: [setattr(m, "step", i) for i in range(1000)], True),
    "no weight": (lambda m: delattr(m.seq[0], "weight"), False),
    "eval": (lambda m: m.eval(), False),
    "training in the dict of a child": (lambda m: m.seq[1].__dict__.__setitem__("training", False), False),
    "train again": (lambda m: (m.eval(), m.train()), True),
    "forward hook": (lambda m: m.seq[0].register_forward_hook(print), False),
    "forward hook and back": (lambda m: m.seq[0].register_forward_hook(print).remove(), True),
    "forward pre hook": (lambda m: m.register_forward_pre_hook(print), False),
    "buffer": (lambda m: setattr(m, "scale", torch.ones(4)), True),
    "buffer of another size": (lambda m: setattr(m, "scale", torch.ones(1)), False),
    "buffer in place": (lambda m: m.scale.add_(1), True),
    "buffer resized": (lambda m: m.scale.resize_(8), False),
    "dynamic mark": (lambda m: torch._dynamo.mark_dynamic(weight(m), 0), False),
    "two weights become one": (lambda m: setattr(m.seq[1], "weight", weight(m)), False),
    "an argument becomes a weight": (lambda m: m._buffers.__setitem__("scale", m.seq[1].weight), False),
    "Linear.forward patched": (lambda m: replaced_class(m, "forward", other_forward), False),
    "Linear.forward's code": (
        lambda m: setattr(nn.Linear.forward, "__code__", other_forward.__code__),
        False,
    ),
    "an unrelated class attribute": (lambda m: replaced_class(m, "unrelated", 1), True),
}


@pytest.fixture
def linear():
    forward, code = nn.Linear.forward, nn.Linear.forward.__code__
    yield
    forward.__code__ = code
    nn.Linear.forward = forward
    if "unrelated" in vars(nn.Linear):
        del nn.Linear.unrelated


@pytest.mark.parametrize("name", MUTATIONS)
@pytest.mark.parametrize("calls", [1, 4])
@pytest.mark.parametrize("tagged", [False, True], ids=["", "tensors with attributes"])
def test_after_a_mutation(name, calls, tagged, shortcut, modules, linear):
    mutate, holds = MUTATIONS[name]
    m = Net()
    if tagged:
        for tensor in (*m.parameters(), *m.buffers()):
            tensor.tag = name
    compiled, frame = modules.program(m, X), modules.frame(m, X)
    for _ in range(calls):
        assert mirror(compiled, frame)
    if shortcut == "shortcut":
        assert compiled.program.stats()["hits"] == 2 * (
            calls - 1
        )  # the module's, and what all read of classes
    mutate(m)
    for _ in range(3):
        assert mirror(compiled, frame) == holds
        captured = compiled.program.captured(frame.args, frame.func)
        assert (captured is not None) == holds
        if holds:
            assert all(a is b.fetch(frame) for a, b in zip(captured, compiled.capture))


def test_attributes_of_a_weight_that_change_all_the_time(modules, shortcut):
    m = Net()
    compiled, frame = modules.program(m, X), modules.frame(m, X)
    for i in range(10):
        weight(m).step = i
        assert mirror(compiled, frame)
    torch._dynamo.mark_static(weight(m), 1)
    assert not mirror(compiled, frame)
    del weight(m)._dynamo_static_indices
    for _ in range(3):
        assert mirror(compiled, frame)
    weight(m).__dict__ = {"_dynamo_dynamic_indices": {0}}
    assert not mirror(compiled, frame)


def test_a_container_without_a_type_guard_becomes_one_that_has_no_version(modules, shortcut):
    box = Box(hooks={})
    frame = FrameView(lambda x: x, (box,))
    root = Root(frame)
    hooks = root.local("x", 0).attr("hooks")
    for place in (hooks, root.local("x", 0).attr("a"), root.local("x", 0).attr("b")):
        install(place, LengthIs(0) if place is hooks else Absent(), None)
    compiled = build_program(root, None)
    for _ in range(3):
        assert mirror(compiled, frame)
    box.hooks = []
    for _ in range(3):
        assert mirror(compiled, frame)
    box.hooks.append(1)
    assert not mirror(compiled, frame)


@pytest.mark.parametrize(
    "first", ["eval", "requires_grad_(False)", "half", "new parameter of the same shape", "__dict__ replaced"]
)
def test_mutations_one_after_another(first, shortcut, modules, linear):
    for second in MUTATIONS:
        m = Net()
        compiled, frame = modules.program(m, X), modules.frame(m, X)
        for name in (first, second, "nothing", second):
            for _ in range(2):
                mirror(compiled, frame)
            try:
                MUTATIONS[name][0](m)
            except (AttributeError, KeyError, RuntimeError, TypeError):
                pass
            mirror(compiled, frame)
        nn.Linear.forward.__code__  # noqa: B018
        reset_linear()


FORWARD, CODE = nn.Linear.forward, nn.Linear.forward.__code__


def reset_linear():
    FORWARD.__code__ = CODE
    nn.Linear.forward = FORWARD


def test_many_instances_share_a_program(modules, shortcut):
    nets = [Net() for _ in range(12)]
    compiled = modules.program(nets[0], X)
    for _ in range(3):
        for net in nets:
            assert mirror(compiled, modules.frame(net, X))
    nets[5].eval()
    assert [mirror(compiled, modules.frame(net, X)) for net in nets] == [i != 5 for i in range(12)]


def test_fresh_instances_do_not_stop_the_shortcut_for_good(modules):
    compiled = modules.program(Net(), X)
    for _ in range(300):
        assert mirror(compiled, modules.frame(Net(), X))
    net = Net()
    for _ in range(5000):
        assert compiled.check(modules.frame(net, X))
    hits = compiled.program.stats()["hits"]
    compiled.check(modules.frame(net, X))
    assert compiled.program.stats()["hits"] == hits + 2


def test_a_reused_address_never_passes(modules):
    """Models come and go at the same addresses; a recorded one must not stand for a new one."""
    net = Net(1)
    compiled = modules.program(net, X)
    del net
    seen = set()
    repeats = 0
    for i in range(300):
        net = Net(1)
        if i % 2:
            net.seq[0].eval()
        repeats += id(net) in seen
        seen.add(id(net))
        for _ in range(2):
            assert compiled.check(modules.frame(net, X)) == (i % 2 == 0)
        del net
    assert repeats > 50 or "PYTHONMALLOC" in os.environ  # a debugging allocator reuses nothing soon


def test_models_are_not_kept(modules):
    for _ in range(5):
        net = Net()
        compiled = modules.program(net, X)
        for _ in range(4):
            assert mirror(compiled, modules.frame(net, X))
        refs = [weakref.ref(net), weakref.ref(net.seq[0]), weakref.ref(weight(net))]
        del net
        gc.collect()
        assert [ref() for ref in refs] == [None] * 3
        assert compiled.program.alive


class Box:
    def __init__(self, **values):
        self.__dict__.update(values)


class Slotted:
    __slots__ = ("value",)


def structure():
    """One of each way to keep a value."""
    slotted = Slotted()
    slotted.value = 1.5

    def f(a, b=3):
        return slotted

    return Box(
        items=[1, "a", Box(x=1)],
        pair=(1, Box(y=[1, 2])),
        table={"k": {"inner": 2}, 3: Box(z=1)},
        ordered=collections.OrderedDict(a=1, b=2),
        slotted=slotted,
        function=f,
        cell=types.CellType(5),
        chosen={1, 2},
        queue=collections.deque([1, 2]),
        nothing=None,
        tensors=[torch.ones(2), torch.ones(3)],
        cls=Box,
    )


def guard_structure(box):
    frame = FrameView(lambda x: x, (box,))
    root = Root(frame)
    node = root.local("x", 0)
    at = {
        node: [TypeIs(Box)],
        node.attr("items"): [TypeIs(list), LengthIs(3)],
        node.attr("items").item(0): [ValueIs(1)],
        node.attr("items").item(1): [ValueIs("a")],
        node.attr("items").item(2): [TypeIs(Box)],
        node.attr("items").item(2).attr("x"): [ValueIs(1)],
        node.attr("pair"): [TypeIs(tuple), LengthIs(2)],
        node.attr("pair").item(0): [ValueIs(1)],
        node.attr("pair").item(1).attr("y").item(1): [ValueIs(2)],
        node.attr("table"): [KeysAre(["k", 3])],
        node.attr("table").key("k"): [HasKey("inner"), HasKey("outer", False)],
        node.attr("table").key("k").key("inner"): [ValueIs(2)],
        node.attr("table").key(3).attr("z"): [ValueIs(1)],
        node.attr("ordered"): [KeysAre(["a", "b"])],
        node.attr("ordered").child(KeyAt(0)): [ValueIs("a")],
        node.attr("slotted").child(SlotAttr("value")): [ValueIs(1.5)],
        node.attr("function"): [CodeIs(box.function)],
        node.attr("function").child(CAttr("__defaults__")).item(0): [ValueIs(3)],
        node.attr("function")
        .child(CAttr("__closure__"))
        .item(0)
        .child(CellContents())
        .child(SlotAttr("value")): [ValueIs(1.5)],
        node.attr("cell").child(CellContents()): [ValueIs(5)],
        node.attr("chosen"): [SetIs({1, 2})],
        node.attr("queue"): [LengthIs(2)],
        node.attr("nothing"): [ValueIs(None)],
        node.attr("missing"): [Absent()],
        node.attr("tensors"): [LengthIs(2)],
        node.attr("tensors").item(0): [TensorMatch.of(box.tensors[0])],
        node.attr("cls"): [Is(Box)],
        node.class_attr("__init__"): [CodeIs(Box.__init__)],
        node.attr("pair").item(1): [NotAbsent()],
    }
    for place, guards in at.items():
        for guard in guards:
            install(place, guard, None)
    capture = [
        node.attr("items").item(2),
        node.attr("tensors").item(0),
        node.attr("slotted").child(SlotAttr("value")),
        node.attr("table").key("k").key("inner"),
        node.attr("pair").item(1).attr("y"),
    ]
    return build_program(root, None, capture), frame


def set_slot(box, value):
    box.slotted.value = value


STRUCTURE_MUTATIONS = {
    "list item": lambda b: b.items.__setitem__(0, 2),
    "equal list item": lambda b: b.items.__setitem__(1, "".join(["a"])),
    "list item to another type": lambda b: b.items.__setitem__(2, Slotted()),
    "list item to its equal": lambda b: b.items.__setitem__(2, Box(x=1)),
    "attribute of a list item": lambda b: setattr(b.items[2], "x", 2),
    "list shorter": lambda b: b.items.pop(),
    "list longer": lambda b: b.items.append(1),
    "list replaced by its equal": lambda b: setattr(b, "items", [1, "a", Box(x=1)]),
    "list below a tuple": lambda b: b.pair[1].y.__setitem__(1, 3),
    "tuple replaced by its equal": lambda b: setattr(b, "pair", (1, Box(y=[1, 2]))),
    "tuple replaced": lambda b: setattr(b, "pair", (2, Box(y=[1, 2]))),
    "nested key": lambda b: b.table["k"].__setitem__("inner", 3),
    "nested equal key": lambda b: b.table["k"].__setitem__("inner", int("2")),
    "another nested key": lambda b: b.table["k"].__setitem__("outer", 3),
    "key order": lambda b: b.table.__setitem__("k", b.table.pop("k")),
    "dict cleared": lambda b: b.table.clear(),
    "dict updated in place": lambda b: b.table.update({"k": {"inner": 2}}),
    "order": lambda b: b.ordered.move_to_end("a"),
    "slot": lambda b: set_slot(b, 2.5),
    "slot deleted": lambda b: delattr(b.slotted, "value"),
    "function": lambda b: setattr(b, "function", len),
    "code": lambda b: setattr(b.function, "__code__", (lambda s: lambda a, b=3: (s, 1))(1).__code__),
    "defaults": lambda b: setattr(b.function, "__defaults__", (4,)),
    "closure": lambda b: setattr(b.function.__closure__[0], "cell_contents", Slotted()),
    "cell": lambda b: setattr(b.cell, "cell_contents", 6),
    "cell emptied": lambda b: delattr(b.cell, "cell_contents"),
    "set": lambda b: b.chosen.add(3),
    "queue": lambda b: b.queue.append(1),
    "attribute appears": lambda b: setattr(b, "missing", 1),
    "unrelated attribute": lambda b: setattr(b, "unrelated", 1),
    "None": lambda b: setattr(b, "nothing", 0),
    "tensor in a list": lambda b: b.tensors.__setitem__(0, torch.ones(5)),
    "equal tensor in a list": lambda b: b.tensors.__setitem__(0, torch.zeros(2)),
    "tensor resized": lambda b: b.tensors[0].resize_(5),
    "class attribute": lambda b: setattr(b, "cls", Slotted),
    "type": lambda b: setattr(b, "__class__", type("Other", (Box,), {})),
    "type of a list item": lambda b: setattr(b.items[2], "__class__", type("Other", (Box,), {})),
}


@pytest.mark.parametrize("name", STRUCTURE_MUTATIONS)
def test_structures(name, shortcut):
    box = structure()
    compiled, frame = guard_structure(box)
    for _ in range(3):
        assert mirror(compiled, frame)
    if shortcut == "shortcut":
        assert compiled.program.stats()["hits"] > 0
    STRUCTURE_MUTATIONS[name](box)
    for _ in range(3):
        verdict = mirror(compiled, frame)
        captured = compiled.program.captured(frame.args, frame.func)
        assert (captured is not None) == verdict
        if verdict:
            assert all(a is b.fetch(frame) or a == b.fetch(frame) for a, b in zip(captured, compiled.capture))


def test_python_checks_below_a_shortcut_run_every_time():
    calls = []

    def look(value):
        calls.append(value)
        return value < 5

    box = Box(a=Box(n=1), b=1, c=2)
    root = Root(FrameView(lambda x: x, (box,)))
    node = root.local("x", 0)
    install(node.attr("a").attr("n"), PyCheck(look, (), ""), None)
    for name in "bc":
        install(node.attr(name), NotAbsent(), None)
    compiled, frame = build_program(root, None), FrameView(lambda x: x, (box,))
    assert [compiled.check(frame) for _ in range(3)] == [True] * 3 and len(calls) == 3
    box.a.n = 7
    assert not compiled.check(frame) and calls[-1] == 7


def test_a_counter_beside_guarded_attributes_keeps_the_shortcut(modules):
    net = Net()
    compiled, frame = modules.program(net, X), modules.frame(net, X)
    for i in range(100):
        net.step = i
        assert mirror(compiled, frame)
    stats = compiled.program.stats()
    assert stats["walks"] == 2 and stats["repairs"] >= 98


GLOBAL_NUMBER = 1


def test_globals_and_modules(shortcut):
    import math

    def f():
        return GLOBAL_NUMBER, len, math.pi

    frame = FrameView(f, ())
    root = Root(frame)
    install(root.global_("GLOBAL_NUMBER"), ValueIs(1), None)
    install(root.global_("len"), Absent(), None)
    install(root.builtin("len"), Is(len), None)
    install(root.global_("torch"), Is(torch), None)
    install(root.global_("torch").attr("float32"), ValueIs(torch.float32), None)
    install(root.module("math").attr("pi"), ValueIs(math.pi), None)
    compiled = build_program(root, None)
    for _ in range(3):
        assert mirror(compiled, frame)
    namespace = globals()
    for name, value in (("GLOBAL_NUMBER", 2), ("len", max), ("torch", math)):
        had = namespace.get(name)
        namespace[name] = value
        assert not mirror(compiled, frame) and not mirror(compiled, frame)
        if had is None:
            del namespace[name]
        else:
            namespace[name] = had
        assert mirror(compiled, frame)
    namespace["an unrelated global"] = 1
    assert mirror(compiled, frame)
    math.pi, pi = 3, math.pi
    assert not mirror(compiled, frame)
    math.pi = pi
    assert mirror(compiled, frame)
    other = types.FunctionType(
        f.__code__,
        {"GLOBAL_NUMBER": 1, "torch": torch, "__builtins__": __builtins__},
        "g",
        None,
        f.__closure__,
    )
    assert mirror(compiled, FrameView(other, ())) and mirror(compiled, frame)


def test_free_variables(shortcut):
    def make(n):
        box = Box(a=n, b=Box(c=n), d=1, e=2)
        return (lambda: box), box

    f, box = make(1)
    frame = FrameView(f, ())
    root = Root(frame)
    node = root.free("box", 0).child(CellContents())
    install(node, TypeIs(Box), None)
    for place, value in (
        (node.attr("a"), 1),
        (node.attr("b").attr("c"), 1),
        (node.attr("d"), 1),
        (node.attr("e"), 2),
    ):
        install(place, ValueIs(value), None)
    compiled = build_program(root, None)
    for _ in range(3):
        assert mirror(compiled, frame)
    g, other = make(2)
    assert not mirror(compiled, FrameView(g, ()))
    h, third = make(1)
    assert mirror(compiled, FrameView(h, ())) and mirror(compiled, frame)
    box.b.c = 5
    assert not mirror(compiled, frame) and mirror(compiled, FrameView(h, ()))
    box.b = Box(c=1)
    assert mirror(compiled, frame)
    f.__closure__[0].cell_contents = third
    assert mirror(compiled, frame)
    third.d = 9
    assert not mirror(compiled, frame)


def test_the_shortcut_can_be_forced_off():
    _C.force("shortcut", 0)
    try:
        box = structure()
        compiled, frame = guard_structure(box)
        for _ in range(3):
            assert mirror(compiled, frame)
        assert compiled.program.stats()["hits"] == 0
    finally:
        _C.force("shortcut", 1)
