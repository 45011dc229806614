"""Guards on tensors: 40 kinds of tensor against each other, dynamic dimensions, marks, reading natively or not."""

import itertools

import pytest
import torch
from dynacheck import _C
from dynacheck.guards import ItemIs, MarksAre, NoMarks, TensorMatch, explain_miss
from dynacheck.guards.access import tensor_access
from dynacheck.guards.tensors import FlattenIs, UnbackedMarksAre, arrangement
from torch._subclasses.fake_tensor import FakeTensorMode


class Sub(torch.Tensor):
    pass


class Wrapper(torch.Tensor):
    """A wrapper subclass: operators go through Python."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError("user code ran in a guard")


def kinds():
    base = torch.ones(2, 3)
    with torch.inference_mode():
        inference = torch.ones(2, 3)
    with FakeTensorMode():
        fake = torch.ones(2, 3)
    complex_ = torch.ones(2, 3, dtype=torch.complex64)
    return {
        "plain": base,
        "float64": base.double(),
        "float16": base.half(),
        "bfloat16": base.bfloat16(),
        "int64": base.long(),
        "uint8": base.byte(),
        "bool": base.bool(),
        "complex64": complex_,
        "conj": complex_.conj(),
        "neg": complex_.conj().imag,
        "neg view": torch._neg_view(base),
        "requires grad": torch.ones(2, 3, requires_grad=True),
        "non leaf": torch.ones(2, 3, requires_grad=True) * 2,
        "parameter": torch.nn.Parameter(torch.ones(2, 3)),
        "frozen parameter": torch.nn.Parameter(torch.ones(2, 3), requires_grad=False),
        "buffer": torch.nn.Buffer(torch.ones(2, 3)),
        "subclass": base.as_subclass(Sub),
        "wrapper": Wrapper(base),
        "fake": fake,
        "meta": base.to("meta"),
        "inference": inference,
        "transposed": torch.ones(3, 2).t(),
        "other size": torch.ones(2, 4),
        "one row": torch.ones(1, 3),
        "expanded": torch.ones(1, 3).expand(2, 3),
        "strided": torch.ones(2, 6)[:, ::2],
        "rank 0": torch.ones(()),
        "rank 1": torch.ones(2),
        "rank 3": torch.ones(2, 3, 1),
        "rank 7": torch.ones(2, 3, 1, 1, 1, 1, 1),
        "empty": torch.ones(0, 3),
        "4d": torch.ones(2, 3, 4, 4),
        "channels last": torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last),
        "sparse": base.to_sparse(),
        "csr": base.to_sparse_csr(),
        "csc": base.to_sparse_csc(),
        "bsr": base.to_sparse_bsr((2, 3)),
        "bsc": base.to_sparse_bsc((2, 3)),
        "mkldnn": base.to_mkldnn(),
        "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "nested jagged": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        "view": base[:],
        "offset": torch.ones(3, 3)[1:],
    }


SAME = {frozenset(pair) for pair in itertools.combinations(("plain", "view", "offset", "buffer"), 2)}
SAME |= {frozenset({"requires grad", "non leaf"}), frozenset({"float32", "plain"})}


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (torch.ones(2, 3, 4), "contiguous (12, 4, 1)"),
        (torch.ones(1, 3, 4, 4).to(memory_format=torch.channels_last), "channels_last (48, 1, 12, 3)"),
        (
            torch.ones(1, 2, 2, 2, 2).to(memory_format=torch.channels_last_3d),
            "channels_last_3d (16, 1, 8, 4, 2)",
        ),
        (torch.ones(2, 3).t(), "transposed (1, 3)"),
        (torch.ones(4, 6)[:, ::2], "strided (6, 2)"),
        (torch.ones(3, 1).expand(3, 4), "expanded (1, 0)"),
    ],
)
def test_arrangements_in_words(tensor, words):
    assert arrangement(tensor.size(), tensor.stride()) == words
    then = torch.empty_strided(tensor.size(), tuple(s + 1 for s in tensor.stride()))
    (found,) = TensorMatch.of(then).changes((tensor,))
    assert (found.kind, found.now, found.detail) == ("stride", words, "memory format")


@pytest.mark.filterwarnings("ignore")
def test_every_kind_against_every_other(guarded, tensors):
    made, fresh = kinds(), kinds()
    for name, tensor in made.items():
        compiled = guarded.program(tensor, TensorMatch.of(tensor), NoMarks())
        assert bool(compiled.slow) == (tensors == "python")
        for other, now in fresh.items():
            expected = name == other or frozenset({name, other}) in SAME
            assert guarded.passes(compiled, now) == expected, (name, other)
        for odd in (None, 1, [], torch.Tensor):
            assert not guarded.passes(compiled, odd)


@pytest.mark.filterwarnings("ignore")
def test_native_reading_equals_python_attributes():
    access = tensor_access()
    assert access is not None
    for name, tensor in kinds().items():
        if tensor.layout is not torch.strided or name in ("nested", "wrapper", "fake"):
            continue
        code, index, keys, grad, sizes, strides = _C.tensor_facts(tensor)
        assert code == access.dtype_codes[tensor.dtype]
        assert index == (-1 if tensor.device.index is None else tensor.device.index)
        assert keys == torch._C._dispatch_keys(tensor).raw_repr()
        assert (grad, sizes, strides) == (tensor.requires_grad, tuple(tensor.shape), tensor.stride())


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", list(tensor_access().dtype_codes))
def test_dtypes(guarded, dtype):
    compiled = guarded.program(torch.empty(2, dtype=dtype), TensorMatch.of(torch.empty(2, dtype=dtype)))
    for other in (torch.float32, torch.int64, torch.bool, dtype):
        assert guarded.passes(compiled, torch.empty(2, dtype=other)) == (other == dtype)


def test_dynamic_dimensions(guarded, tensors):
    x = torch.ones(2, 3, 4)
    free = TensorMatch.of(x, dynamic_sizes={0})
    compiled = guarded.program(x, free)
    assert guarded.passes(compiled, torch.ones(7, 3, 4))
    assert not guarded.passes(compiled, torch.ones(2, 5, 4))
    assert not guarded.passes(compiled, torch.ones(2, 3, 8)[:, :, ::2])
    compiled = guarded.program(x, TensorMatch.of(x, {0, 1, 2}, {0, 1}))
    assert guarded.passes(compiled, torch.ones(5, 6, 7))
    assert not guarded.passes(compiled, torch.ones(5, 7, 6).transpose(1, 2))
    assert not guarded.passes(compiled, torch.ones(5, 6))


def test_requires_grad_counts_without_grad_mode(guarded):
    with torch.no_grad():
        compiled = guarded.program(torch.ones(2), TensorMatch.of(torch.ones(2)))
        assert not guarded.passes(compiled, torch.ones(2, requires_grad=True))


def test_storage_offset_does_not_count(guarded):
    x = torch.ones(8)
    assert guarded.passes(guarded.program(x[:4], TensorMatch.of(x[:4])), x[4:])


def test_tensors_of_subclasses_run_no_user_code(guarded, tensors):
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("user code ran in a guard")

    x = torch.ones(2).as_subclass(Loud)
    compiled = guarded.program(x, TensorMatch.of(x), NoMarks())
    assert guarded.passes(compiled, x)
    assert not guarded.passes(compiled, torch.ones(3).as_subclass(Loud))
    assert not guarded.passes(compiled, torch.ones(2))


def test_no_marks(guarded):
    compiled = guarded.program(torch.ones(2), NoMarks())
    x = torch.ones(2)
    assert guarded.passes(compiled, x)
    x.note = "something else"
    assert guarded.passes(compiled, x)
    torch._dynamo.mark_dynamic(x, 0)
    assert not guarded.passes(compiled, x)
    [failure] = explain_miss([compiled], guarded.frame(x))[0].failures
    assert (failure.change.kind, failure.change.now) == ("mark", [0]) and "dynamic" in failure.change.detail


@pytest.mark.parametrize("mark", ["mark_dynamic", "maybe_mark_dynamic", "mark_static", "mark_unbacked"])
def test_marks_may_be_fewer_but_not_more(guarded, mark):
    def marked(*dims):
        x = torch.ones(4, 4)
        for dim in dims:
            getattr(torch._dynamo.decorators, mark)(x, dim)
        return x

    compiled = guarded.program(marked(0), MarksAre.of(marked(0)))
    assert guarded.passes(compiled, marked(0)) and guarded.passes(compiled, marked())
    assert not guarded.passes(compiled, marked(1)) and not guarded.passes(compiled, marked(0, 1))
    odd = torch.ones(4, 4)
    odd._dynamo_dynamic_indices = ["not a set"]
    assert not guarded.passes(compiled, odd)


def test_changes_name_every_part():
    x = torch.ones(2, 3)
    guard = TensorMatch.of(x)
    now = torch.ones(4, 5, dtype=torch.float64, requires_grad=True)
    assert [c.kind for c in guard.changes((now,))] == ["dtype", "requires_grad", "size", "size", "stride"]
    size = guard.changes((torch.ones(4, 3),))
    assert [(c.kind, c.then, c.now, c.detail) for c in size] == [("size", 2, 4, "size of dim 0")]
    assert guard.explain((torch.ones(2),)).kind == "rank"
    assert guard.explain((x.to_sparse(),)).kind == "layout"
    assert guard.explain((torch._neg_view(x),)).kind == "dispatch_keys"
    assert guard.explain((1,)).kind == "type"
    assert guard.explain((x.to("meta"),)).kind == "device"


def test_text():
    text = TensorMatch.of(torch.ones(2, 3), {0}).text(["L['a']"])
    assert (
        text
        == "check_tensor(L['a'], torch.float32, device=None, requires_grad=False, size=[None, 3], stride=[3, 1])"
    )
    assert "Parameter" in TensorMatch.of(torch.nn.Parameter(torch.ones(2))).text(["p"])


def test_failed_calibration_means_python(guarded, monkeypatch):
    from dynacheck.guards import access

    monkeypatch.setattr(access, "_state", [])
    monkeypatch.setattr(access, "_expected", lambda tensor: None)
    try:
        assert access.tensor_access() is None and not _C.tensors_ready()
        compiled = guarded.program(torch.ones(2), TensorMatch.of(torch.ones(2)))
        assert compiled.slow
        assert guarded.passes(compiled, torch.ones(2)) and not guarded.passes(compiled, torch.ones(3))
    finally:
        monkeypatch.undo()
        access._state.clear()
        assert access.tensor_access() is not None


def test_programs_made_before_native_reading_is_switched_off(guarded):
    compiled = guarded.program(torch.ones(2), TensorMatch.of(torch.ones(2)))
    _C.force("tensors", 0)
    try:
        assert guarded.passes(compiled, torch.ones(2)) and not guarded.passes(compiled, torch.ones(3))
        assert compiled.program.stats()["slow"] > 0
    finally:
        _C.force("tensors", 1)


class Made(torch.Tensor):
    """Made of one tensor, with a context."""

    @staticmethod
    def __new__(cls, inner, context):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner, context):
        self.inner, self.context = inner, context

    def __tensor_flatten__(self):
        return ["inner"], self.context

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError("an operator ran in a guard")


class Lenient(Made):
    @classmethod
    def __metadata_guard__(cls, then, now):
        return then["scale"] == now["scale"]


def test_what_a_wrapper_is_made_of(guarded):
    context = {"scale": 2, "note": []}
    compiled = guarded.program(Made(torch.ones(2), context), FlattenIs.of(Made(torch.ones(2), context)))
    assert guarded.passes(compiled, Made(torch.zeros(3), {"scale": 2, "note": []}))
    context["note"].append("changed later")
    assert guarded.passes(compiled, Made(torch.zeros(3), {"scale": 2, "note": []}))
    other = Made(torch.ones(2), {"scale": 3, "note": []})
    assert not guarded.passes(compiled, other)
    assert not guarded.passes(compiled, torch.ones(2))
    (installed,) = [i for i in compiled.installed if isinstance(i.guard, FlattenIs)]
    assert installed.guard.explain((other,)).detail == "context of `__tensor_flatten__`"
    assert installed.guard.explain((torch.ones(2),)).kind == "type"

    assert compiled.slow == ()
    assert compiled.program.stats()["slow"] == 0


def test_a_wrapper_that_does_not_know_what_it_is_made_of(guarded):
    """What its method raises leaves the guards as it is: an error of the class, not another value."""

    class Odd(Made):
        names = ["inner"]

        def __tensor_flatten__(self):
            return self.names, 1 / self.context

    compiled = guarded.program(Odd(torch.ones(2), 2), FlattenIs.of(Odd(torch.ones(2), 2)))
    assert guarded.passes(compiled, Odd(torch.ones(2), 2.0))
    Odd.names = ["inner", "inner"]
    assert not guarded.passes(compiled, Odd(torch.ones(2), 2))
    with pytest.raises(ZeroDivisionError):
        compiled.check(guarded.frame(Odd(torch.ones(2), 0)))


@pytest.mark.parametrize("ids", [{}, {0: "a"}, {0: "a", 1: "b"}])
def test_shape_ids_and_bounds(guarded, ids):
    def marked(ids, bounds=None):
        x = torch.ones(2, 2)
        x._dynamo_unbacked_indices = {0, 1}
        x._dynamo_shape_ids, x._dynamo_unbacked_bounds = ids, bounds
        return x

    compiled = guarded.program(None, UnbackedMarksAre.of(marked(ids, {1: (2, None)})))
    assert compiled.slow == ()
    assert guarded.passes(compiled, torch.ones(1))
    for other in ({}, {0: "a"}, {0: "b"}, {0: "a", 1: "b"}, {1: "a"}):
        assert guarded.passes(compiled, marked(other, {1: (2, None)})) == (other == ids)
    for bounds in (None, {}, {1: (2, 3)}, {0: (2, None)}, {1: (2, None), 0: (2, None)}):
        assert not guarded.passes(compiled, marked(ids, bounds))
    assert compiled.program.stats()["slow"] == 0


def test_a_class_that_compares_contexts_itself(guarded):
    compiled = guarded.program(None, FlattenIs.of(Lenient(torch.ones(2), {"scale": 2, "note": 1})))
    assert guarded.passes(compiled, Lenient(torch.ones(2), {"scale": 2, "note": 5}))
    assert not guarded.passes(compiled, Lenient(torch.ones(2), {"scale": 3, "note": 1}))


def test_the_number_in_a_tensor(guarded, tensors):
    """Read anew each time: nothing tells of a write to a tensor's memory."""
    index = torch.tensor(3)
    compiled = guarded.program(index, ItemIs(3))
    assert guarded.passes(compiled, index) and guarded.passes(compiled, torch.tensor([7, 3, 5])[1])
    index.add_(1)
    assert not guarded.passes(compiled, index)
    index.data = torch.tensor(3)
    assert guarded.passes(compiled, index)
    for other in (torch.tensor(4), torch.tensor(4.5), torch.tensor([1, 3]), torch.tensor([4]), None, 3, "3"):
        assert not guarded.passes(compiled, other)
    for same in (torch.tensor([3]), torch.tensor(3, dtype=torch.int32), torch.tensor(3.0)):
        assert guarded.passes(compiled, same)
    assert compiled.slow == () and guarded.program(index, ItemIs(-(2**63))).check(
        guarded.frame(torch.tensor(-(2**63)))
    )
