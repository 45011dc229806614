"""Explanations of misses: every failing guard, then and now, the nearest entry first."""

import pytest
import torch
from dynacheck import _C
from dynacheck.guards import (
    AmbientState,
    Distinct,
    EntryFailure,
    Is,
    LengthIs,
    Same,
    SizeExpression,
    TensorMatch,
    TypeIs,
    ValueIs,
    build_program,
    explain_miss,
    install,
    relate,
)
from dynacheck.sources import FrameView, Root, UserLine

LINE = UserLine("model.py", 44, "forward", "x = x * self.scale")
OTHER = UserLine("model.py", 45, "forward")


class Model:
    def __init__(self, **values):
        self.__dict__.update(values)


def f(self, x):
    return x


def compiled(model, *guards, ambient=None):
    root = Root(FrameView(f, (model, None)))
    node = root.local("self", 0)
    for path, guard, where in guards:
        install(node.attr(path) if path else node, guard, where)
    return build_program(root, ambient)


def test_then_now_path_and_line():
    entry = compiled(Model(scale=0.5), ("scale", ValueIs(0.5), LINE))
    [miss] = explain_miss([entry], FrameView(f, (Model(scale=0.6), None)))
    [failure] = miss.failures
    assert (failure.change.kind, failure.change.then, failure.change.now) == ("value", 0.5, 0.6)
    assert (failure.path, failure.user_path, failure.where) == ("L['self'].scale", "self.scale", LINE)
    assert failure.text == "L['self'].scale == 0.5" and failure.key == miss.key == "value:self.scale"


def test_all_failing_guards_in_order():
    guards = [("a", ValueIs(1), LINE), ("b", ValueIs(2), OTHER), ("c", TypeIs(int), None)]
    entry = compiled(Model(a=1, b=2, c=3), *guards)
    [miss] = explain_miss([entry], FrameView(f, (Model(a=1, b=3, c="x"), None)))
    assert [x.key for x in miss.failures] == ["value:self.b", "type:self.c"]
    assert miss.key == "value:self.b"


def test_nearest_entry_first_most_recent_of_equals():
    def entry(a, b):
        return compiled(Model(a=a, b=b), ("a", ValueIs(a), LINE), ("b", ValueIs(b), LINE))

    misses = explain_miss(
        [entry(5, 6), entry(1, 7), entry(8, 2), entry(9, 9)], FrameView(f, (Model(a=1, b=2), None))
    )
    assert [m.index for m in misses] == [1, 2, 0, 3]
    assert [len(m.failures) for m in misses] == [1, 1, 2, 2]
    assert all(isinstance(m, EntryFailure) for m in misses)


def test_training_and_hooks_have_kinds_of_their_own():
    lin = torch.nn.Linear(2, 2)
    entry = compiled(lin, ("training", ValueIs(True), LINE), ("_forward_hooks", LengthIs(0), LINE))
    lin.eval()
    lin.register_forward_hook(print)
    [miss] = explain_miss([entry], FrameView(f, (lin, None)))
    assert [x.change.kind for x in miss.failures] == ["training", "hooks"]


def test_missing_values():
    entry = compiled(Model(a=1), ("a", ValueIs(1), LINE))
    [miss] = explain_miss([entry], FrameView(f, (Model(), None)))
    change = miss.failures[0].change
    assert (change.kind, change.then, change.now) == ("presence", "present", "absent")


def test_relations_name_every_path():
    x = torch.ones(2)
    frame = FrameView(f, (x, torch.ones(2)))

    def entry(guard):
        root = Root(frame)
        relate(root, guard, [root.local("self", 0), root.local("x", 1)], LINE)
        return build_program(root, None)

    [miss] = explain_miss([entry(Distinct())], FrameView(f, (x, x)))
    assert miss.failures[0].path == "L['self'], L['x']" and miss.failures[0].change.detail == "self and x"
    [miss] = explain_miss([entry(Same())], frame)
    assert miss.failures[0].key == "aliasing:self, x"
    program = (("size", 0, 0), ("size", 1, 0), ("eq",))
    [miss] = explain_miss([entry(SizeExpression(program))], FrameView(f, (x, torch.ones(3))))
    change = miss.failures[0].change
    assert change.then == "self.size()[0] == x.size()[0]" and change.now == {
        "self.size()[0]": 2,
        "x.size()[0]": 3,
    }


def test_a_tensor_that_differs_in_several_ways():
    entry = compiled(Model(w=torch.ones(2, 3)), ("w", TensorMatch.of(torch.ones(2, 3)), LINE))
    [miss] = explain_miss([entry], FrameView(f, (Model(w=torch.ones(4, 5)), None)))
    assert [(x.change.detail, x.change.then, x.change.now) for x in miss.failures] == [
        ("size of dim 0", 2, 4),
        ("size of dim 1", 3, 5),
        ("stride of dim 0", 3, 5),
    ]


def test_global_state_has_no_path():
    entry = compiled(Model(), ambient=AmbientState.now())
    with torch.no_grad():
        [miss] = explain_miss([entry], FrameView(f, (Model(), None)))
    assert miss.key == "grad_mode:grad mode" and miss.failures[0].path == ""


def test_an_entry_that_lost_what_it_held():
    thing = Model()
    entry = compiled(Model(), ("a", Is(thing), LINE))
    del thing
    [miss] = explain_miss([entry], FrameView(f, (Model(a=Model()), None)))
    assert not entry.program.alive and miss.failures[0].change.kind == "identity"


def test_classes_are_explained_once_for_many_instances():
    class Layer:
        factor = 1

    model = Model(**{f"l{i}": Layer() for i in range(5)})
    root = Root(FrameView(f, (model, None)))
    for i in range(5):
        node = root.local("self", 0).attr(f"l{i}")
        install(node, TypeIs(Layer), LINE)
        install(node.class_attr("factor"), ValueIs(1), LINE)
    entry = build_program(root, None)
    assert entry.program.stats()["nodes"] == 1 + 5 + 2
    frame = FrameView(f, (model, None))
    assert entry.check(frame) and entry.check(frame)
    Layer.factor = 2
    assert not entry.check(frame)
    [miss] = explain_miss([entry], frame)
    assert [x.user_path for x in miss.failures] == ["self.l0.factor"]


def test_values_are_described_without_running_user_code():
    class Loud:
        def __repr__(self):
            raise AssertionError("user code ran in an explanation")

        __eq__ = __str__ = __bool__ = __repr__
        __hash__ = object.__hash__

    entry = compiled(Model(a=1), ("a", ValueIs(1), LINE))
    [miss] = explain_miss([entry], FrameView(f, (Model(a=Loud()), None)))
    assert miss.failures[0].change.now.endswith("Loud object")


def test_every_kind_is_in_the_table():
    from dynacheck.guards import KINDS
    from dynacheck.guards.fields import FIELDS

    assert {field.kind for field in FIELDS} <= set(KINDS)


def test_the_trie_forgets_the_frame():
    import gc
    import weakref

    model = Model(a=1)
    entry = compiled(model, ("a", ValueIs(1), LINE))
    ref = weakref.ref(model)
    del model
    gc.collect()
    assert ref() is None and entry.texts() == ["L['self'].a == 1"]


def test_empty_slots_read_as_absent():
    entry = compiled(Model(a=1), ("a", ValueIs(1), LINE))
    [miss] = explain_miss([entry], FrameView(f, (_C.NULL, None)))
    assert miss.failures[0].change.now == "absent"


@pytest.mark.parametrize("n", [0, 3])
def test_no_entries_no_explanations(n):
    assert explain_miss([], FrameView(f, (1, n))) == []
