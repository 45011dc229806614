"""Hooks registered again, and tensors as indices, between calls: results are plain Python's."""

import dynacheck
import pytest
import torch
from torch import nn

x = torch.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("options", [{}, {"with_kwargs": True}, {"always_call": True}, {"prepend": True}])
def test_hooks_registered_again(options, seen):
    layer = nn.Linear(4, 2)
    compiled = dynacheck.compile(lambda value: layer(value), backend="eager")
    for scale in (2, 3, 2, 3):
        named = "with_kwargs" in options
        hook = (lambda m, a, k, out: out * 2) if named else (lambda m, a, out: out * 2)
        other = (lambda m, a, k, out: out + 1) if named else (lambda m, a, out: out + 1)
        handles = [
            layer.register_forward_hook(h, **options)
            for h in ((hook, other) if scale == 2 else (other, hook))
        ]
        torch.testing.assert_close(compiled(x), layer(x))
        handles[0].remove()
        torch.testing.assert_close(compiled(x), layer(x))
        handles[1].remove()
    torch.testing.assert_close(compiled(x), layer(x))
    assert seen.graphs


def test_a_hook_that_gets_keywords_takes_the_place_of_one_that_does_not(seen):
    layer = nn.Linear(4, 2)
    compiled = dynacheck.compile(lambda value: layer(value), backend="eager")

    def hook(module, args, *rest):
        return rest[-1] * len(rest)

    for options in ({}, {"with_kwargs": True}, {}):
        handle = layer.register_forward_hook(hook, **options)
        torch.testing.assert_close(compiled(x), layer(x))
        handle.remove()
    assert len(seen.recompiles) == 1


def read(value, i):
    return value[i], value[:, i], value[i, 1:], value[i, i]


def written(value, i):
    value = value.clone()
    value[i] = 1.0
    value[0, i] += 2
    return value


def moved(value, i):
    first = value[i]
    i.add_(1)
    return first, value[i]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.bool])
@pytest.mark.parametrize("fn", [read, written, moved])
def test_indices(fn, dtype, seen):
    compiled = dynacheck.compile(fn, backend="eager")
    for index in (0, 1, 1, -1):
        one, other = (torch.tensor(index).to(dtype) for _ in range(2))
        try:
            wanted = fn(x, one)
        except RuntimeError as error:
            with pytest.raises(RuntimeError, match=str(error)[:20]):
                compiled(x, other)
            continue
        torch.testing.assert_close(compiled(x, other), wanted)
        assert torch.equal(one, other)
    assert seen.graphs or dtype is not torch.int64 or fn is moved


def test_an_index_out_of_range(seen):
    compiled = dynacheck.compile(lambda value, i: value[i] * 2, backend="eager")
    compiled(x, torch.tensor(1))
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(x, torch.tensor(7))


def test_a_view_by_a_tensor_index_is_written_through(seen):
    def f(value, i):
        value[i].mul_(2)
        return value + 1

    one, other = x.clone(), x.clone()
    compiled = dynacheck.compile(f, backend="eager")
    for index in (0, 2):
        torch.testing.assert_close(compiled(one, torch.tensor(index)), f(other, torch.tensor(index)))
        torch.testing.assert_close(one, other)
    assert seen.graphs
