"""Weak references, their containers and generic functions (which keep what they found by weak keys), against plain Python."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import dynacheck
import pytest
import torch


class Item:
    def __init__(self, number: int) -> None:
        self.number = number


class Other(Item):
    """Another class."""


def calls_back(reference: Any) -> None:
    """Called when an object goes."""


def generic() -> Any:
    @functools.singledispatch
    def kind(value):
        return "object"

    @kind.register
    def _(value: list):
        return "list"

    @kind.register
    def _(value: Item):
        return "item", value.number

    @kind.register
    def _(value: torch.Tensor):
        return value * 2

    return kind


BODIES = """
one in group, two in group, three in group
len(group), bool(group)
[item.number for item in group]
sorted(item.number for item in group)
group.add(three), len(group), three in group
group.discard(one), len(group), one in group
len(group.copy())
[item.number for item in weakref.WeakSet([two])]
table[one], table.get(two), one in table, len(table)
table.setdefault(two, 5), table[two]
weakref.ref(one) == weakref.ref(one), weakref.ref(one) == weakref.ref(two), weakref.ref(one) != weakref.ref(two)
weakref.ref(one, calls_back)() is one
hash(weakref.ref(one)) == hash(one)
kind([1]), kind([])
kind(one), kind(three)
kind(x)
kind.dispatch(list)([])
""".strip().splitlines()


def world() -> dict[str, Any]:
    one, two, three = Item(1), Item(2), Other(3)
    return {
        "weakref": weakref, "calls_back": calls_back, "one": one, "two": two, "three": three, "kind": generic(),
        "group": weakref.WeakSet([one, two]), "table": weakref.WeakKeyDictionary({one: "first"}),
    }  # fmt: skip


def made(body: str, scope: dict[str, Any]) -> Any:
    exec(f"def f(x):\n    y = x + 1\n    return y, ({body})", scope)
    return scope["f"]


def state(scope: dict[str, Any]) -> Any:
    numbers = sorted(item.number for item in scope["group"])
    return numbers, [(key.number, value) for key, value in scope["table"].items()]


@pytest.mark.parametrize("body", BODIES)
def test_body(body: str) -> None:
    plain, traced = world(), world()
    expected = [made(body, plain)(torch.ones(2)) for _ in range(2)]
    if body.startswith("[item.number for item in group"):  # the order of a set is by addresses
        expected = [(torch.full((2,), 2.0), [item.number for item in traced["group"]])] * 2
    compiled = dynacheck.compile(made(body, traced), backend="eager", fullgraph=True)
    with dynacheck.observe() as report:
        assert repr([compiled(torch.ones(2)) for _ in range(2)]) == repr(expected)
    assert report.graphs and state(traced) == state(plain)


def test_what_a_set_holds_is_guarded() -> None:
    scope = world()
    compiled = dynacheck.compile(made("one in group, len(group)", scope), backend="eager", fullgraph=True)
    assert compiled(torch.ones(2))[1] == (True, 2)
    scope["group"].discard(scope["one"])
    assert compiled(torch.ones(2))[1] == (False, 1)
    scope["group"].add(scope["three"])
    assert compiled(torch.ones(2))[1] == (False, 2)
    scope["group"].add(scope["one"])
    assert compiled(torch.ones(2))[1] == (True, 3)
    del scope["three"]
    assert compiled(torch.ones(2))[1] == (True, 2)


def test_a_reference_made_again_calls_back() -> None:
    called = []

    def f(x, item):
        return x + 1, weakref.ref(item, called.append)

    item = Item(1)
    _, reference = dynacheck.compile(f, backend="eager", fullgraph=True)(torch.ones(2), item)
    assert reference() is item and called == []
    del item
    assert called == [reference] and reference() is None


def test_the_end_of_what_the_frame_made_calls_back() -> None:
    called = []

    def f(x):
        y = x + 1
        item = Item(1)
        reference = weakref.ref(item, called.append)
        del item
        return y, reference

    _, reference = dynacheck.compile(f, backend="eager")(torch.ones(2))
    assert called == [reference]


def test_the_order_of_objects_in_a_set() -> None:
    for _ in range(4):
        group = {Item(number) for number in range(5)}
        order = [item.number for item in group]
        read = dynacheck.compile(
            made("[v.number for v in group]", {"group": group}), backend="eager", fullgraph=True
        )
        assert read(torch.ones(2))[1] == order
        taken = dynacheck.compile(made("group.pop().number, len(group)", {"group": group}), backend="eager")
        assert taken(torch.ones(2))[1] == (order[0], 4) and sorted(v.number for v in group) == sorted(
            order[1:]
        )


def test_a_set_of_objects_that_changes_while_iterated() -> None:
    group = {Item(1), Item(2)}

    def f(x):
        try:
            for item in group:
                group.discard(item)
        except RuntimeError as error:
            return x + 1, str(error), len(group)

    assert dynacheck.compile(f, backend="eager", fullgraph=True)(torch.ones(2))[1:] == (
        "Set changed size during iteration", 1,
    )  # fmt: skip
