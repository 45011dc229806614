"""Expressions over sizes, strides and numbers: the native evaluator against Python's arithmetic."""

import math
import random

import pytest
import torch
from dynacheck import _C
from dynacheck.guards import SizeExpression
from dynacheck.guards.shapes import OPERATORS, evaluate, infix

EDGES = [
    0,
    1,
    -1,
    2,
    -2,
    3,
    7,
    -7,
    10,
    2**31,
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**62,
    2**63 - 1,
    -(2**63),
    2**63,
    2**70,
]
FLOATS = [0.0, -0.0, 0.5, -1.5, 2.0, 1e300, -1e300, math.inf, math.nan, 2.0**53]


def holds(related, program, *values):
    guard = SizeExpression(tuple(program))
    return related(values, guard)(*values)


def test_size_ranges(guarded):
    program = (("const", 2), ("size", 0, 0), ("le",), ("size", 0, 0), ("const", 6), ("le",), ("and",))
    check = guarded.related((torch.ones(4, 2),), SizeExpression(program))
    assert [check(torch.ones(n, 2)) for n in range(9)] == [2 <= n <= 6 for n in range(9)]
    assert not check(torch.ones(())) and not check(None) and not check(4)


def test_relations_between_sizes(guarded):
    program = (("size", 0, 1), ("size", 1, 0), ("eq",))
    check = guarded.related((torch.ones(2, 3), torch.ones(3, 2)), SizeExpression(program))
    assert check(torch.ones(2, 5), torch.ones(5, 2)) and not check(torch.ones(2, 5), torch.ones(4, 2))


def test_strides_offsets_numbers(guarded):
    x = torch.ones(4, 6)[1:, ::2]
    assert holds(guarded.related, (("stride", 0, 1), ("const", 2), ("eq",)), x)
    assert holds(guarded.related, (("offset", 0), ("const", 6), ("eq",)), x)
    assert holds(guarded.related, (("int", 0), ("const", 5), ("mod",), ("const", 0), ("eq",)), 10)
    assert not holds(guarded.related, (("int", 0), ("const", 5), ("gt",)), True)
    assert holds(guarded.related, (("float", 0), ("const", 0.5), ("lt",)), 0.25)
    assert not holds(guarded.related, (("float", 0), ("const", 0.5), ("lt",)), 0)


@pytest.mark.parametrize("name", [n for n, op in OPERATORS.items() if op.arity == 2])
def test_binary_operators_on_edges(guarded, name):
    # the result is compared with a constant near it, so that the native value shows
    pairs = [(a, b) for a in EDGES + FLOATS for b in EDGES + FLOATS]
    if name in ("pow", "lshift", "rshift"):
        pairs = [(a, b) for a, b in pairs if type(a) is type(b) is int and b in (0, 1, 2, 3, 10, -1)]
    if name == "rounddigits":
        pairs = [(a, b) for a, b in pairs if b in (0, 1, 2, 3, -1) and type(b) is int and abs(a) < 1e300]
    if name in ("bitand", "bitor", "bitxor"):
        pairs = [(a, b) for a, b in pairs if isinstance(a, int) and isinstance(b, int)]
    for a, b in pairs:
        loads = (("int" if type(a) is int else "float", 0), ("int" if type(b) is int else "float", 1))
        value = evaluate((*loads, (name,)), (a, b))
        targets = [0] if value is None or value != value else [value, value + 1, -value]
        for target in targets:
            holds(guarded.related, (*loads, (name,), ("const", target), ("eq",)), a, b)
            holds(guarded.related, (*loads, (name,), ("const", target), ("le",)), a, b)


@pytest.mark.parametrize("name", [n for n, op in OPERATORS.items() if op.arity == 1])
def test_unary_operators(guarded, name):
    for a in EDGES + FLOATS:
        load = ("int" if type(a) is int else "float", 0)
        value = evaluate((load, (name,)), (a,))
        if value is not None and value == value:
            assert holds(guarded.related, (load, (name,), ("const", value), ("eq",)), a)
        holds(guarded.related, (load, (name,)), a)


def test_what_overflows_is_decided_in_python(guarded):
    program = (("int", 0), ("int", 0), ("mul",), ("const", 10**12), ("gt",))
    check = guarded.related((1,), SizeExpression(program))
    assert check(2**40) and check(2**62) and check(2**80) and not check(5)


def test_undefined_fails(guarded):
    for name in ("floordiv", "mod", "truediv"):
        check = guarded.related(
            (1, 1), SizeExpression((("int", 0), ("int", 1), (name,), ("const", 0), ("ge",)))
        )
        assert check(1, 1) and not check(1, 0)


def test_where(guarded):
    program = (("int", 0), ("const", 0), ("gt",), ("int", 0), ("const", 7), ("where",), ("const", 7), ("eq",))
    check = guarded.related((1,), SizeExpression(program))
    assert check(7) and check(-1) and not check(3)


INTEGERS = ("pow", "bitand", "bitor", "bitxor", "lshift", "rshift")  # of which floats have none, or huge ones


def random_program(rng, depth):
    if depth == 0 or rng.random() < 0.2:
        kind = rng.choice(["size", "int", "float", "const", "const"])
        if kind == "size":
            return [("size", 0, rng.randrange(3))]
        if kind == "const":
            return [("const", rng.choice([0, 1, 2, 5, -3, 2**40, 0.5]))]
        return [(kind, 1 if kind == "int" else 2)]
    name = rng.choice([n for n, op in OPERATORS.items() if op.native and n not in INTEGERS])
    steps = []
    for _ in range(OPERATORS[name].arity):
        steps += random_program(rng, depth - 1)
    return [*steps, (name,)]


def test_random_programs(guarded):
    rng = random.Random(1)
    for _ in range(400):
        program = tuple(random_program(rng, 4))
        check = guarded.related((torch.ones(2, 3), 5, 0.5), SizeExpression(program))
        for _ in range(5):
            shape = [rng.randrange(4) for _ in range(rng.randrange(2, 4))]
            check(torch.ones(shape), rng.choice(EDGES), rng.choice(FLOATS))


def test_without_native_tensors(guarded, tensors):
    check = guarded.related((torch.ones(2),), SizeExpression((("size", 0, 0), ("const", 5), ("lt",))))
    assert check(torch.ones(2)) and not check(torch.ones(7))


def test_long_and_unknown_programs(guarded):
    deep = [("const", 1)] * 40 + [("add",)] * 39
    assert SizeExpression(tuple(deep)).native_form()[0] == "PYCHECK"
    assert holds(guarded.related, (*deep, ("const", 40), ("eq",)), 1)
    assert SizeExpression((("int", 0), ("const", 2**70), ("lt",))).native_form()[0] == "PYCHECK"
    assert SizeExpression((("float", 0), ("sqrt",))).native_form()[0] == "EXPRESSION"
    rounded = (("float", 0), ("const", 1), ("rounddigits",), ("const", 0.3), ("eq",))
    assert SizeExpression(rounded).native_form()[0] == "PYCHECK" and holds(guarded.related, rounded, 0.26)
    for bad in ((), (("add",),), (("int", 0), ("int", 0))):
        with pytest.raises(ValueError):
            SizeExpression(bad)
    with pytest.raises(KeyError):
        SizeExpression((("int", 0), ("nonsense",)))


def test_slots_beyond_the_relation_are_refused():
    op, accessor = _C.GUARD_OPS["EXPRESSION"], _C.GUARD_ACCESSORS["LOCAL"]
    with pytest.raises(ValueError):
        _C.GuardProgram((None, ((accessor, (0,), (), (), 0),), ((op, ((("int", 3),),), (0,), None),), 1, ()))


def test_text():
    program = (("const", 2), ("size", 0, 0), ("le",))
    assert infix(program, ["L['a']"]) == "2 <= L['a'].size()[0]"
    product = (("size", 0, 0), ("size", 1, 1), ("add",), ("int", 2), ("mul",), ("const", 4), ("floordiv",))
    assert infix(product, ["a", "b", "n"]) == "((a.size()[0] + b.size()[1]) * n) // 4"


def test_explanations(guarded):
    program = (("const", 2), ("size", 0, 0), ("le",))
    change = SizeExpression(program).changes((torch.ones(1),), ["x"])[0]
    assert (change.kind, change.then, change.now, change.detail) == (
        "size",
        "2 <= x.size()[0]",
        1,
        "size of dim 0",
    )
    both = (("size", 0, 0), ("size", 1, 0), ("eq",))
    change = SizeExpression(both).changes((torch.ones(1), torch.ones(2)), ["x", "y"])[0]
    assert (change.kind, change.now) == ("expression", {"x.size()[0]": 1, "y.size()[0]": 2})
    assert change.then == "x.size()[0] == y.size()[0]"
