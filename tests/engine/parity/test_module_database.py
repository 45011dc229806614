"""Every module of torch's module database, in training and evaluation: captured whole where torch.compile captures it,
with eager's results, gradients and buffers."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import dynacheck
import pytest
import torch

PARTS = 16


def outcome(compile_: Any, info: Any, sample: Any, training: bool) -> tuple[bool, Any]:
    """Whether a fresh module is captured whole, and what it gives: result, gradients, buffers."""
    torch._dynamo.reset()
    dynacheck.reset()
    torch.manual_seed(0)
    made, called = sample.constructor_input, sample.forward_input
    module = info.module_cls(*made.args, **made.kwargs).train(training)

    def anew(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return value.detach().clone().requires_grad_(value.requires_grad)

    args, kwargs = [anew(a) for a in called.args], {k: anew(v) for k, v in called.kwargs.items()}
    torch.manual_seed(1)
    try:
        result = compile_(module)(*args, **kwargs)
    except Exception as error:
        return False, type(error)
    for value in result if isinstance(result, tuple) else (result,):
        if isinstance(value, torch.Tensor) and value.requires_grad:
            value.sum().backward()
            break
    leaves = [*module.parameters(), *(a for a in args if isinstance(a, torch.Tensor) and a.is_leaf)]
    return True, (result, [leaf.grad for leaf in leaves], list(module.buffers()))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        try:
            torch.testing.assert_close(a, b, equal_nan=True)
        except AssertionError:
            return False
        return True
    return type(a) is type(b) and str(a) == str(b)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_modules(part: int) -> None:
    from torch.testing._internal.common_modules import module_db

    logging.disable(logging.ERROR)  # fake tensors log what operators raise
    wrong, captured = [], 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for info in list(module_db)[part::PARTS]:
                for training in (True, False):
                    options = {
                        "device": "cpu",
                        "dtype": torch.float32,
                        "requires_grad": True,
                        "training": training,
                    }
                    for sample in list(info.module_inputs_func(info, **options))[:4]:
                        expected = outcome(lambda m: m, info, sample, training)
                        theirs, _ = outcome(
                            lambda m: torch.compile(m, backend="eager", fullgraph=True),
                            info,
                            sample,
                            training,
                        )
                        ours = outcome(
                            lambda m: dynacheck.compile(m, backend="eager", fullgraph=True),
                            info,
                            sample,
                            training,
                        )
                        captured += ours[0]
                        if ours[0] != theirs:
                            wrong.append((info.name, training, theirs, ours[1]))
                        elif ours[0] and not (expected[0] and same(ours[1], expected[1])):
                            wrong.append((info.name, training, "another result"))
    finally:
        logging.disable(logging.NOTSET)
    assert not wrong and captured > 10
