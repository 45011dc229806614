"""The world stays as it is and what surrounds the call changes, there and back."""

import contextlib

import pytest
import torch
from mutations.loop import WORLDS, run, wrong
from parity.engines import ENGINES
from parity.harness import Raised
from torch.overrides import TorchFunctionMode


@contextlib.contextmanager
def setting(get, put, value):
    before = get()
    put(value)
    try:
        yield
    finally:
        put(before)


class Nothing(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


AMBIENT = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "default dtype": lambda: setting(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
    "deterministic": lambda: setting(
        torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True
    ),
    "function mode": Nothing,
    "default device": lambda: torch.device("cpu"),
}


class Entering:
    """A change that enters a context; `leaving` leaves it."""

    def __init__(self, stack, make):
        self.stack, self.make = stack, make

    def apply(self, world):
        self.stack.enter_context(self.make())


class Leaving:
    def __init__(self, stack):
        self.stack = stack

    def apply(self, world):
        self.stack.close()


def there_and_back(name, make, engine=None):
    with contextlib.ExitStack() as stack:
        return run(name, [Entering(stack, make), Leaving(stack)], engine)


@pytest.mark.parametrize("ambient", AMBIENT)
@pytest.mark.parametrize("name", WORLDS)
def test_there_and_back(name, ambient):
    plain, ours, theirs = (
        there_and_back(name, AMBIENT[ambient], engine)
        for engine in (None, ENGINES["bundled"], ENGINES["torch"])
    )
    assert not plain.refused and not wrong(plain, ours) and not ours.faults
    served = zip(plain.results, ours.outcomes, theirs.outcomes, strict=True)
    assert wrong(plain, theirs) or all(a == b for r, a, b in served if type(r) is not Raised), (
        ours.outcomes,
        theirs.outcomes,
    )
