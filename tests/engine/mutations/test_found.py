"""What the loops over changes and histories found, one by one."""

import collections
import math

import dynacheck
import pytest
import torch

pytestmark = pytest.mark.usefixtures("engine")

X = torch.arange(6.0).view(2, 3)


def outcomes(fn, calls, **options):
    """How calls are served; a call is (what to do before, arguments). Results are plain Python's."""
    with dynacheck.observe() as seen:
        compiled = dynacheck.compile(fn, backend=lambda gm, inputs: gm.forward, **options)
        for before, args in calls:
            before()
            assert torch.equal(compiled(*args), fn(*args))
    return [call.outcome for call in seen.calls]


def nothing():
    pass


def inserted(*elements):
    made = set()
    for element in elements:
        made.add(element)
    return made


FIRST, SECOND = inserted(8, 0), inserted(0, 8)  # one bucket: the first one to come is the first


def test_the_order_of_a_set_is_guarded_where_it_is_seen():
    def weighted(x, elements):
        for element in elements:
            x = x * 2 + element
        return x

    assert FIRST == SECOND and list(FIRST) != list(SECOND)
    calls = [(nothing, (X, FIRST)), (nothing, (X, SECOND)), (nothing, (X, FIRST)), (nothing, (X, SECOND))]
    assert outcomes(weighted, calls) == ["miss", "miss", "hit", "hit"]


def test_the_order_of_a_set_is_not_guarded_where_only_members_matter():
    def asked(x, elements):
        return x + len(elements) if 8 in elements and {0} <= elements else x

    assert outcomes(asked, [(nothing, (X, FIRST)), (nothing, (X, SECOND))]) == ["miss", "hit"]


class Base:
    def add(self, x):
        return x + 1

    @staticmethod
    def times(x):
        return x * 2


def other_add(self, x):
    return x + 7


def other_times(x):
    return x * 7


@pytest.mark.parametrize("method, other", [(Base.add, other_add), (Base.times, other_times)])
def test_the_code_of_an_inlined_function_is_guarded(method, other):
    def both(x, obj):
        return obj.times(obj.add(x))

    code = method.__code__
    try:
        change = lambda: setattr(method, "__code__", other.__code__)
        assert outcomes(both, [(nothing, (X, Base())), (change, (X, Base()))]) == ["miss", "miss"]
    finally:
        method.__code__ = code


QUEUE = collections.deque([1, X])


def test_a_deque_from_outside_is_read_by_items():
    def read(x):
        return x * QUEUE[0] + QUEUE[-1] + len(QUEUE)

    calls = [(nothing, (X,)), (nothing, (X,)), (lambda: QUEUE.__setitem__(0, 2), (X,)), (QUEUE.reverse, (X,))]
    try:
        with dynacheck.observe() as seen:
            compiled = dynacheck.compile(read, backend=lambda gm, inputs: gm.forward)
            for before, args in calls[:3]:
                before()
                assert torch.equal(compiled(*args), read(*args))
            QUEUE.append(X)
            assert torch.equal(compiled(X), read(X))
        assert [call.outcome for call in seen.calls] == ["miss", "hit", "miss", "miss"]
        assert not seen.graph_breaks
    finally:
        QUEUE.clear()
        QUEUE.extend([1, X])


@pytest.mark.parametrize("sizes", [(3, 5), [4, 6]])
def test_sizes_looked_for_among_numbers_stay_symbols(sizes):
    def chosen(x):
        return x * 3 if x.shape[1] in (3, 5) else x + 1

    calls = [(nothing, (torch.ones(8, n),)) for n in sizes]
    assert outcomes(chosen, calls, dynamic=True) == ["miss", "hit"]


def test_a_shape_that_is_not_equal_stays_symbolic():
    def compared(x):
        return x * 3 if x.shape == (4, 4) else x + 1

    calls = [(nothing, (torch.ones(*n),)) for n in ((4, 6), (6, 7), (6, 4))]
    assert outcomes(compared, calls, dynamic=True) == ["miss", "hit", "hit"]


def test_a_known_size_decides_before_an_unbacked_one():
    def compared(x):
        return x + 2 if (x + 1).shape == (4, 5) else x

    x = torch.ones(4, 2)
    dynacheck.mark_unbacked(x, 0)
    with dynacheck.observe() as seen:
        dynacheck.compile(compared, backend=lambda gm, inputs: gm.forward)(x)
    assert not seen.graph_breaks


def test_a_dimension_marked_once_counts_as_one_that_changed():
    def plus(x):
        return x + 1

    x, y = torch.ones(4, 3), torch.ones(4, 3)
    dynacheck.mark_dynamic(x, 0, max=5)
    assert outcomes(
        plus, [(nothing, (x,)), (nothing, (torch.ones(9, 3),)), (nothing, (torch.ones(7, 3),))]
    ) == [
        "miss",
        "miss",
        "hit",
    ]


def test_dimensions_with_one_shape_id_are_one_symbol_and_ids_are_guarded():
    symbols = []

    def backend(gm, inputs):
        found = [node.meta["example_value"] for node in gm.graph.find_nodes(op="placeholder")]
        symbols.append({str(t.shape[0].node.expr) for t in found if isinstance(t, torch.Tensor)})
        return gm.forward

    def summed(x, y):
        return x.sum(0) + y.sum(0)

    compiled = dynacheck.compile(summed, backend=backend)
    for ids in (("a", "a"), ("a", "a"), ("a", "b")):
        x, y = torch.ones(4, 3), torch.ones(4, 3)
        for tensor, shape_id in zip((x, y), ids):
            dynacheck.mark_unbacked(tensor, 0, shape_id=shape_id)
        assert torch.equal(compiled(x, y), summed(x, y))
    assert [len(found) for found in symbols] == [1, 2]


class Plain:
    def __init__(self):
        self.gain = 1.5


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = 1.5
        self.w = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.gain


class Nines:
    def __get__(self, obj, cls):
        return 9.0

    def __set__(self, obj, value):
        pass


def doubled(obj, name):
    found = super(type(obj), obj).__getattribute__(name)
    return found * 2 if type(found) is float else found


def attempted(operation):
    def called(x, obj):
        try:
            return x + operation(obj)
        except TypeError:
            return x - 1

    return called


def stored(x, obj):
    obj.late = 2.0
    return x * obj.late


ATTRIBUTES = [("gain", property(lambda obj: 9.0)), ("gain", Nines()), ("__getattribute__", doubled)]
LATER = [
    *(
        (cls, name, value, lambda x, obj: x * obj.gain)
        for cls in (Plain, Module)
        for name, value in ATTRIBUTES
    ),
    *(
        (cls, "__getattr__", lambda obj, name: 7.0, lambda x, obj: x * getattr(obj, "late", 1.0))
        for cls in (Plain, Module)
    ),
    (Module, "w", property(lambda obj: 9.0), lambda x, obj: x * obj.w),
    (Module, "w", 9.0, lambda x, obj: x * obj.w),
    (Module, "__getattr__", lambda obj, name: 9.0, lambda x, obj: x * obj.w),
    (Module, "__call__", lambda obj, x: x * 9, lambda x, obj: obj(x)),
    (Plain, "__len__", lambda obj: 0, lambda x, obj: x + 1 if obj else x - 1),
    (Plain, "__bool__", lambda obj: False, lambda x, obj: x + 1 if obj else x - 1),
    (Plain, "__eq__", lambda obj, other: True, lambda x, obj: x + 1 if obj == 3 else x - 1),
    (Plain, "__setattr__", lambda obj, name, value: object.__setattr__(obj, name, 9.0), stored),
    (Plain, "__iter__", lambda obj: iter([1, 2]), attempted(sum)),
    (Plain, "__iter__", lambda obj: iter([1, 2]), attempted(lambda obj: 1 in obj)),
    (Plain, "__contains__", lambda obj, key: True, attempted(lambda obj: 1 in obj)),
    (Plain, "__add__", lambda obj, other: 9, attempted(lambda obj: obj + 1)),
    (Plain, "__radd__", lambda obj, other: 9, attempted(lambda obj: 1 + obj)),
    (Plain, "__neg__", lambda obj: 9, attempted(lambda obj: -obj)),
    (Plain, "__getitem__", lambda obj, key: 9, attempted(lambda obj: obj[0])),
    (Plain, "__lt__", lambda obj, other: True, attempted(lambda obj: obj < 1)),
    (Plain, "__call__", lambda obj: 9, attempted(lambda obj: obj())),
]


@pytest.mark.parametrize(("cls", "name", "value", "fn"), LATER)
def test_what_a_class_gets_later_is_noticed(cls, name, value, fn):
    """torch.compile doesn't notice most of these."""
    late = type("Late", (cls,), {})
    obj = late()
    calls = [(nothing, (X, obj)), (nothing, (X, obj)), (lambda: setattr(late, name, value), (X, obj))]
    assert outcomes(fn, calls) == ["miss", "hit", "miss"]


def test_a_modules_own_call_is_called():
    class Own(Module):
        def __call__(self, x, times=3):
            return super().__call__(x) * times

    assert outcomes(lambda x, obj: obj(x), [(nothing, (X, Own()))] * 2) == ["miss", "hit"]


def helper(x):
    return x


KNOWN = [
    abs, helper, int, Module, math.sqrt, torch.relu, torch.float32, torch, Module.__init__, str.join, (), None,
    ..., NotImplemented, torch.strided, torch.device("cpu"), object.__init__, collections.OrderedDict,
]  # fmt: skip


def handed_on(x, given):
    y = x + 1
    return given, abs, y


def met_before(x, given):
    y = x + 1
    met = [
        abs, helper, int, Module, math.sqrt, torch.relu, torch.float32, torch, Module.__init__, str.join, (), None,
        ..., NotImplemented, torch.strided, object.__init__, collections.OrderedDict,
    ]  # fmt: skip
    return given, given is met[0], met, y


@pytest.mark.parametrize("fn", [handed_on, met_before])
@pytest.mark.parametrize("first", KNOWN, ids=[str(i) for i in range(len(KNOWN))])
def test_what_is_handed_on_is_guarded_though_the_frame_knows_it(fn, first):
    """An argument that is a builtin, or another object that needs no source, which the frame also names."""
    for second in KNOWN:
        dynacheck.reset()
        compiled = dynacheck.compile(fn, backend="eager")
        assert compiled(X, first)[0] is first
        found = compiled(X, second)
        assert found[0] is second and found[1] == fn(X, second)[1]


def test_a_view_requires_a_gradient_as_soon_as_its_base_does():
    """Nothing in the view itself changes."""
    base = torch.ones(2, 3)
    view = base.t()

    def scaled(x):
        return x * 2 if x.requires_grad else x * 3

    def require():
        base.requires_grad_()

    def no_more():
        base.requires_grad_(False)

    calls = [(nothing, (view,)), (require, (view,)), (nothing, (view,)), (no_more, (view,))]
    assert outcomes(scaled, calls) == ["miss", "miss", "hit", "hit"]
    require()
    assert dynacheck.compile(scaled, backend="eager")(view).requires_grad
