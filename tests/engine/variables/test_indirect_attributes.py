"""Objects whose attributes aren't in a dict of their own are never taken for objects without attributes."""

import collections
import threading
import weakref
from typing import Any

import dynacheck
import pytest
import torch


class WithDefault(threading.local):
    value = 7


class Referent:
    value = 3


LOCAL, DEFAULTED = threading.local(), WithDefault()
LOCAL.value = DEFAULTED.value = 2
REFERENT = Referent()
PROXY = weakref.proxy(REFERENT)
ORDERED: Any = collections.OrderedDict()
ORDERED.value = 5


@pytest.mark.parametrize(
    "holder",
    [LOCAL, DEFAULTED, PROXY, ORDERED],
    ids=["local", "local with a default", "proxy", "OrderedDict"],
)
def test_attributes_are_found(holder: Any) -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + getattr(holder, "value", 100)
        return y, hasattr(holder, "value")

    dynacheck.reset()
    with dynacheck.observe() as report:
        found = dynacheck.compile(f, backend="eager")(torch.ones(2))
    assert str(found) == str(f(torch.ones(2)))
    assert {b.reason for b in report.graph_breaks} <= {"DC109", "DC111"}
    assert bool(report.graph_breaks) is (holder is not LOCAL)  # whose attributes are known


def test_a_thread_local_made_in_the_frame() -> None:
    def f(x: torch.Tensor) -> Any:
        made = threading.local()
        made.value = 3
        return x * made.value, made

    y, made = dynacheck.compile(f, backend="eager")(torch.ones(2))
    assert y.tolist() == [3.0, 3.0]
    assert made.value == 3


def test_an_ordered_dict_takes_attributes() -> None:
    def f(x: torch.Tensor) -> Any:
        made: Any = collections.OrderedDict()
        made.value = 3
        return x * made.value, made, hasattr(made, "other")

    y, made, other = dynacheck.compile(f, backend="eager")(torch.ones(2))
    assert y.tolist() == [3.0, 3.0]
    assert made.value == 3
    assert not other


def test_a_state_dict_read_in_the_frame() -> None:
    model = torch.nn.Linear(2, 2)

    def f(x: torch.Tensor) -> Any:
        return model(x), list(model.state_dict())

    with dynacheck.observe() as report:
        y, names = dynacheck.compile(f, backend="eager")(torch.ones(2))
    assert torch.equal(y, model(torch.ones(2)))
    assert names == ["weight", "bias"]
    assert "DC201" not in {b.reason for b in report.graph_breaks}
