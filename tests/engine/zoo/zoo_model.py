"""One row of the zoo: a model, its calls, and what a run of them gives."""

from __future__ import annotations

import contextlib
import importlib.util
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from parity.harness import same
from torch import nn
from torch.utils._pytree import tree_map_only

__all__ = ["Calls", "Model", "Run", "compared", "differences", "registry", "run"]

Calls = list[tuple[tuple[Any, ...], dict[str, Any]]]


@dataclass(frozen=True)
class Model:
    """A model of the zoo.

    Attributes:
        name: unique.
        group: heading under which tables list it.
        make: a new model with random weights (seeded by the caller) and its three calls.
        training: whether it can be trained.
        ci: whether the short set has it.
        step: what one call does; default calls the model.
        tolerance: absolute, of results and gradients.
        needs: the library that it needs, if any.
    """

    name: str
    group: str
    make: Callable[[], tuple[nn.Module, Calls]]
    training: bool = True
    ci: bool = False
    step: Callable[..., Any] | None = None
    tolerance: float = 1e-4
    needs: str = ""

    def is_here(self) -> bool:
        """Whether the library that it needs can be imported."""
        return not self.needs or importlib.util.find_spec(self.needs) is not None


def registry(group: str) -> tuple[list[Model], Callable[..., Any]]:
    """A list of models and the decorator that adds `make` functions to it, under their names."""
    models: list[Model] = []

    def model(name: str = "", **options: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
        def add(make: Callable[[], Any]) -> Callable[[], Any]:
            models.append(Model(name or make.__name__, options.pop("group", group), make, **options))
            return make

        return add

    return models, model


@dataclass
class Run:
    """What three calls gave.

    Attributes:
        results: of each call, the tensors and numbers in its result by path.
        gradients: of each call (training), by parameter's name.
        state: buffers at the end, by name.
        random: state of torch's generator at the end.
        figures: what an engine compiled (`parity.engines.Figures`), None for eager.
        operators: nodes that call something, of each graph.
    """

    results: list[dict[str, Any]] = field(default_factory=list)
    gradients: list[dict[str, Any]] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    random: Any = None
    figures: Any = None
    operators: list[int] = field(default_factory=list)


def is_operator(node: torch.fx.Node) -> bool:
    """Whether a node computes something; torch also records that it counts uses of its API."""
    return node.op.startswith("call") and node.target is not torch._C._log_api_usage_once


def leaves(value: Any, path: str = "result") -> Iterator[tuple[str, Any]]:
    """Tensors and constants in a result, by path."""
    if isinstance(value, (torch.Tensor, int, float, str, bool, type(None))):
        yield path, value
    elif isinstance(value, dict):
        for key, found in value.items():
            yield from leaves(found, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for i, found in enumerate(value):
            yield from leaves(found, f"{path}[{i}]")
    elif hasattr(value, "__dict__"):
        yield f"{path}:type", type(value).__qualname__
        yield from leaves(dict(sorted(vars(value).items())), path)


def loss(result: Any) -> torch.Tensor:
    """A number that depends on every differentiable tensor of a result."""
    parts = [v.float().square().mean() for _, v in leaves(result) if is_differentiable(v)]
    return torch.stack(parts).sum()


def is_differentiable(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad and value.numel() > 0


def frozen(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def seed(number: int) -> None:
    torch.manual_seed(number)
    random.seed(number)


def run(
    model: Model,
    engine: Any = None,
    *,
    training: bool = False,
    backend: Any = None,
    device: torch.device | str = "cpu",
) -> Run:
    """Make a model anew, call it three times, in training mode with a backward pass each.

    Args:
        model: which.
        engine: from `parity.engines`; None runs it eagerly.
        training: mode.
        backend: what to compile with; default runs the captured graph.
        device: where the model and its arguments are.
    """
    outcome = Run()
    device = torch.device(device)

    def nothing(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        outcome.operators.append(sum(is_operator(node) for node in gm.graph.nodes))
        return gm.forward

    seed(0)
    module, calls = model.make()
    module.to(device).train(training)
    calls = tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), calls)
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        seen, target = None, module
        if engine is not None:
            engine.reset()
            stack.callback(engine.reset)
            stack.enter_context(engine.patched())
            seen = stack.enter_context(engine.record())
            target = engine.compile(module, backend=backend or nothing)
        if not training:
            stack.enter_context(torch.no_grad())
        for i, (args, kwargs) in enumerate(calls):
            seed(i + 1)
            module.zero_grad(set_to_none=True)
            result = (model.step or call)(target, *args, **kwargs)
            outcome.results.append({path: frozen(value) for path, value in leaves(result)})
            if training:
                loss(result).backward()
                outcome.gradients.append({n: frozen(p.grad) for n, p in module.named_parameters()})
        outcome.state = {name: frozen(value) for name, value in module.named_buffers()}
        outcome.random = torch.get_rng_state() if device.type == "cpu" else torch.cuda.get_rng_state(device)
        if seen is not None:
            outcome.figures = seen.finish()
    return outcome


def call(target: Any, *args: Any, **kwargs: Any) -> Any:
    return target(*args, **kwargs)


def differences(one: Run, other: Run, tolerance: float = 1e-4) -> list[str]:
    """Where results, gradients, buffers or random numbers of a run differ from another's."""
    found = []
    for what in ("results", "gradients"):
        for i, (a, b) in enumerate(zip(getattr(one, what), getattr(other, what), strict=True)):
            found += compared(a, b, f"{what} of call {i}", tolerance)
    found += compared(one.state, other.state, "buffers", tolerance)
    if not torch.equal(one.random, other.random):
        found.append("random numbers were used differently")
    return found


def compared(one: dict[str, Any], other: dict[str, Any], where: str, tolerance: float) -> list[str]:
    """Where values by path differ from others."""
    if list(one) != list(other):
        return [f"{where}: has {sorted(set(other) ^ set(one))[:4]} on one side only"]
    return [text for path in one if (text := _differs(one[path], other[path], f"{where} {path}", tolerance))]


def _differs(one: Any, other: Any, where: str, tolerance: float) -> str:
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)) or one.shape != other.shape:
        return same(one, other, where)
    if one.dtype != other.dtype or one.stride() != other.stride():
        return same(one, other, where)
    if torch.allclose(one.to_dense(), other.to_dense(), 1e-4, tolerance, equal_nan=True):
        return ""
    return f"{where}: off by {(one.double() - other.double()).abs().max().item():.2g}"
