"""Objects whose attributes aren't in a dict of their own are never taken for objects without attributes."""

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


@pytest.mark.parametrize("holder", [LOCAL, DEFAULTED, PROXY], ids=["local", "local with a default", "proxy"])
def test_attributes_are_found(holder: Any) -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + getattr(holder, "value", 100)
        return y, hasattr(holder, "value")

    dynacheck.reset()
    with dynacheck.observe() as report:
        found = dynacheck.compile(f, backend="eager")(torch.ones(2))
    assert str(found) == str(f(torch.ones(2)))
    assert {b.reason for b in report.graph_breaks} == {"DC111"}


def test_a_thread_local_made_in_the_frame() -> None:
    def f(x: torch.Tensor) -> Any:
        made = threading.local()
        made.value = 3
        return x * made.value, made

    y, made = dynacheck.compile(f, backend="eager")(torch.ones(2))
    assert y.tolist() == [3.0, 3.0]
    assert made.value == 3
