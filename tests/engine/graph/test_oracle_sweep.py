"""The oracle over torch's operator database: predicted facts against real runs and against fake tensors.

Every operator is called with its sample inputs, out of place, in place and with `out=`, in several variants: plain, with
gradients, under autocast, channels last, transposed, not leaves, views, and with 0-dimensional tensors of another device.
Compared is a picture of the result and of the arguments afterwards: each tensor's facts, which storage it is over and
which tensor it is a view of.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from dynacheck.graph.facts import TensorRef, UnsupportedTensor, facts_of
from dynacheck.graph.oracle import DataDependent, OperatorRaised, UnsupportedOperator
from dynacheck.graph.throwaway import as_no_grad
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.utils import _pytree as pytree

OPERATORS = pytest.importorskip("torch.testing._internal.common_methods_invocations").op_db
SAMPLED = 97
"""The plain set has every so-manieth operator."""
FIELDS = (
    "shape", "storage_offset", "dtype", "device", "requires_grad", "is_leaf", "is_conj", "is_neg", "is_inference",
    "view",
)  # fmt: skip
IN_INFERENCE = ("requires_grad", "is_leaf", "is_inference", "view", "view of")
DTYPES = (torch.float32, torch.complex64, torch.int64)
Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]

# -- variants


def kept(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def laid_out(tensor: torch.Tensor, stride: tuple[int, ...]) -> torch.Tensor:
    made = torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype, device=tensor.device)
    return made.copy_(tensor.detach()).requires_grad_(tensor.requires_grad)


def channels_last(tensor: torch.Tensor) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if tensor.ndim not in formats:
        return tensor
    return laid_out(
        tensor, torch.empty(tensor.shape, device="meta").to(memory_format=formats[tensor.ndim]).stride()
    )


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.ndim < 2:
        return tensor
    shape = (tensor.shape[-1], *tensor.shape[1:-1], tensor.shape[0])
    return laid_out(tensor, torch.empty(shape, device="meta").transpose(0, -1).stride())


def non_leaf(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone()


def view(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.flatten()
    return torch.cat([flat, flat, flat])[flat.numel() : 2 * flat.numel()].view(tensor.shape)


def flagged(tensor: torch.Tensor) -> torch.Tensor:
    """Conjugated, or, where that means nothing, negated: both are bits of the tensor."""
    return (
        tensor.conj()
        if tensor.is_complex()
        else torch._neg_view(tensor)
        if tensor.dtype != torch.bool
        else tensor
    )


def elsewhere(tensor: torch.Tensor) -> torch.Tensor:
    """On a GPU, or on the meta device; 0-dimensional tensors stay where they are."""
    if tensor.ndim == 0:
        return tensor
    device = "cuda" if torch.cuda.is_available() else "meta"
    return tensor.detach().to(device).requires_grad_(tensor.requires_grad)


def autocast() -> Any:
    return torch.autocast("cpu", torch.bfloat16)


# name -> how tensors are changed, whether samples require grad (where the operator can), what is on
VARIANTS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], bool, Callable[[], Any]]] = {
    "plain": (kept, False, contextlib.nullcontext),
    "gradient": (kept, True, contextlib.nullcontext),
    "no_grad": (view, True, torch.no_grad),
    "inference": (kept, True, torch.inference_mode),
    "autocast": (kept, False, autocast),
    "autocast_gradient": (kept, True, autocast),
    "channels_last": (channels_last, True, contextlib.nullcontext),
    "transposed": (transposed, True, contextlib.nullcontext),
    "non_leaf": (non_leaf, True, contextlib.nullcontext),
    "view": (view, False, contextlib.nullcontext),
    "view_gradient": (view, True, contextlib.nullcontext),
    "flagged": (flagged, False, contextlib.nullcontext),
    "flagged_gradient": (flagged, True, contextlib.nullcontext),
    "elsewhere": (elsewhere, True, contextlib.nullcontext),
}


def mapped(value: Any, leaf: Callable[[torch.Tensor], Any] | None, seen: dict[int, Any]) -> Any:
    """A structure with its tensors replaced, the same ones by the same ones."""

    def one(item: Any) -> Any:
        if not isinstance(item, torch.Tensor):
            return item
        if id(item) not in seen:
            seen[id(item)] = leaf(item) if item.layout is torch.strided else item
        return seen[id(item)]

    return pytree.tree_map(one, value)


def calls(op: Any, dtype: torch.dtype, variant: str, count: int) -> Iterator[Call]:
    """Calls of an operator with its first samples: out of place, in place, into tensors given as `out`."""
    change, grad, _ = VARIANTS[variant]
    if change is flagged and op.name == "linalg.ldl_solve":
        return  # torch's kernel writes outside its buffer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = op.sample_inputs("cpu", dtype, requires_grad=grad)
        for sample in itertools.islice(found, count):
            whole = ((sample.input, *sample.args), sample.kwargs)
            changed = mapped(whole, change, {})
            if change in (channels_last, transposed) and not differs(whole, changed):
                continue
            yield op.op, *changed
            if op.inplace_variant is not None and isinstance(sample.input, torch.Tensor):
                yield op.inplace_variant, *mapped(whole, lambda t: change(t.detach().clone()), {})
                if grad:
                    yield op.inplace_variant, *mapped(whole, lambda t: non_leaf(change(t)), {})
            if op.supports_out and not grad and change is not elsewhere:
                args, kwargs = changed
                try:
                    out = mapped(op.op(*args, **kwargs), change, {})
                except Exception:
                    continue  # as the call without `out` has shown
                yield op.op, args, {**kwargs, "out": out}


def differs(one: Any, other: Any) -> bool:
    return any(a is not b for a, b in zip(pytree.tree_leaves(one), pytree.tree_leaves(other)))


# -- pictures


def picture(
    tensors: list[Any], known: list[Any], facts: Any, storage: Any, base: Any
) -> list[dict[str, Any]]:
    """What is to be equal of some tensors: facts, and who shares a storage or is a view of whom."""
    storages: dict[Any, int] = {}
    numbers = {id(t): i for i, t in reversed(list(enumerate([*known, *tensors])))}
    drawn = []
    for t, read in [(t, facts(t)) for t in [*known, *tensors]]:
        one = {name: getattr(read, name) for name in FIELDS}
        one["stride"] = tuple(s for n, s in zip(read.shape, read.stride) if n != 1 and 0 not in read.shape)
        one["storage"] = storages.setdefault(storage(t), len(storages))
        one["same as"] = numbers[id(t)]
        one["view of"] = None if read.view is None else numbers.get(id(base(t)), "another")
        drawn.append(one)
    return drawn[len(known) :]


def of_tensors(tensors: list[torch.Tensor], known: list[torch.Tensor]) -> list[dict[str, Any]]:
    return picture(
        tensors,
        known,
        lambda t: facts_of(t, torch.Tensor),
        lambda t: t.untyped_storage()._cdata,
        lambda t: t._base,
    )


def of_refs(refs: list[TensorRef], known: list[TensorRef]) -> list[dict[str, Any]]:
    return picture(refs, known, lambda r: r.facts, lambda r: id(r.storage), lambda r: r.base)


class Outcome:
    """What a call gave.

    Attributes:
        error: the type of the exception it raised, or None.
        result: the result with None for tensors.
        tensors: picture of the arguments afterwards and of the result's tensors.
    """

    def __init__(self, call: Callable[[], Any], arguments: list[Any], known: list[Any], draw: Any) -> None:
        self.error: Exception | None = None
        self.result: Any = None
        self.tensors: list[dict[str, Any]] = []
        try:
            leaves, spec = pytree.tree_flatten(call())
            made = [v for v in leaves if isinstance(v, (torch.Tensor, TensorRef))]
            self.tensors = draw([*arguments, *made], known)
        except Exception as error:
            self.error = error
            return
        rest = [None if isinstance(v, (torch.Tensor, TensorRef)) else v for v in leaves]
        self.result = str(spec), [(type(v), v) for v in rest]

    def kind(self) -> type | None:
        error = self.error
        return type(error.error if isinstance(error, OperatorRaised) else error) if error else None


def compared(one: Outcome, other: Outcome, skip: tuple[str, ...] = ()) -> list[str]:
    """Where an outcome differs from another, in all but the fields named."""
    if one.error or other.error:
        if one.kind() is other.kind():
            return []
        return [f"{one.kind()} {one.error} instead of {other.kind()} {other.error}"]
    found = []
    if one.result != other.result:
        found.append(f"result: {one.result} instead of {other.result}")
    if len(one.tensors) == len(other.tensors):
        for i, (a, b) in enumerate(zip(one.tensors, other.tensors)):
            found += [
                f"tensor {i}: {name} {a[name]} instead of {b[name]}"
                for name in a
                if name not in skip and a[name] != b[name]
            ]
    return found


def faked(call: Call, arguments: list[torch.Tensor], known: list[torch.Tensor]) -> Outcome:
    """What fake tensors give for a call."""
    target, args, kwargs = call
    with as_no_grad(), FakeTensorMode() as mode:
        mode.cache_enabled = False  # it takes a view of another offset for the one that it met first
        stood = [mode.from_tensor(t) for t in known]
        inner = mapped((args, kwargs), None, {id(t): fake for t, fake in zip(known, stood)})
        return Outcome(lambda: target(*inner[0], **inner[1]), stood[: len(arguments)], stood, of_tensors)


def outcomes(call: Call, oracle: Any, mirror: Any) -> tuple[Outcome, Outcome, Outcome]:
    """Predicted, real and fake outcome of one call."""
    target, args, kwargs = call
    arguments: list[torch.Tensor] = []
    mapped((args, kwargs), arguments.append, {})
    known = [*arguments, *(t._base for t in arguments if t._base is not None)]
    fake = faked(call, arguments, known)
    if isinstance(fake.error, DataDependentOutputException):  # forms in Python may ask for less
        with torch._C._EnablePythonDispatcher():
            fake = faked(call, arguments, known)
    refs: list[TensorRef] = []

    def predict() -> Any:
        refs.extend(mirror.ref(t) for t in known)
        return oracle.call(
            "call_function", target, mirror.map(args, mirror.ref), mirror.map(kwargs, mirror.ref)
        )

    predicted = Outcome(predict, [], refs, lambda made, _: of_refs([*refs[: len(arguments)], *made], refs))
    real = Outcome(lambda: target(*args, **kwargs), arguments, known, of_tensors)
    return predicted, real, fake


def check(call: Call, variant: str, oracle: Any, mirror: Any) -> str | None:
    """What is wrong with the prediction of a call: "" for nothing, None where nothing is predicted."""
    torch.manual_seed(0)
    with warnings.catch_warnings(), VARIANTS[variant][2]():
        warnings.simplefilter("ignore")
        predicted, real, fake = outcomes(call, oracle, mirror)
    if isinstance(predicted.error, (DataDependent, UnsupportedOperator, UnsupportedTensor)):
        return f"{predicted.error}, but fake tensors tell" if fake.error is None else None
    from_real = compared(predicted, real)
    # inference mode is off while fake tensors run: it makes them decompose more than real ones
    from_fake = compared(predicted, fake, IN_INFERENCE if variant == "inference" else ())
    if from_real and from_fake:
        return f"real: {from_real}; fake: {from_fake}"
    if from_fake and predicted.error is None:  # some fake kernels accept what real ones refuse
        return f"fake: {from_fake}"
    return ""


def sweep(ops: list[Any], variant: str, count: int, oracle: Any, mirrors: Any) -> tuple[int, list[str]]:
    """Check operators in a variant; returns how many calls were predicted, and what differs."""
    wrong: list[str] = []
    predicted = 0
    for op in ops:
        for dtype in DTYPES:
            if dtype not in op.dtypes or (
                VARIANTS[variant][1] and dtype not in op.supported_backward_dtypes("cpu")
            ):
                continue
            for call in calls(op, dtype, variant, count):
                found = check(call, variant, oracle, mirrors())
                predicted += found is not None
                if found:
                    wrong.append(f"{op.name} {op.variant_test_name} {dtype} {call[0]}: {found}")
    return predicted, wrong


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)  # fake tensors log a traceback for each operator that refuses
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("variant", VARIANTS)
def test_some_operators(variant, oracle, make_mirror):
    every = SAMPLED // 8 if variant == "channels_last" else SAMPLED  # few take images
    predicted, wrong = sweep(OPERATORS[::every], variant, 2, oracle, make_mirror)
    assert predicted > 0
    assert wrong == []


class Lying:
    """An oracle that tells one fact of a result wrong."""

    def __init__(self, oracle: Any, **lie: Any) -> None:
        self.oracle = oracle
        self.lie = lie

    def call(self, *args: Any) -> Any:
        ref = self.oracle.call(*args)
        ref.facts = ref.facts.replace(**self.lie)
        return ref


@pytest.mark.parametrize(
    "lie",
    [
        {"shape": (3, 2)}, {"stride": (1, 2)}, {"storage_offset": 1}, {"dtype": torch.float64}, {"is_leaf": True},
        {"requires_grad": False}, {"device": torch.device("meta")}, {"view": None}, {"is_conj": True}, {"is_neg": True},
    ],
    ids=lambda lie: next(iter(lie)),
)  # fmt: skip
def test_a_wrong_fact_is_found(lie, oracle, make_mirror):
    call = torch.Tensor.view, (torch.ones(3, 2, requires_grad=True), 2, 3), {}
    assert check(call, "plain", oracle, make_mirror()) == ""
    assert check(call, "plain", Lying(oracle, **lie), make_mirror())


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_all_operators(variant, oracle, make_mirror):
    predicted, wrong = sweep(OPERATORS, variant, 4, oracle, make_mirror)
    assert predicted > 100
    assert wrong == []
