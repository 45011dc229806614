"""Runs a history plainly and under an engine, and tells where they differ."""

from __future__ import annotations

import multiprocessing
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from histories.generate import Call, History
from parity.engines import ENGINES
from parity.harness import Raised, frozen, same


@dataclass
class Served:
    """What each call returned, how it was served, and the inputs of the graphs it made."""

    results: list[Any] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    graphs: list[list[str]] = field(default_factory=list)
    entries: int = 0
    faults: tuple[str, ...] = ()


def inputs(gm: torch.fx.GraphModule) -> str:
    """The inputs of a graph: `1 symbols: (4, s), s`; the order in which two engines meet them isn't compared.

    Numbers that were symbols once are left out: where they are used before they become numbers, torch keeps some. So are
    further inputs for a symbol that is one already: which of several equal sizes an operation takes is chance. And so
    are symbols that only go into what algebra makes a number (`0 * s`): torch records the product, others the number.
    """
    symbols: set[str] = set()

    def spelled(size: Any) -> str:
        if not isinstance(size, (torch.SymInt, torch.SymFloat)):
            return str(size)
        expr = size.node.expr
        if expr.is_number:
            return str(expr)
        symbols.add(str(expr))
        return "s" if expr.is_Symbol else "expression"

    tensors, numbers = [], {}
    for node in gm.graph.find_nodes(op="placeholder"):
        example = node.meta["example_value"]
        if isinstance(example, torch.Tensor):
            tensors.append(f"({', '.join(map(spelled, example.shape))})")
        elif isinstance(example, (torch.SymInt, torch.SymFloat)):
            numbers[str(example.node.expr)] = node, example
    kept = [
        example
        for expr, (node, example) in numbers.items()
        if expr in symbols or not node.users or not all(map(_is_number, node.users))
    ]
    texts = [text for text in map(spelled, kept) if text in ("s", "expression")]
    return f"{len(symbols)} symbols: {', '.join(sorted(tensors + texts))}"


def _is_number(node: torch.fx.Node) -> bool:
    """Whether a node computes with symbols what is always the same number."""
    example = node.meta.get("example_value")
    return isinstance(example, (torch.SymInt, torch.SymFloat)) and bool(example.node.expr.is_number)


def mark(engine: str, tensor: torch.Tensor, marks: list[tuple[Any, ...]]) -> None:
    import dynacheck
    import torch._dynamo.decorators

    for name, dim, *bounds in marks:
        made = getattr(dynacheck if engine == "bundled" else torch._dynamo.decorators, name)
        made(tensor, dim, **(bounds[0] if bounds else {}))


def run(history: History, engine: Any = None) -> Served:
    """All calls of a history, plainly or under an engine."""
    served = Served()
    fn: Callable[..., Any] = history.function()
    kept: dict[str, Any] = {}

    def backend(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        if any("call" in node.op for node in gm.graph.nodes):  # ours hands over no graph without operations
            served.graphs[-1].append(inputs(gm))
        return gm.forward

    if engine is None:
        for call in history.calls:
            served.results.append(_call(call, fn, call.arguments(kept)))
        return served
    engine.reset()
    with warnings.catch_warnings(), engine.record() as seen:
        warnings.simplefilter("ignore")
        compiled = engine.compile(fn, backend=backend, **history.options)
        for call in history.calls:
            args = call.arguments(kept)
            mark(engine.name, args["x"], call.marks)
            number = seen.calls_so_far()
            served.graphs.append([])
            served.results.append(_call(call, compiled, args))
            served.outcomes.append(",".join(seen.outcomes_since(number)))
        figures = seen.finish()
    served.entries, served.faults = figures.entries, figures.faults
    engine.reset()
    return served


def run_torch(history: History) -> Served:
    """All calls of a history under torch.compile, in a child process if a mark may turn out not to hold.

    After such an error torch leaves its evaluator in place for good, which other tests of the process would notice.
    """
    if not any(mark[0] == "mark_dynamic" for call in history.calls for mark in call.marks):
        return run(history, ENGINES["torch"])
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_send, args=(theirs, history))
    child.start()
    theirs.close()
    served: Served = pickle.loads(ours.recv_bytes())
    child.join()
    return served


def _send(to: Any, history: History) -> None:
    to.send_bytes(pickle.dumps(run(history, ENGINES["torch"])))


def _call(call: Call, fn: Callable[..., Any], args: dict[str, Any]) -> Any:
    try:
        return frozen(call.run(fn, args))
    except Exception as error:
        return Raised(type(error).__name__, str(error)[:200])


def wrong(plain: Served, ours: Served, theirs: Served | None) -> list[str]:
    """Where results differ from plain Python's; what torch refuses, too, may be refused."""
    found = list(ours.faults)
    for i, (expected, result) in enumerate(zip(plain.results, ours.results, strict=True)):
        other = None if theirs is None else theirs.results[i]
        if isinstance(result, Raised) and (isinstance(expected, Raised) or isinstance(other, Raised)):
            continue
        if text := same(expected, result, f"call {i}"):
            found.append(text)
    return found


def otherwise(plain: Served, ours: Served, theirs: Served) -> list[str]:
    """Where calls were served otherwise than torch serves them, up to the first one that raises."""
    found = []
    for i, (expected, mine, other) in enumerate(
        zip(plain.results, ours.results, theirs.results, strict=True)
    ):
        if isinstance(expected, Raised):
            return found
        if (
            isinstance(other, Raised)
            and other.type == "GuardOnDataDependentSymNode"
            and not isinstance(mine, Raised)
        ):
            return found  # torch lets an exception of its own out where others break the graph
        if not isinstance(other, Raised) and same(expected, other, ""):  # torch is wrong
            return found
        if isinstance(mine, Raised) != isinstance(other, Raised):
            return [
                *found,
                f"call {i}: {mine if isinstance(mine, Raised) else 'no error'} instead of {other}",
            ]
        if isinstance(mine, Raised):
            return found
        for what, a, b in (
            ("outcome", ours.outcomes, theirs.outcomes),
            ("graphs", ours.graphs, theirs.graphs),
        ):
            if a[i] != b[i]:
                found.append(f"call {i}: {what} {a[i]} instead of {b[i]}")
    if ours.entries != theirs.entries:
        found.append(f"{ours.entries} entries instead of {theirs.entries}")
    return found
