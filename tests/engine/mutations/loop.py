"""Calls a world's function, changes one thing, and calls it again: plainly and under an engine."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from mutations.places import Mutation, World
from parity.harness import Raised, frozen, load, same, seed

WORLDS = {path.stem.removeprefix("world_"): path for path in sorted(Path(__file__).parent.glob("world_*.py"))}
BEFORE, AFTER = 2, 2


def world(name: str) -> World:
    """The world of that name, from a new execution of its file."""
    torch.manual_seed(0)
    module = load(WORLDS[name])
    fn, args = module.make()
    return World(module, fn, args)


@dataclass
class Run:
    """What calls returned or raised, and how they were served."""

    results: list[Any] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    refused: str = ""  # the change itself raised
    faults: tuple[str, ...] = ()


def _call(fn: Callable[..., Any], args: list[Any]) -> Any:
    try:
        return frozen(fn(*args))
    except Exception as error:
        return Raised(type(error).__name__, "")


def run(name: str, changes: list[Mutation], engine: Any = None) -> Run:
    """Calls, then per change: the change and two calls."""
    done = Run()
    with contextlib.ExitStack() as stack:
        if engine is not None:
            engine.reset()
            stack.callback(engine.reset)
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        here = world(name)
        seen = None if engine is None else stack.enter_context(engine.record())
        called = (
            here.fn
            if engine is None
            else engine.compile(here.fn, backend=lambda gm, example_inputs: gm.forward)
        )
        for i, change in enumerate([None, *changes]):
            if change is not None:
                try:
                    change.apply(here)
                except Exception as error:
                    done.refused = f"{type(error).__name__}: {error}"
                    break
            for k in range(BEFORE):
                seed(i + k)
                number = 0 if seen is None else seen.calls_so_far()
                done.results.append(_call(called, here.args))
                if seen is not None:
                    done.outcomes.append(",".join(seen.outcomes_since(number)))
        if seen is not None:
            done.faults = seen.finish().faults
    return done


def wrong(plain: Run, compiled: Run) -> str:
    """Where results differ from plain Python's; an empty string when they don't."""
    if plain.refused != compiled.refused:
        return f"the change: {compiled.refused or 'done'} instead of {plain.refused or 'done'}"
    pairs = enumerate(zip(plain.results, compiled.results, strict=True))
    return next((found for i, (a, b) in pairs if (found := same(a, b, f"call {i}"))), "")
