"""Every operator of torch's operator database, as a function, a method and in place: captured whole where torch.compile
captures it, refused where that refuses it, with eager's results."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import dynacheck
import pytest
import torch

PARTS = 24
KNOWN = {
    "unflatten, method": "torch refuses Tensor.unflatten called through the class, though it captures x.unflatten()",
    "tensor_split, sections": "torch counts on a form in Python for sections given as a tensor",
    "nn_functional_linear_cross_entropy_chunked": "a graph that holds an object of options (torch 2.13 and later)",
}
UNDEFINED = ("empty", "rand", "normal", "bernoulli", "multinomial", "dropout", "uniform", "cauchy", "exponential",
             "geometric", "log_normal", "poisson", "svd_lowrank", "pca_lowrank")  # fmt: skip
"""Their results are anything, or drawn."""


def database() -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db if op.dtypes]


def outcome(compile_: Any, function: Any, sample: Any) -> tuple[bool, Any]:
    """Whether it is captured whole, and what it gives."""
    torch._dynamo.reset()
    dynacheck.reset()

    def call(x: Any, args: Any, kwargs: Any) -> Any:
        return function(x, *args, **kwargs)

    x = sample.input.clone() if isinstance(sample.input, torch.Tensor) else sample.input
    try:
        return True, compile_(call)(x, sample.args, sample.kwargs)
    except Exception as error:
        return False, type(error)


def _known(op: Any, variant: str, sample: Any) -> bool:
    sections = op.name == "tensor_split" and any(isinstance(a, torch.Tensor) for a in sample.args)
    return (
        f"{op.name}, {variant}" in KNOWN
        or (sections and "tensor_split, sections" in KNOWN)
        or any(op.formatted_name.startswith(name) for name in KNOWN)
    )


def same(a: Any, b: Any) -> bool:
    try:
        torch.testing.assert_close(a, b, equal_nan=True)
    except (AssertionError, TypeError):
        return type(a) is type(b) and str(a) == str(b)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_operators(part: int) -> None:
    logging.disable(logging.ERROR)  # fake tensors log what operators raise
    wrong, captured = [], 0
    try:
        for op in database()[part::PARTS]:
            dtype = torch.float32 if torch.float32 in op.dtypes else min(op.dtypes, key=str)
            variants = {"function": op.op, "method": op.method_variant, "in place": op.inplace_variant}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for sample in list(op.sample_inputs("cpu", dtype))[:2]:
                    for variant, function in variants.items():
                        if function is None or _known(op, variant, sample):
                            continue
                        theirs, _ = outcome(
                            lambda f: torch.compile(f, backend="eager", fullgraph=True), function, sample
                        )
                        ours, found = outcome(
                            lambda f: dynacheck.compile(f, backend="eager", fullgraph=True), function, sample
                        )
                        captured += ours
                        if theirs != ours:
                            wrong.append((op.formatted_name, variant, theirs, found))
                        elif ours and not any(name in op.name for name in UNDEFINED):
                            worked, expected = outcome(lambda f: f, function, sample)
                            if not worked or not same(found, expected):
                                wrong.append((op.formatted_name, variant, "another result"))
    finally:
        logging.disable(logging.NOTSET)
    assert not wrong and captured > 20
