"""Fixtures that hold the metadata oracle to real eager runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from dynacheck.graph.facts import Storage, TensorFacts, TensorRef, UnsupportedTensor, facts_of
from dynacheck.graph.oracle import DataDependent, OperatorRaised, Oracle, UnsupportedOperator
from torch.overrides import TorchFunctionMode


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def real_facts(tensor: torch.Tensor) -> TensorFacts:
    with torch._C.DisableTorchFunction():
        return facts_of(tensor)


def strides(facts: TensorFacts) -> tuple[Any, ...]:
    """Strides that matter: fake kernels place those of dimensions of size 1 differently (as in torch)."""
    return () if 0 in facts.shape else tuple(s for n, s in zip(facts.shape, facts.stride) if n != 1)


def differences(predicted: TensorFacts, actual: TensorFacts, skip: tuple[str, ...] = ()) -> list[str]:
    out = []
    if strides(predicted) != strides(actual):
        out.append(f"stride: predicted {predicted.stride}, real {actual.stride}")
    for name in (
        "shape",
        "storage_offset",
        "dtype",
        "device",
        "requires_grad",
        "is_leaf",
        "is_conj",
        "is_neg",
        "is_inference",
        "cls",
        "view",
        "nbytes",
    ):
        if name not in skip and getattr(predicted, name) != getattr(actual, name):
            out.append(f"{name}: predicted {getattr(predicted, name)}, real {getattr(actual, name)}")
    return out


class Mirror:
    """Keeps one ref per real tensor and predicts each operator before it runs."""

    def __init__(self, oracle: Oracle, skip: tuple[str, ...] = ()) -> None:
        self.oracle = oracle
        self.skip = skip
        self.refs: dict[int, TensorRef] = {}
        self.storages: dict[int, Storage] = {}
        self.keep: list[Any] = []
        self.calls = 0
        self.mismatches: list[str] = []
        self.unsupported: list[str] = []

    def ref(self, tensor: torch.Tensor) -> TensorRef:
        ref = self.refs.get(id(tensor))
        if ref is None:
            facts = real_facts(tensor)
            base = tensor._base if facts.view is not None else None
            storage = self.storage(tensor)
            ref = TensorRef(facts, storage, None if base is None else self.ref(base))
            self.know(tensor, ref)
        return ref

    def storage(self, tensor: torch.Tensor) -> Storage:
        with torch._C.DisableTorchFunction():
            storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self.storages:
            self.storages[key] = Storage(storage.nbytes())
            self.keep.append(storage)
        return self.storages[key]

    def know(self, tensor: torch.Tensor, ref: TensorRef) -> None:
        self.refs[id(tensor)] = ref
        self.keep.append(tensor)

    def map(self, value: Any, leaf: Callable[[torch.Tensor], Any]) -> Any:
        if isinstance(value, torch.Tensor):
            return leaf(value)
        if isinstance(value, torch.Size):
            return value
        if isinstance(value, (tuple, list)):
            items = [self.map(v, leaf) for v in value]
            if type(value) in (tuple, list):
                return type(value)(items)
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, dict):
            return {k: self.map(v, leaf) for k, v in value.items()}
        if isinstance(value, slice):
            return slice(self.map(value.start, leaf), self.map(value.stop, leaf), self.map(value.step, leaf))
        return value

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Predict, run, compare."""
        name = getattr(func, "__name__", str(func))
        if name == "__get__":
            name = f"{getattr(func.__self__, '__name__', '?')}.__get__"
        tensors: list[torch.Tensor] = []

        def seen(t: torch.Tensor) -> TensorRef:
            tensors.append(t)
            return self.ref(t)

        try:
            ref_args = self.map(args, seen)
            ref_kwargs = self.map(kwargs, seen)
            predicted = self.oracle.call("call_function", func, ref_args, ref_kwargs)
            failure = None
        except (OperatorRaised, DataDependent, UnsupportedOperator, UnsupportedTensor) as error:
            predicted, failure = None, error
        try:
            actual = func(*args, **kwargs)
        except Exception as error:
            if not isinstance(failure, OperatorRaised):
                self.mismatches.append(
                    f"{name}: raises {type(error).__name__}: {error}, predicted {failure or predicted}"
                )
            raise
        self.calls += 1
        if failure is not None:
            kind = self.unsupported if not isinstance(failure, OperatorRaised) else self.mismatches
            kind.append(f"{name}: {type(failure).__name__}: {failure}")
            return actual
        problems = self.compare(predicted, actual)
        for i, tensor in enumerate(tensors):
            for text in differences(self.refs[id(tensor)].facts, real_facts(tensor), self.skip):
                problems.append(f"tensor argument {i} afterwards: {text}")
        if problems:
            self.mismatches.append(f"{name}({ref_args}, {ref_kwargs}): " + "; ".join(problems))
        return actual

    def compare(self, predicted: Any, actual: Any) -> list[str]:
        if isinstance(actual, torch.Tensor):
            if not isinstance(predicted, TensorRef):
                return [f"predicted {predicted!r}, real a tensor"]
            known = self.refs.get(id(actual))
            if known is not None:
                return [] if known is predicted else ["predicted another tensor object than the argument"]
            facts = real_facts(actual)
            problems = differences(predicted.facts, facts, self.skip)
            with torch._C.DisableTorchFunction():
                key = actual.untyped_storage()._cdata
            if key in self.storages:
                if self.storages[key] is not predicted.storage:
                    problems.append("shares a storage, not predicted")
            elif predicted.storage in self.storages.values():
                problems.append("predicted to share a storage")
            else:
                self.storages[key] = predicted.storage
                with torch._C.DisableTorchFunction():
                    self.keep.append(actual.untyped_storage())
            base = actual._base if facts.view is not None else None
            if base is not None and id(base) in self.refs and predicted.base is not self.refs[id(base)]:
                problems.append("another base")
            if problems:
                predicted.facts = facts
            self.know(actual, predicted)
            return problems
        if isinstance(actual, (tuple, list)):
            if type(predicted) is not type(actual) or len(predicted) != len(actual):
                return [f"predicted {type(predicted).__name__}, real {type(actual).__name__}"]
            return [text for p, a in zip(predicted, actual) for text in self.compare(p, a)]
        same = type(predicted) is type(actual) and predicted == actual
        return (
            []
            if same or actual is None and predicted is None
            else [f"predicted {predicted!r}, real {actual!r}"]
        )


class Watch(TorchFunctionMode):
    """Sends every torch call of a block through a Mirror."""

    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in (
            "__repr__",
            "set_grad_enabled",
            "_set_grad_enabled",
            "is_grad_enabled",
            "__set__",
            "_enter_autocast",
        ):
            return func(*args, **(kwargs or {}))
        return self.mirror.call(func, args, kwargs or {})


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture
def mirror(oracle) -> Mirror:
    oracle.refresh()
    return Mirror(oracle)


@pytest.fixture
def watched(mirror):
    """Run a function under watch and require that no prediction differs."""

    def run(fn, *args, unsupported: tuple[str, ...] = (), **kwargs):
        with Watch(mirror):
            out = fn(*args, **kwargs)
        assert mirror.mismatches == []
        assert [u for u in mirror.unsupported if not u.startswith(unsupported or ("?",))] == []
        assert mirror.calls > 0
        return out

    return run


@pytest.fixture
def make_mirror(oracle):
    """Make fresh mirrors over the session's oracle."""
    return lambda skip=(): Mirror(oracle, skip)
