"""An entry that relies on which object is a key of a dict or an element of a set isn't used for another object."""

from typing import Any

import dynacheck
import pytest
import torch


class Key:
    """Hashed by identity."""


MAKERS = {
    "object": Key,
    "tensor": lambda: torch.ones(2),
    "module": torch.nn.ReLU,
    "function": lambda: lambda x: x,
}
LOOKS = {
    "in": (lambda x, held, key: x + (1 if key in held else 2), (dict, set)),
    "not in": (lambda x, held, key: x + (1 if key not in held else 2), (dict, set)),
    "get": (lambda x, held, key: x + held.get(key, 7), (dict,)),
    "of those made": (lambda x, held, key: x + len({key, *held}), (dict,)),
    "first": (lambda x, held, key: x + (1 if next(iter(held)) is key else 2), (dict,)),
}


def holder(kind: type, *keys: Any) -> Any:
    return {key: n for n, key in enumerate(keys, 1)} if kind is dict else kind(keys)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("made", MAKERS)
def test_another_key(look: str, made: str) -> None:
    fn, kinds = LOOKS[look]
    for kind in kinds:
        if made == "tensor" and kind is set:
            continue  # breaks where it is met
        a, b, c = (MAKERS[made]() for _ in range(3))
        both = holder(kind, a, b)
        calls = [(both, a), (both, b), (both, c), (holder(kind, b, a), a), (holder(kind, c, a), c), (both, a)]
        dynacheck.reset()
        compiled = dynacheck.compile(fn, backend="eager")
        with dynacheck.observe() as report:
            for held, key in calls:
                x = torch.ones(1)
                assert compiled(x, held, key).tolist() == fn(x, held, key).tolist()
        assert report.graphs and not report.graph_breaks
