"""What a frame writes to a module's `_parameters`, `_buffers` or `_modules` is what the module has from then on."""

from collections.abc import Callable
from typing import Any

import dynacheck
import pytest
import torch
from torch import nn

ONES = torch.ones(2, 2)


def model() -> nn.Module:
    made = nn.Linear(2, 2, bias=False)
    made.weight = nn.Parameter(torch.eye(2))
    made.register_buffer("b", torch.zeros(2))
    return made


def swapped_and_put_back(m: Any, x: torch.Tensor) -> Any:
    old = m._parameters["weight"]
    m._parameters["weight"] = ONES
    y = m(x)
    m._parameters["weight"] = old
    return y, m(x)


def functional_call(m: Any, x: torch.Tensor) -> Any:
    return torch.func.functional_call(m, {"weight": ONES}, (x,))


def through_vars(m: Any, x: torch.Tensor) -> Any:
    vars(m)["_parameters"]["weight"] = ONES
    return m(x), sum(p.sum() for p in m.parameters())


def deleted(m: Any, x: torch.Tensor) -> Any:
    w = m._parameters.pop("weight")
    had = hasattr(m, "weight")
    m._parameters["weight"] = w
    return m(x), had


def buffer_by_attribute(m: Any, x: torch.Tensor) -> Any:
    m.b = m.b + x
    return m._buffers["b"] * 2, "b" in m.__dict__


def buffer_made_and_assigned(m: Any, x: torch.Tensor) -> Any:
    m._buffers["q"] = x
    m.q = m.q + 1
    return m._buffers["q"] * 2, "q" in m.__dict__


def buffer_removed_and_assigned(m: Any, x: torch.Tensor) -> Any:
    m._buffers.pop("b", None)
    m.b = x
    return m.b * 2, "b" in m.__dict__


def submodule_put(m: Any, x: torch.Tensor) -> Any:
    m._modules["k"] = nn.Identity()
    return m.k(x) + 1


def another_container(m: Any, x: torch.Tensor) -> Any:
    m._parameters = {"weight": ONES, "bias": None}
    return m(x)


@pytest.mark.parametrize(
    "f",
    [
        swapped_and_put_back,
        functional_call,
        through_vars,
        deleted,
        buffer_by_attribute,
        buffer_made_and_assigned,
        buffer_removed_and_assigned,
        submodule_put,
        another_container,
    ],
    ids=lambda f: f.__name__,
)
def test_reads_see_what_the_frame_wrote(f: Callable[..., Any]) -> None:
    plain, traced = model(), model()
    compiled = dynacheck.compile(f, backend="eager")
    for x in (torch.tensor([2.0, 3.0]), torch.tensor([4.0, 5.0])):
        with dynacheck.observe() as report:
            found = compiled(traced, x)
        assert str(found) == str(f(plain, x))
        assert not report.graph_breaks
        for container in ("_parameters", "_buffers", "_modules"):
            assert str(vars(traced)[container]) == str(vars(plain)[container])
        assert list(vars(traced)) == list(vars(plain))


def test_modules_are_made_also_where_torchs_compiler_wraps_their_constructor() -> None:
    from torch._dynamo.mutation_guard import install_generation_tagging_init

    install_generation_tagging_init()
    assert "patched_init" in nn.Module.__init__.__qualname__
    compiled = dynacheck.compile(submodule_put, backend="eager", fullgraph=True)
    x = torch.tensor([2.0, 3.0])
    assert str(compiled(model(), x)) == str(submodule_put(model(), x))
