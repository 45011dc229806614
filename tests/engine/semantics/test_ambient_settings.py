"""Settings changed in a frame, hooks registered in it, tensors without a model: results are plain Python's."""

import dynacheck
import pytest
import torch
from torch import nn


@pytest.fixture(autouse=True)
def defaults():
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.use_deterministic_algorithms(False)


def everything():
    return (
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )


def changed_and_back(x):
    torch.set_default_dtype(torch.float64)
    y = torch.ones(3)
    torch.set_default_dtype(torch.float32)
    return x + y, torch.zeros(2)


def left_changed(x):
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    return x + 1, torch.ones(3)


def across_a_break(x):
    torch.set_default_device("meta")
    y = torch.ones(3)
    print(end="")
    z = torch.ones(3)
    torch.set_default_device("cpu")
    return x + 1, y, z, torch.ones(3)


def deterministic(x):
    torch.use_deterministic_algorithms(True, warn_only=True)
    return x + torch.are_deterministic_algorithms_enabled()


def refused(x):
    try:
        torch.set_default_dtype(torch.int64)
    except TypeError as error:
        return x + 1, str(error)


def described(value):
    return (value.dtype, value.device, value.tolist() if value.device.type == "cpu" else None)


@pytest.mark.parametrize("fn", [changed_and_back, left_changed, across_a_break, deterministic, refused])
def test_settings(fn, seen):
    outcomes = []
    for call in (fn, dynacheck.compile(fn, backend="eager")):
        for _ in range(2):
            torch.set_default_dtype(torch.float32)
            torch.set_default_device(None)
            torch.use_deterministic_algorithms(False)
            result = call(torch.ones(3))
            parts = result if isinstance(result, tuple) else (result,)
            outcomes.append(
                ([described(p) if isinstance(p, torch.Tensor) else p for p in parts], everything())
            )
    assert outcomes[:2] == outcomes[2:]
    assert seen.graphs


def test_a_hook_registered_and_removed_in_the_frame(seen):
    layer = nn.Linear(3, 3)

    def f(x):
        handle = layer.register_forward_hook(lambda module, args, out: out * 2)
        y = layer(x)
        handle.remove()
        return y, layer(x)

    x = torch.ones(3)
    compiled = dynacheck.compile(f, backend="eager")
    for _ in range(2):
        torch.testing.assert_close(compiled(x), f(x))
    assert seen.graphs and not layer._forward_hooks


def test_a_stream_is_a_clean_break(seen):
    def f(x):
        y = x + 1
        with torch.cuda.stream(None):  # does nothing, with no GPU too
            y = y * 2
        return y + 1

    compiled = dynacheck.compile(f, backend="eager")
    for x in (torch.ones(3), torch.zeros(3)):
        assert torch.equal(compiled(x), f(x))
    assert seen.graph_breaks and not seen.failures


@pytest.mark.filterwarnings("ignore:.*quantize")
def test_quantized_tensors_break(seen):
    def f(x):
        y = x + 1
        quantized = torch.quantize_per_tensor(y, 0.1, 0, torch.qint8)
        return quantized.dequantize() * 2

    x = torch.rand(3)
    torch.testing.assert_close(dynacheck.compile(f, backend="eager")(x), f(x))
    assert seen.graphs and seen.graph_breaks
