"""The oracle's memo, aliasing and mutation, case by case, against eager."""

from __future__ import annotations

import operator

import pytest
import torch
import torch.nn.functional as F
from dynacheck.graph.facts import TensorFacts, TensorRef, UnsupportedTensor, facts_of
from dynacheck.graph.oracle import DataDependent, OperatorRaised, Oracle, UnsupportedOperator


def ref(tensor: torch.Tensor) -> TensorRef:
    return TensorRef(facts_of(tensor))


def leaf(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, requires_grad=True)


# Programs: `call` runs an operator on real tensors and predicts it.


def write_to_view_of_plain(call):
    x, w = torch.ones(4, 3), leaf(12)
    v, row = call("view", x, 12), call("__getitem__", x, 0)
    call("mul_", v, w)
    call("sum", row)
    call("sum", x)


def write_to_base_of_views(call):
    x = torch.ones(4, 3)
    a, b = call("__getitem__", x, 0), call("__getitem__", x, 1)
    call("mul_", a, leaf(3))
    call("add", a, b)
    call("add_", x, 1)


def write_to_detached(call):
    x = call("mul", leaf(3), 2)
    d = call("detach", x)
    call("add_", d, 1)
    call("mul_", d, leaf(3))


def write_to_part_of_chunk(call):
    x = call("mul", torch.ones(4, 6), 2)
    a, b = call("chunk", x, 2, -1)
    call("add_", a, 1)
    call("mul_", b, a)


def write_to_non_leaf(call):
    x = call("mul", leaf(3), 2)
    call("add_", x, 1)
    call("relu_", x)
    v = call("view", x, 1, 3)
    call("sigmoid_", v)


def index_write(call):
    x, w = torch.zeros(4, 3), leaf(3)
    call(operator.setitem, x, 0, w)
    call(operator.setitem, x, (slice(None), 1), 2.0)
    call("sum", x)


def metadata_writes(call):
    x = torch.ones(2, 3)
    call("t_", x)
    call("unsqueeze_", x, 0)
    call("squeeze_", x)
    call("transpose_", x, 0, 1)
    y = torch.ones(2, 3)
    v = call("view", y, 6)
    call("resize_", y, 4, 4)
    call("sum", v)


def requires_grad_and_detach_in_place(call):
    x = call("requires_grad_", torch.ones(3))
    y = call("mul", x, 2)
    call("detach_", y)
    call("requires_grad_", y, True)
    call("mul", y, 2)


def out_argument(call):
    out = torch.empty(3)
    call(torch.add, torch.ones(3), torch.ones(3), out=out)
    call(torch.add, torch.ones(3), 1, out=torch.empty(3))


def set_to_other_storage(call):
    x, y = torch.ones(3), torch.ones(2, 2)
    call("set_", x, y)
    call("add_", x, 1)


def view_of_view_made_a_leaf(call):
    flat = torch.ones(6)
    w = call("requires_grad_", call("__getitem__", flat, slice(0, 4)))
    v = call("view", w, 2, 2)
    call("sum", v)
    call("t", v)
    call("sum", flat)


def grown_on_meta(call):
    call("clamp_max_", torch.ones(2, 1, device="meta"), torch.ones(2, 2, device="meta"))


def same_tensor_returned(call):
    x = torch.ones(2, 3)
    call("contiguous", x)
    call("to", x, torch.float32)
    call(F.dropout, x, 0.5, False)
    call("cpu", x)
    call("expand", x, 2, 3)


def complex_views(call):
    z = torch.ones(3, 4, dtype=torch.complex64)
    r = call(torch.view_as_real, z)
    call("add_", r, 1)
    c = call("conj", z)
    call("mul", c, z)
    i = call(torch.imag, c)
    call("add", i, 1)
    call("add", call(torch.real, z), 1)


def conj_input(call):
    z = torch.ones(3, dtype=torch.complex64).conj()
    call("mul", z, 2)
    call("resolve_conj", z)


def dtype_view(call):
    x = torch.ones(4, 2)
    v = call("view", x, torch.int32)
    call("add_", v, 1)


def expanded(call):
    x = call("expand", torch.ones(1, 3), 4, 3)
    call("add", x, 1)
    call("sum", x, 0)


def grad_modes(call):
    w = leaf(3)
    with torch.no_grad():
        v = call("view", w, 3, 1)
        call("mul", v, 2)
    call("mul", v, 2)
    with torch.enable_grad():
        call("mul", w, 2)
    with torch.inference_mode():
        i = call("mul", w, 2)
        call("add_", i, 1)
        call("view", i, 3, 1)
        call("view", w, 3, 1)
    call("add", i, 1)


def inputs_that_are_views(call):
    base = torch.arange(24.0)
    x, y = base[2:14].view(3, 4), base[12:].view(3, 4)
    call("add", x, y)
    call("mul_", x, leaf(4))
    call("sum", y)
    call("as_strided", x, (2, 2), (4, 1), 3)


def views_of_non_leaf_inputs(call):
    base = leaf(4, 6) * 2
    x, y = base[:, :3], base[:, 3:]
    call("mul_", x, 2)
    call("add", x, y)


def errors(call):
    for fn in (
        lambda: call("add_", leaf(3), 1),
        lambda: call("mul_", call("view", leaf(3), 3, 1), 2),
        lambda: call("view", torch.ones(2, 3), 4),
        lambda: call("add_", torch.ones(3), torch.ones(2, 3)),
        lambda: call("sum", torch.ones(2), 5),
        lambda: call(torch.cat, [torch.ones(2), torch.ones(2, 2)]),
        lambda: call("no_such_method", torch.ones(2)),
    ):
        with pytest.raises((RuntimeError, IndexError, AttributeError)):
            fn()


PROGRAMS = [
    v
    for v in list(globals().values())
    if callable(v) and getattr(v, "__code__", None) and v.__code__.co_varnames[:1] == ("call",)
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_facts_aliasing_and_mutation_are_eagers(program, mirror):
    def call(target, *args, **kwargs):
        func = getattr(torch.Tensor, target, None) if isinstance(target, str) else target
        if func is None:
            with pytest.raises(OperatorRaised, match="AttributeError"):
                mirror.oracle.call("call_method", target, [mirror.ref(args[0])])
            raise AttributeError(target)
        return mirror.call(func, args, kwargs)

    program(call)
    assert mirror.mismatches == []
    assert mirror.unsupported == []


def test_facts_are_interned():
    a, b = facts_of(torch.ones(2, 3)), facts_of(torch.zeros(2, 3))
    assert a is b and hash(a) == hash(b)
    assert a.replace(requires_grad=True) is facts_of(leaf(2, 3))
    assert a.replace() is a and a.ndim == 2 and a.numel == 6
    assert facts_of(torch.ones(3, 2)) is not a
    assert facts_of(torch.nn.Parameter(torch.ones(2, 3))).cls is torch.nn.Parameter
    with pytest.raises(AttributeError):
        a.shape = (1,)


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [
        (torch.ones(2, 2).to_sparse(), "layout torch.sparse_coo"),
        (torch.eye(2).to_sparse_csr(), "layout torch.sparse_csr"),
        (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "nested"),
        (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "quantized"),
    ],
    ids=["sparse", "csr", "nested", "quantized"],
)
def test_kinds_without_facts_are_refused_by_name(tensor, reason):
    with pytest.raises(UnsupportedTensor, match=reason):
        facts_of(tensor)


def test_a_second_lookup_is_a_hit_and_gives_a_fresh_tensor():
    oracle = Oracle()
    x, w = ref(torch.ones(2, 3)), ref(leaf(4, 3))
    first = oracle.call("call_function", F.linear, (x, w))
    second = oracle.call("call_function", F.linear, (x, w))
    assert (oracle.misses, oracle.hits) == (1, 1)
    assert first is not second and first.storage is not second.storage and first.facts is second.facts


def test_a_memo_entry_serves_other_tensors_of_the_same_facts():
    oracle = Oracle()
    for _ in range(3):
        oracle.call("call_method", "t", (ref(torch.ones(2, 3)),))
    assert oracle.misses == 1


@pytest.mark.parametrize(("a", "b"), [(1, 1.0), (1, True), (0, False), (2, 2.0)])
def test_equal_numbers_of_other_types_are_other_keys(a, b):
    oracle = Oracle()
    x = ref(torch.ones(3, dtype=torch.int64))
    for value in (a, b):
        real = torch.ones(3, dtype=torch.int64) * value
        assert oracle.call("call_function", operator.mul, (x, value)).facts.dtype is real.dtype


def test_aliasing_is_part_of_the_key():
    oracle = Oracle()
    x, y = ref(torch.ones(3)), ref(torch.ones(3))
    assert oracle.call("call_method", "add_", (x, x)) is x
    assert oracle.call("call_method", "add_", (x, y)) is x
    assert oracle.call("call_method", "add_", (y, x)) is y
    assert oracle.misses == 2


def states():
    return {
        "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
        "autocast_half": lambda: torch.autocast("cpu", torch.float16),
        "no_grad": torch.no_grad,
        "inference": torch.inference_mode,
        "device": lambda: torch.device("meta"),
    }


@pytest.mark.parametrize("name", states())
def test_ambient_state_is_part_of_the_key(name):
    oracle = Oracle()
    w, x = leaf(3, 3), torch.ones(3, 3)

    def both():
        made = oracle.call("call_function", torch.ones, (2,))
        out = oracle.call("call_function", torch.matmul, (ref(w), ref(x)))
        return facts_of(torch.ones(2)), made.facts, facts_of(torch.matmul(w, x)), out.facts

    for _ in range(2):
        with states()[name]():
            a, b, c, d = both()
            assert a is b and c is d
        a, b, c, d = both()
        assert a is b and c is d


def test_default_dtype_is_part_of_the_key():
    oracle = Oracle()
    before = torch.get_default_dtype()
    try:
        for dtype in (torch.float64, torch.float32, torch.float64):
            torch.set_default_dtype(dtype)
            assert oracle.call("call_function", torch.ones, (2,)).facts.dtype is dtype
    finally:
        torch.set_default_dtype(before)


def test_attention_switches_are_part_of_the_key():
    oracle = Oracle()
    q = torch.ones(1, 5, 2, 8).transpose(1, 2)
    from torch.nn.attention import SDPBackend, sdpa_kernel

    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel(backend):
            real = F.scaled_dot_product_attention(q, q, q)
            out = oracle.call("call_function", F.scaled_dot_product_attention, (ref(q),) * 3)
            assert out.facts.stride == real.stride()


@pytest.mark.parametrize(
    ("target", "args"),
    [
        ("item", (torch.ones(()),)),
        ("tolist", (torch.ones(3),)),
        ("nonzero", (torch.ones(3),)),
        ("__bool__", (torch.ones(()),)),
        (operator.getitem, (torch.ones(3), torch.ones(3) > 0)),
        (torch.unique, (torch.ones(3),)),
        (torch.masked_select, (torch.ones(3), torch.ones(3) > 0)),
        (torch.tensor_split, (torch.ones(6), torch.tensor([2, 4]))),
    ],
    ids=["item", "tolist", "nonzero", "bool", "getitem", "unique", "masked_select", "tensor_split"],
)
def test_results_that_depend_on_data(target, args, oracle):
    op = "call_method" if isinstance(target, str) else "call_function"
    for _ in range(2):
        with pytest.raises(DataDependent):
            oracle.call(op, target, [ref(a) if isinstance(a, torch.Tensor) else a for a in args])


def test_raised_errors_are_fresh_and_hold_no_frames(oracle):
    x = ref(torch.ones(2, 3))
    raised = []
    for _ in range(2):
        with pytest.raises(OperatorRaised) as info:
            oracle.call("call_method", "view", (x, 5))
        raised.append(info.value.exc)
    assert raised[0] is not raised[1]
    assert type(raised[0]) is RuntimeError and str(raised[0]) == "shape '[5]' is invalid for input of size 6"
    assert raised[0].__traceback__ is None


def test_a_subclass_is_not_predicted(oracle):
    class Mine(torch.Tensor):
        pass

    with pytest.raises(UnsupportedOperator, match="Mine"):
        oracle.call("call_method", "sin", (ref(torch.ones(2).as_subclass(Mine)),))


def test_random_state_is_left_alone(oracle):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    for target, args in [
        (torch.rand, (3, 4)),
        (torch.randperm, (7,)),
        (F.dropout, (ref(torch.ones(9)),)),
        ("uniform_", (ref(torch.ones(11)),)),
        (torch.multinomial, (ref(torch.ones(8)), 3)),
    ]:
        oracle.call("call_method" if isinstance(target, str) else "call_function", target, args)
    assert torch.equal(torch.get_rng_state(), before)


def test_user_modes_do_not_see_lookups(oracle):
    from torch.overrides import TorchFunctionMode

    seen = []

    class Nosy(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = ref(torch.ones(3, 17))
    with Nosy():
        for _ in range(2):
            oracle.call("call_method", "logsumexp", (x, 1))
        assert seen == []


def test_other_devices_need_no_hardware(oracle):
    cuda = ref(torch.ones(2, 3))
    cuda = TensorRef(cuda.facts.replace(device=torch.device("cuda:0")))
    assert oracle.call("call_method", "relu", (cuda,)).facts.device == torch.device("cuda:0")
    with pytest.raises(OperatorRaised, match="device"):
        oracle.call("call_function", torch.add, (cuda, ref(torch.ones(2, 3))))


ATTRIBUTES = """T mT H mH real data shape ndim dtype device layout requires_grad is_leaf itemsize nbytes
is_cuda is_cpu is_meta is_sparse is_quantized is_nested is_mkldnn is_xpu is_mps name grad output_nr
_version""".split()
METHODS = [("size", 0), ("size", -1), ("stride", 1)] + [
    (name,)
    for name in """size stride dim ndimension numel nelement element_size storage_offset is_contiguous
    is_floating_point is_complex is_signed is_conj is_neg is_inference get_device __len__""".split()
]


@pytest.mark.parametrize("tensor", [torch.ones(2, 3), torch.ones(3, 2).t(), torch.ones(4, 6)[1:, ::2],
                                    torch.nn.Parameter(torch.ones(2, 2)), torch.ones(0, 3)],
                         ids=["plain", "transposed", "strided", "parameter", "empty"])  # fmt: skip
def test_attributes_and_metadata_methods(tensor, oracle):
    for name in ATTRIBUTES:
        real, found = getattr(tensor, name), oracle.attribute(ref(tensor), name)
        if isinstance(real, torch.Tensor):
            assert found.facts.shape == tuple(real.shape) and found.facts.stride == real.stride(), name
            assert found.facts.requires_grad == real.requires_grad, name
        else:
            assert type(found) is type(real) and found == real or found is real, name
    for name, *args in METHODS:
        real, found = getattr(tensor, name)(*args), oracle.attribute(ref(tensor), name, *args)
        assert type(found) is type(real) and found == real, name


def test_attribute_errors_are_the_tensors(oracle):
    with pytest.raises(OperatorRaised, match="has no attribute 'nothing'"):
        oracle.attribute(ref(torch.ones(2)), "nothing")
    with pytest.raises(OperatorRaised, match="Dimension out of range"):
        oracle.attribute(ref(torch.ones(2)), "size", 3)
    with pytest.raises(OperatorRaised, match="len\\(\\) of a 0-d tensor"):
        oracle.attribute(ref(torch.ones(())), "__len__")


def test_channels_last_contiguity(oracle):
    x = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert oracle.attribute(ref(x), "is_contiguous", memory_format=torch.channels_last) is True
    assert oracle.attribute(ref(x), "is_contiguous") is False


def test_facts_have_a_readable_form():
    text = repr(facts_of(torch.nn.Parameter(torch.ones(2, 3))))
    assert "torch.float32" in text and "[2, 3]" in text and "Parameter" in text and "requires_grad" in text
    assert isinstance(TensorFacts.__doc__, str)


@pytest.mark.parametrize("device", [None, "cpu", "meta"])
def test_factories(device, mirror):
    for fn, args in [
        (torch.zeros, (2, 3)),
        (torch.arange, (5,)),
        (torch.arange, (0.0, 5)),
        (torch.full, ((2,), 1)),
        (torch.rand, (3,)),
        (torch.eye, (3,)),
        (torch.empty, (2, 0)),
        (torch.linspace, (0, 1, 4)),
    ]:
        for more in ({}, {"dtype": torch.float64}, {"requires_grad": fn is not torch.full}):
            if fn is torch.arange and more.get("requires_grad") and args == (5,):
                continue
            mirror.call(fn, args, {**more, "device": device})
    assert mirror.mismatches == []


def test_subclasses_of_parameter_are_parameters(oracle):
    class Weight(torch.nn.Parameter):
        pass

    weight = ref(Weight(torch.ones(3, 3)))
    assert weight.facts.cls is Weight
    assert oracle.call("call_function", torch.matmul, (weight, weight)).facts.cls is torch.Tensor
    with torch.no_grad():
        assert oracle.call("call_method", "add_", (weight, 1)) is weight
    assert weight.facts.cls is Weight
