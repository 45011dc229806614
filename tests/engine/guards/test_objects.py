"""Guards on Python objects: each kind passes what it should and fails what it should, natively and in Python."""

import collections
import enum
import functools
import gc
import math
import struct
import types
import weakref

import numpy
import pytest
import torch
from dynacheck.guards import (
    ANY_KEY,
    Absent,
    CodeIs,
    EmptyCell,
    EnumIs,
    HasKey,
    Is,
    KeysAre,
    LengthIs,
    NotAbsent,
    RangeIs,
    SetIs,
    TypeIs,
    ValueIs,
    install,
)
from dynacheck.guards.held import Held, constant_key, describe
from dynacheck.sources import CAttr, CellContents


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Number(enum.IntEnum):
    ONE = 1


class Flag(enum.Flag):
    A = 1
    B = 2


class Plain:
    pass


class Child(Plain):
    pass


class Hostile:
    """Everything a guard must not call."""

    def _fail(self, *args):
        raise AssertionError("user code ran in a guard")

    __eq__ = __len__ = __bool__ = __getattr__ = __iter__ = __contains__ = __getitem__ = __repr__ = __str__ = (
        _fail
    )
    __hash__ = object.__hash__


class HostileList(list):
    __eq__ = __len__ = __iter__ = __getitem__ = Hostile._fail


class HostileDict(dict):
    __eq__ = __len__ = __iter__ = __getitem__ = __contains__ = keys = Hostile._fail


NAN2 = struct.unpack("d", struct.pack("Q", 0x7FF8000000000001))[0]

CONSTANTS = [
    0, 1, -1, 255, 2**31, 2**63, -(2**63), 2**200, True, False, 1.0, 0.0, -0.0, math.inf, -math.inf, math.nan, NAN2,
    1j, complex(0.0, -0.0), complex(0.0, 0.0), "", "a", "Hello", "é", "a" * 300, b"", b"a", None, ..., NotImplemented,
    (), (1,), (1.0,), (True,), (1, (2, "x")), (1, (2, "y")), (0.0,), (-0.0,), frozenset(), frozenset({1}),
    frozenset({True}), frozenset({"a", "b"}), frozenset({(1, 2.0)}), frozenset({(1, 2)}), slice(None), slice(1, 2),
    slice(1, 2.0), range(3), range(0, 3, 2), torch.float32, torch.int64, torch.strided, torch.channels_last,
    torch.device("cpu"), torch.device("meta"), torch.Size([1]), torch.Size([1, 2]), numpy.float32(1), numpy.float64(1),
    numpy.float32("nan"), numpy.int64(1),
]  # fmt: skip


def test_value_passes_itself_and_nothing_else(guarded):
    for i, then in enumerate(CONSTANTS):
        compiled = guarded.program(then, ValueIs(then))
        for j, now in enumerate(CONSTANTS):
            assert guarded.passes(compiled, now) == (i == j), (then, now)
        for odd in (Hostile(), Plain, [], Color.RED, Number.ONE):
            assert not guarded.passes(compiled, odd)


def test_value_is_by_value_not_by_identity(guarded):
    made = ["".join(["Hel", "lo"]), int("123456789"), float("2.5"), (1, float("2.5")), b"".join([b"a", b"b"])]
    equal = ["Hello", 123456789, 2.5, (1, 2.5), b"ab"]
    for then, now in zip(made, equal):
        assert then is not now
        assert guarded.passes(guarded.program(then, ValueIs(then)), now)


def test_constants_that_compare_equal_have_their_own_keys():
    keys = {constant_key(value) for value in CONSTANTS}
    assert len(keys) == len(CONSTANTS)
    assert len({ValueIs(v) for v in CONSTANTS}) == len(CONSTANTS)
    assert ValueIs(1) != ValueIs(True) and ValueIs(math.nan) == ValueIs(math.nan)


@pytest.mark.parametrize(
    "value", [[], {}, set(), Plain(), Color.RED, Number.ONE, (1, []), numpy.zeros(1), Plain]
)
def test_value_refuses_what_is_no_constant(value):
    with pytest.raises(TypeError):
        ValueIs(value)


def test_type(guarded):
    class Local:
        pass

    compiled = guarded.program(Plain(), TypeIs(Plain))
    assert guarded.passes(compiled, Plain())
    for other in (Child(), Local(), 1, None, Plain, Hostile()):
        assert not guarded.passes(compiled, other)
    assert guarded.passes(guarded.program(1, TypeIs(int)), 2)
    assert not guarded.passes(guarded.program(1, TypeIs(int)), True)


def test_identity_of_what_has_weak_references(guarded):
    for obj in (Plain(), Plain, one_function, len, torch.add, torch, functools.partial(len)):
        compiled = guarded.program(obj, Is(obj))
        assert guarded.passes(compiled, obj)
        for other in (Plain(), Child, other_function, max, torch.mul, gc, None, Hostile()):
            assert not guarded.passes(compiled, other)


def one_function(x):
    return x


def other_function(x):
    return x


class Holder:
    def method(self):
        pass


HOLDER = Holder()


class WithDescriptors:
    __slots__ = ("slot",)

    @property
    def prop(self):
        return 1

    @staticmethod
    def static():
        pass

    @classmethod
    def klass(cls):
        pass


class OtherDescriptors:
    __slots__ = ("slot",)
    prop = property(one_function)
    static = staticmethod(one_function)
    klass = classmethod(one_function)


@pytest.mark.parametrize("name", ["slot", "prop", "static", "klass"])
def test_identity_of_descriptors_by_what_they_are_made_of(guarded, name):
    obj, other = vars(WithDescriptors)[name], vars(OtherDescriptors)[name]
    compiled = guarded.program(obj, Is(obj))
    assert guarded.passes(compiled, obj)
    assert not guarded.passes(compiled, other) and not guarded.passes(compiled, None)
    assert Is(obj) == Is(obj) != Is(other)


def test_identity_of_builtin_descriptors(guarded):
    for obj in (str.join, torch.Tensor.grad, vars(int)["real"], object.__init__, vars(dict)["fromkeys"]):
        compiled = guarded.program(obj, Is(obj))
        assert guarded.passes(compiled, obj)
        for other in (str.split, torch.Tensor.shape, vars(int)["imag"], type.__init__, list.append, 1):
            assert not guarded.passes(compiled, other)


@pytest.mark.parametrize("value", [[], {}, (1,), OtherDescriptors(), Plain().__init__, HOLDER.method])
def test_identity_refuses_what_could_only_be_held_strongly(value):
    with pytest.raises(TypeError):
        Is(value)


def test_enum_members(guarded):
    for member in (Color.RED, Number.ONE, Flag.A | Flag.B):
        compiled = guarded.program(member, EnumIs(member))
        assert guarded.passes(compiled, member)
        for other in (Color.BLUE, 1, 3, Flag.A, True, None, Hostile()):
            assert not guarded.passes(compiled, other)
        assert EnumIs(member) == EnumIs(member)


LENGTHS = [
    [1, 2], (1, 2), {1: 1, 2: 2}, {1, 2}, frozenset({1, 2}), "ab", b"ab", bytearray(b"ab"), range(2), HostileList([1, 2]),
    collections.deque([1, 2]), collections.OrderedDict({1: 1, 2: 2}), HostileDict({1: 1, 2: 2}), torch.Size([1, 2]),
    collections.Counter("ab"), collections.namedtuple("P", "a b")(1, 2),
]  # fmt: skip


@pytest.mark.parametrize("value", LENGTHS, ids=lambda v: type(v).__name__)
def test_length(guarded, value):
    assert guarded.passes(guarded.program(value, LengthIs(2)), value)
    assert not guarded.passes(guarded.program(value, LengthIs(3)), value)


def test_length_of_what_has_none(guarded):
    for value in (1, None, Hostile(), Plain, torch.ones(2)):
        assert not guarded.passes(guarded.program(value, LengthIs(2)), value)


def test_keys_are_ordered_and_typed(guarded):
    d = {"a": 1, 2: 2, Color.RED: 3}
    compiled = guarded.program(d, KeysAre(d))
    for same in (d, dict(d), HostileDict(d), collections.OrderedDict(d)):
        assert guarded.passes(compiled, same)
    for other in (
        {2: 2, "a": 1, Color.RED: 3},
        {"a": 1, 2.0: 2, Color.RED: 3},
        {"a": 1, 2: 2},
        {"a": 1, 2: 2, Color.BLUE: 3},
        {"a": 1, 2: 2, Hostile(): 3},
        list(d),
        None,
    ):
        assert not guarded.passes(compiled, other)


def test_keys_by_identity_and_any(guarded):
    key = Plain()
    assert guarded.passes(guarded.program({key: 1}, KeysAre([key])), {key: 2})
    assert not guarded.passes(guarded.program({key: 1}, KeysAre([key])), {Plain(): 2})
    assert guarded.passes(guarded.program({key: 1}, KeysAre([ANY_KEY, "b"])), {Plain(): 2, "b": 3})
    assert not guarded.passes(guarded.program({key: 1}, KeysAre([ANY_KEY, "b"])), {"b": 3, Plain(): 2})


def test_order_of_an_ordered_dict(guarded):
    d = collections.OrderedDict(a=1, b=2)
    compiled = guarded.program(d, KeysAre(d))
    assert guarded.passes(compiled, d)
    d.move_to_end("a")
    assert not guarded.passes(compiled, d)


def test_sets(guarded):
    key = Plain()
    then = {1, "a", (2, 3), key, Color.RED}
    compiled = guarded.program(then, SetIs(then))
    assert guarded.passes(compiled, set(then))
    for other in (
        frozenset(then),
        then - {1},
        then - {1} | {True},
        then - {key} | {Plain()},
        then | {5},
        list(then),
        1,
    ):
        assert not guarded.passes(compiled, other)


def test_sets_in_their_order(guarded):
    first, second = set(), set()
    for order, made in (((8, 0), first), ((0, 8), second)):
        for element in order:
            made.add(element)
    assert first == second and list(first) != list(second)
    compiled = guarded.program(first, SetIs(first, ordered=True))
    assert guarded.passes(compiled, first) and not guarded.passes(compiled, second)
    assert not guarded.passes(compiled, {8}) and not guarded.passes(compiled, first | {1})
    assert SetIs(first, ordered=True).explain([second]).kind == "order"
    assert guarded.passes(guarded.program(first, SetIs(first)), second)


def test_has_key(guarded):
    for key in ("a", 1, Color.RED, (1, 2), None):
        for d in ({}, {key: 0}, HostileDict({key: 0}), {"other": 1}, [key], 5):
            there = isinstance(d, dict) and dict.__contains__(d, key)
            assert guarded.passes(guarded.program(d, HasKey(key)), d) == there
            assert guarded.passes(guarded.program(d, HasKey(key, False)), d) == (
                isinstance(d, dict) and not there
            )


def test_presence(guarded):
    for value, there in (({"k": None}, True), ({}, False), ([], False), (3, False)):
        at = lambda node: node.key("k")
        assert guarded.passes(guarded.program(value, NotAbsent(), at=at), value) == there
        assert guarded.passes(guarded.program(value, Absent(), at=at), value) != there


def test_empty_cells(guarded):
    compiled = guarded.program(types.CellType(), EmptyCell(), at=lambda node: node.child(CellContents()))
    assert guarded.passes(compiled, types.CellType())
    assert not guarded.passes(compiled, types.CellType(1))


def test_code(guarded):
    def make(n):
        return lambda x: x + n

    compiled = guarded.program(make(1), CodeIs(make(1)))
    assert guarded.passes(compiled, make(2))
    for other in (lambda x: x + 1, one_function, len, Plain, None):
        assert not guarded.passes(compiled, other)
    f = make(1)
    assert guarded.passes(compiled, f)
    f.__code__ = make_other().__code__
    assert not guarded.passes(compiled, f)


def make_other(n=0):
    return lambda x: x - n


def test_ranges(guarded):
    compiled = guarded.program(range(0, 3, 2), RangeIs(0, 3, 2))
    assert guarded.passes(compiled, range(0, 3, 2)) and not compiled.slow
    for other in (range(0, 4, 2), range(1, 3, 2), range(0, 3, 1), [0, 2], None, slice(0, 3, 2)):
        assert not guarded.passes(compiled, other)
    huge = guarded.program(range(-(2**70), 2**70, 3), RangeIs(-(2**70), 2**70, 3))
    assert guarded.passes(huge, range(-(2**70), 2**70, 3)) and not guarded.passes(huge, range(2**70))


@pytest.mark.parametrize("guard", [TypeIs, Is, CodeIs, EnumIs])
def test_what_died_never_passes_again(guarded, guard):
    def make():
        class Thing:
            pass

        class Kind(enum.Enum):
            A = 1

        def f():
            pass

        code = compile("def f(): pass", "x", "exec").co_consts[0]
        return {TypeIs: Thing, Is: Thing(), CodeIs: types.FunctionType(code, {}), EnumIs: Kind.A}[guard]

    obj = make()
    compiled = guarded.program(obj, guard(obj))
    assert compiled.program.alive
    again = guard(obj)
    del obj
    gc.collect()
    assert not compiled.program.alive
    for _ in range(20):
        now = make()
        frame = guarded.frame(now() if guard is TypeIs else now)
        assert not compiled.check(frame)
        assert not again.check(frame.args)


def test_a_dead_operand_makes_a_dead_program(guarded):
    thing = Plain()
    guard = Is(thing)
    del thing
    compiled = guarded.program(1, guard)
    assert not compiled.program.alive and not compiled.check(guarded.frame(1))


def test_held_objects_are_not_kept():
    thing = Plain()
    held, ref = Held(thing), weakref.ref(thing)
    del thing
    assert ref() is None and not held.alive and not held.matches(None)


def test_same_guard_is_installed_once():
    from dynacheck.sources import FrameView, Root

    node = Root(FrameView(one_function, (1,))).local("x", 0)
    for _ in range(2):
        for guard in (TypeIs(int), ValueIs(1), ValueIs(True), Is(one_function), LengthIs(1), KeysAre(["a"])):
            install(node, guard, None)
    assert len(node.guards) == 6


def test_attributes_of_c_types(guarded):
    def f(a, b=2):
        return a

    partial = functools.partial(f, 1)
    cases = [
        (f, "__defaults__", (2,)),
        (slice(1, 2), "stop", 2),
        (range(5), "step", 1),
        (partial, "args", (1,)),
    ]
    for value, name, expected in cases:
        compiled = guarded.program(
            value, ValueIs(expected), at=lambda node, name=name: node.child(CAttr(name))
        )
        assert guarded.passes(compiled, value)


TEXTS = [
    (ValueIs("Hello"), "L['b'] == 'Hello'"),
    (ValueIs(None), "L['b'] is None"),
    (ValueIs(True), "L['b'] is True"),
    (LengthIs(3), "len(L['b']) == 3"),
    (TypeIs(int), "___check_type_id(L['b'], int)"),
    (Is(len), "L['b'] is len"),
    (EnumIs(Color.RED), "L['b'] is Color.RED"),
    (KeysAre(["a", 1]), "list(dict.keys(L['b'])) == ['a', 1]"),
    (HasKey("a"), "dict.__contains__(L['b'], 'a')"),
    (HasKey("a", False), "not dict.__contains__(L['b'], 'a')"),
    (Absent(), "not ___exists(L['b'])"),
]


@pytest.mark.parametrize("guard, text", TEXTS)
def test_text(guard, text):
    assert guard.text(["L['b']"]) == text


def test_descriptions_run_no_user_code():
    assert describe(Hostile()) == "Hostile object"
    assert describe(Color.RED) == "Color.RED"
    assert describe(int) == "int" and describe(torch.nn.Linear) == "torch.nn.modules.linear.Linear"
    assert describe([1]) == "list object"


def test_a_property_of_a_class_made_in_c_is_held_by_what_it_calls(guarded):
    getters = vars(torch._C._SDPAParams)
    compiled = guarded.program(getters["is_causal"], Is(getters["is_causal"]))
    assert compiled.check(guarded.frame(getters["is_causal"]))
    assert not compiled.check(guarded.frame(getters["dropout"]))
